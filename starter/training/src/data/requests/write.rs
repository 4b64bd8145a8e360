//! Requests to write a file.

use super::{Request, call, quoted, some_path};
use crate::data::{
    Call, Draw,
    draw::is_small_word,
    grammar::{Phrasings, filled},
};

/// `{t}` is in quotes.
const QUOTED: Phrasings = Phrasings {
    commands: &[
        "[write|write|write|save|save|put|store|note|record|dump|log|print|output|place|drop|enter|type|note down|write down|jot down|persist|copy|paste|stick|set down] [|||the text |the words |the line |the following text |this text: |the string |this: |the sentence |just |only |the phrase |the message |the value |the content |exactly ][{t}] [to|to|to|into|in|into the|to a new|in a new|as|in the] [file |file called |file named |file ]{f}",
        "[write|save|put|store|note|record|output|place] {t} [to|to|into|in] $F",
        "[write|save|put|store|note|record] {t} [to|to|into|in|as|under] {f}",
        "write {t} to {f}",
        "save {t} as {f}",
        "save {t} to {f}",
        "put {t} in {f}",
        "put {t} into {f}",
        "[create|make|generate|start|add|set up|open|write|produce|build|prepare|new] [|a file |a new file |the file |a file called |a file named |a new file called |a new file named |a text file |a text file called |a document called |file |another file ]{f} [with|with|with|containing|that contains|that says|that reads|saying|which says|which contains|with the text|with the content|with the contents|with the words|with the line|holding|and write|and put|with this in it:|with this content:|that just says|that has|having|with text|with content|with the following content:|with the following text:] {t}",
        "create {f} with {t}",
        "create {f} [containing|with the content|that says|with the text] {t}",
        "create a file {f} [with|that says|containing] {t}",
        "make a file {f} [that says|with|containing] {t}",
        "create {f} and [write|put|save|add] {t} [in it|into it|to it|inside|in there|there]",
        "[create|make] a [|new ]file [called |named |]{f} and [write|put|save] {t} [in it|into it|to it|inside|there|in there]",
        "[write|put] in $F: {t}",
        "[write|save|put] [to|into|in] $F [|the text |the words |the line |this: |the following: ]{t}",
        "[in|into|to] {f}[,|] [write|put|save|store] {t}",
        "[write|save] $F with [|the text |the content |the words ]{t}",
        "write $F: {t}",
        "[overwrite|fill|replace the contents of|replace the content of|rewrite] $F with {t}",
        "set [the content of|the contents of|the text of] $F to {t}",
        "[let|make] $F [say|contain|read|be] {t}",
        "make $F [say|contain|read] {t}",
        "use write_file to [put|write|save] {t} [in|into|to] {f}",
        "use {t} as the [content|contents|text] of {f}",
        "take {t} and [write|save|put] it [to|into|in|as] {f}",
        "[echo|print] {t} > {f}",
        "have {f} [say|contain] {t}",
        "leave a note in {f} saying {t}",
        "[write|make] a note [in|to] {f}: {t}",
        "[write|make] a note [in|to] {f} that says {t}",
        "note {t} in {f}",
        "give me a file {f} [with|that says|containing] {t}",
        "create a {f} [with|that says|containing|file with|file that says|file containing] {t}",
        "make me a {f} [with|that says|containing] {t}",
        "create a file. name it {f} and [write|put] {t} [in it|into it]",
        "create a file with {t} [and call it|and name it|called|named|in it, named|in it, call it] {f}",
        "make a file with the [text|content] {t} [called|named] {f}",
        "[create|make|write|generate|start|add|set up] [|a file |a new file |a file called |a file named |a ]{f} with {t} [in it|inside|as content|as its content|as text|as the only line|as its text|in there|as its contents|and nothing else|as body]",
        "[create|make|start|add] [|a file |a new file |a file called ]{f} [whose|the] [content|text] [is|should be|shall be] {t}",
        "[create|make|write] the file {f}[, its content is|, content:|; the text is|. It should say|. It should contain|. Content:|. The text is|. In it:] {t}",
        "create {f}. [It should say|It says|Content:|The content is|The text:|It reads] {t}",
        "create {f}. [Put|Write|Save] {t} [in it|into it|inside|there]",
        "[write|type|take down] {t}[. Save it| and save it| and save| and store it|, then save it] [as|to|in|under] {f}",
        "[make sure|see to it|ensure|take care] that $F [says|contains|reads|has] {t}",
        "[fill|populate|feed] [a new file|the file|a file called|] {f} with {t}",
        "[hold|keep|remember|log|capture|preserve|archive|document|register|scribble|pen|put down|mark down|key in|take down] {t} in $F",
        "[file|archive|keep|store|save] {t} under [|the name ]{f}",
        "[send|pipe|redirect|export] {t} [to|into] [the file|file|a file called] {f}",
        "let there be a file {f} [with|that says|containing] {t}",
        "make a file out of {t} and [call|name] it {f}",
        "[turn|make] {t} into a file [called|named] {f}",
        "[under the name|under] {f}[,|] [save|store|write] {t}",
        "save under {f} [the text|the words|the line|the following:|this:] {t}",
        "[in|into|to] [a file|a new file|the new file] [called|named|] {f}[,|] [write|put|save|place] {t}",
        "[throw away|forget|drop|discard] [what is in|the old text of|the old content of|everything in] {f} and write {t} [instead|]",
        "replace [everything|all the text|the whole text|the entire content|all|whatever is] in {f} [with|by] {t}",
        "[touch|create|make|open] {f} and [write|put|type|paste|save|echo] {t} [in it|into it|to it|there]",
        "[open|take|go to] [a new file|the file|a file called|] {f}[,| and] [write|put|type] {t}[| into it| in it][, and save it|, save it| and save|]",
        "write a [line|one-liner|sentence|message|comment|text] to {f}: {t}",
        "write a file[,| and] [call it|name it|named|called] {f}[,|:| and put] {t}[ in it| into it| inside]",
        "use {f} [to store|to save|to hold|for storing|for] {t}",
        "[have|get] {t} [written to|saved in|saved as|stored in|put into] {f}",
        "[printf|echo -n] {t} > {f}",
        "echo {t} | tee {f}",
        "give {f} the [content|text|contents] {t}",
        "give me [a|a new] {f} [that contains|that says|with|containing] {t}",
        "prepare $F with {t}",
        "store the [line|text|words|string|sentence|message|value] {t} in $F",
    ],
    questions: &[
        "can {f} [say|contain] {t}",
        "may i have a file {f} [with|that says|containing] {t}",
        "can i have a [new |]file {f} [with|that says|containing] {t}",
        "could we have {t} in {f}",
        "$G [writing|saving|putting|storing|noting|recording|dropping] {t} [to|in|into] $F",
        "$G [creating|making|starting|adding] [|a file |a new file |a file called ]{f} [with|containing|that says|with the text] {t}",
        "$G jotting {t} down in {f}",
        "$G jotting down {t} in {f}",
        "$G [filling|overwriting] $F with {t}",
        "how about a [|new ]file {f} [with|that says|containing|saying] {t}",
        "could {t} [please be|be] [written to|saved in|saved as|stored in|put into|noted in] {f}",
        "can {t} [be written to|be saved in|be saved as|be stored in|go into|go in|be put in] {f}",
        "is it possible to have {t} [in|written to|saved in] {f}",
        "could i have [|a file ]{f} with {t} [in it|inside|as its content|as text]",
        "can [i get|i have|we have|we get|there be] a [|new ]file {f} with {t}[| in it]",
        "could there be a file {f} that says {t}",
        "may i have {t} [saved in|written to|stored in] {f}",
        "why not write {t} [to|into] {f}",
        "could $F [say|contain|read] {t}",
    ],
    statements: &[
        "[i want|i need|i'd like|i would like|we need] [a file|a new file|a file called|a file named|a text file|] {f} [with|that says|containing|with the text|with the content|which says|that contains] {t}",
        "{f} should [contain|say|read|have] {t}",
        "{f} should [contain|say|read] {t}",
        "$F [must|needs to|has to|should|shall] [contain|say|read] {t}",
        "new file {f}: {t}",
        "new file {f} with {t}",
        "file {f}, content {t}",
        "{t} should be [in|written to|saved in|saved to|the content of|stored in] {f}",
        "{t} goes [into|in|to] {f}",
        "{t} -> {f}",
        "echo {t} > {f}",
        "{f}: write {t}",
        "{f}: {t}, write that",
        "{t}: [save|write|put] [this|that|it] [to|in|into] {f}",
        "[text|content]: {t}, file: {f}",
        "[i want|i need|i'd like] {t} [in|written to|saved to|saved in|saved as|stored in|to be in] {f}",
        "[i want|i need|we need] $F to [say|contain|read] {t}",
        "here is a text: {t}. [Save|Write|Put] it [to|in|into|as] {f}.",
        "a file {f} with {t}",
        "a new file called {f} with {t}",
        "there should be a file {f} [with|that says|containing] {t}",
        "write_file {f} {t}",
        "{t} [must|needs to|has to|is to|ought to|should|shall|may|can] [go into|go in|go to|be written to|end up in|be stored in|land in|be in|be put into|be saved as|be written down in|be noted in] $F",
        "{t} [belongs|goes|has its place|gets saved|gets written] in {f}",
        "a [|new ]file {f} [containing|with|that says|saying] {t} [should|must|has to|needs to] be [created|made|written]",
        "{f} [is to|has to|must|should|needs to] be [created|written|filled|made|overwritten] with {t}",
        "the [content|text|contents] of {f} [should|must|shall|has to] be {t}",
        "the only [thing|line|text] in {f} should be {t}",
        "[what|all that] {f} should say is {t}",
        "i need to remember {t}[,|;|:] [put|write|save|note|store] [it|that] in {f}",
        "don't let me forget {t}[:|,] [write it to|put it in|save it in|note it in] {f}",
        "i keep forgetting {t}, [note|write|put] it [down in|in] {f}",
        "so that i don't forget[:|,] [write|save|put] {t} [to|in] {f}",
        "for my records: {t} in {f}",
        "note to self: {t}, in {f}",
        "my [note|text|message|idea|todo|line] is {t}[,|;|.] [put|write|save] it [in|to|into] {f}",
        "the [note|text|message|content|line] is {t}[,|;|.] [put|write|save] it [in|to|into] {f}",
        "there is no {f} yet[,|;] [create it|make it|make one|create one] [with|containing|that says] {t}",
        "{f} [does not|doesn't] exist yet[,|;] [create|make] it with {t}",
        "i don't have a {f}[.|,|;] [make|create] one [with|that says|containing] {t}",
        "we [need|want|are missing|lack] a [|file ]{f} [that says|with|containing|that contains|with the text] {t}",
        "whatever is in {f}, [overwrite|replace] it with {t}",
        "[i'd love|i'd like|i want|i need] {f} to [say|read|contain|be] {t}",
        "[i'd love|i'd like|i want|i need] to [see|have] {t} in {f}",
        "[i'd love|i'd like|i want|i need] a [|new |small ]file [called |named |]{f} with {t} [in it|inside|as content|as its text]",
        "it would be [nice|great|good|lovely] to have {t} in {f}",
        "it would be [nice|great|good|lovely] if {f} [said|contained|read] {t}",
        "i'd be [happy|glad|grateful] if {f} [said|contained] {t}",
        "if you could [write|save|put] {t} [to|in|into] {f}",
        "if {f} isn't there yet, create it with {t}",
        "{t} [into|to|in|=>|>|→] {f}",
        "{t} as {f}",
        "save as {f}: {t}",
        "[content|text|new content|new text|contents] for {f}: {t}",
        "[the |]new [content|text|contents] of {f}: {t}",
        "[filename|file name|name|path|file]: {f}[,|;] [content|text|contents|body]: {t}",
        "[file|name] {f}, [text|with text|contents|content] {t}",
        "{f} [with|containing|saying|that says|with content|with text] {t}",
        "{f} with {t} in it",
        "{f} <- {t}",
        "{f} := {t}",
        "{f}: [should say|should contain|must say|put|save|content|text:] {t}",
        "[file|a note in|note in|new note in|entry in] {f}: {t}",
        "a [|text |new ]file [called|named] {f} [with the text|saying|that reads|containing] {t}",
        "a {f} [that says|with|containing|saying] {t}",
        "a file by the name of {f} [with|saying|that says] {t}",
        "write_file(path={f}, content={t})",
        "write_file path={f} content={t}",
        "write_file {f} with {t}",
        "printf {t} > {f}",
        "echo {t} | tee {f}",
        "tee {f}: {t}",
        "thanks for [writing|saving] {t} [to|in] {f}",
    ],
};
/// `{u}` is bare and at the end.
const OPEN: Phrasings = Phrasings {
    commands: &[
        "[create|make|write|start|add|new|generate] [|a file |a new file |the file |a file called |a file named |a text file ]{f} [with|containing|that contains|that says|that reads|saying|which says|with the text|with the content|with the contents|with the words|with content|with text|with the line|and write|and put in it|with this in it:|with this content:|with the following content:|with the following text:|with the following:|with this text:] {u}",
        "create {f} with {u}",
        "create {f} [containing|with the content|that says|with the text] {u}",
        "create a file {f} [with|that says|containing] {u}",
        "create a file called {f} [with|that says|containing] {u}",
        "write $F: {u}",
        "write [to|into|in] $F[:|:|] {u}",
        "[save|put|write] [this|the following|this text|the following text|these words] [to|into|in|as] $F: {u}",
        "[overwrite|fill] $F with {u}",
        "set the content[s|] of $F to {u}",
        "make $F [say|contain|read] {u}",
        "[write|make|leave] a note [in|to] {f}: {u}",
        "note in {f}: {u}",
        "[write|put|save] [in|into|to] {f}: {u}",
        "create $F[:| with content:| with text:] {u}",
        "give me a file {f} that says {u}",
        "[write|save|put|store|note|record|jot down|print|type|place|enter] [the following|the following text|the following lines|the following line|the text below|these lines|this|this text|these words|this line|this message|exactly this] [to|in|into|in the file|to the file|to a new file|in a new file called|to a file named] {f}:[ |\n|\n\n]{u}",
        "[write|save|put|store|note|record] [the text|the words|the line|the sentence|the message|a line|a note|some text|one line] [to|in|into] {f}[:| :] {u}",
        "[create|make|generate|write|start|add] [|a file |a new file |the file |a file called |a file named ]{f}[:|, content:|, text:|. Content:|. It should say:|. The text:| with the following lines:| with these lines:| with this inside:| with the text:| that contains:| that reads:|; content:|, it should say:][ |\n|\n\n]{u}",
        "[create|make] a [|new ]file [called |named |]{f}[ and write in it:| and put this in it:| and write this into it:| with this:| which contains:| containing:| saying:] {u}",
        "[fill|overwrite|rewrite] $F with [the following|this|this text|these lines|the text]:[ |\n]{u}",
        "[replace|overwrite] [everything|the content|the whole text|all] [in|of] {f} with[:| this:| the following:] {u}",
        "[put|jot|note|write] down in {f}[:|:|] {u}",
        "[jot down|remember|record|note|log] in $F: {u}",
        "[make sure|see to it|ensure] that {f} [says|contains|reads][:|] {u}",
        "[let|make|have] $F [say|contain|read][:| this:| the following:] {u}",
        "[open|take|touch|create] {f} and [write|put|type] in it[:|] {u}",
        "leave [a message|a note|a line|a reminder] in {f}[:| saying| that says| which says| that reads] {u}",
        "set the [content|text] of {f} to[:| the following:|] {u}",
        "give {f} the [content|text][:|] {u}",
        "create {f}[ |\n]with[ |\n]{u}",
    ],
    questions: &[],
    statements: &[
        "[i want|i need|i'd like] [a file|a new file|a file called|] {f} [with|that says|containing|which says|that contains] {u}",
        "{f} should [contain|say|read] {u}",
        "new file {f}: {u}",
        "new file {f} with {u}",
        "{f}: write {u}",
        "$F should [contain|say] {u}",
        "{f} [should|must|has to|needs to|shall|ought to] [contain|say|read|have][:| this:| the following:| this text:| the text:|] {u}",
        "{f} should [look like this|be this|read as follows|be as follows]:[ |\n]{u}",
        "the [content|text|contents] of $F [should|must|shall] be[:|] {u}",
        "[new |the new |][content|text|contents] [of|for] {f}: {u}",
        "[this|the following|this text|this line] [goes|belongs|should go|must go|has to go] [into|in|to] $F:[ |\n|\n\n]{u}",
        "[these lines|this text|the following] should be [in|written to|saved in|saved as] $F:[ |\n]{u}",
        "[here is|this is] [the content for|the text for|what {f} should say, so write|what goes into|the new text of] {f}: {u}",
        "i [want|need|would like] [this|the following|this text|these words|this line] in {f}:[ |\n]{u}",
        "i [want|need|would like] a [|new ]file [called |named |]{f}[ with this text:| that says:| with:| with the following:| saying:| with the text] {u}",
        "we need a {f} [that says|with the text|with|saying|containing][:|] {u}",
        "[file|filename|path|name|file name]: {f}\n[content|text|contents|body]: {u}",
        "[file|filename|path]: {f}[,|;] [content|text]: {u}",
        "[new file|file|new note|note|save as|save to|write to|write in|put in|store in|create|note for|reminder in|entry for] {f}:[ |\n|\n\n]{u}",
        "[new file|a file|a new file|a note|a file called] {f} [with|saying|that says|containing|with the text|that reads] {u}",
        "a {f} [that says|saying|with the text|that reads] {u}",
        "{f} [with the text|with content|saying|that says|with the words] {u}",
        "{f}: [should say|must say|put|save|content:|text:|save this:|write this:] {u}",
        "{f} <- {u}",
        "there is no {f} yet, create it with[:|] {u}",
        "it would be nice if {f} said[:|] {u}",
        "don't forget to note in {f}: {u}",
        "write_file {f}: {u}",
    ],
};
/// `{m}` is bare and followed by more.
const MIDDLE: Phrasings = Phrasings {
    commands: &[
        "write the [words|text|line|sentence|word] {m} [to|into|in] {f}",
        "create a file with {m} [called|named|and call it|and name it] {f}",
        "create {f} and write {m} [in it|into it|to it]",
        "make a file [called |]{f} and put {m} in it",
        "use {m} as the content of {f}",
        "set the content of {f} to {m} please",
        "[create|make|write|start|add] [|a file |a new file |a file called ]{f} with {m} [in it|inside|as content|as its content|as text|as the only line|as its text|in there|as its contents|and nothing else]",
        "[create|make|open|touch|start] [|a file |a new file |a file called ]{f} and [put|write|type|save] {m} [in it|into it|inside it|to it|there]",
        "[take|open|go to] {f} and [put|write|type] {m} [in it|into it]",
        "take {m} and [save|write|put|store] it [as|to|in|into] {f}",
        "[use|take] {m} as the [text|content|contents] [of|for] {f}",
        "[type|write] {m} and save it [as|in|under] {f}",
        "make {f} say {m} and nothing else",
        "make {f} [say|read] {m} [instead of what it says now|now please|from now on]",
        "[write|save|put] {m} and nothing else [to|in|into] {f}",
        "write the [words|text|line|sentence|word|phrase|string|message] {m} [to|into|in] [a file called|the file|a new file|a file named] {f}",
        "[save|store|put|note|record] the [words|text|line|sentence|word|phrase|string|message] {m} [to|into|in|as] {f}",
        "[get|have] {m} [written to|saved in|saved as|stored in|put into] {f}",
        "create a file containing {m} [called|named|and call it|and name it] {f}",
        "[make|create] a file [that says|saying|with the text] {m} [called|named|and call it|and name it] {f}",
    ],
    questions: &[
        "$G [writing|saving|putting|storing|noting] {m} [to|in|into] {f}",
        "$G [creating|making] {f} with {m} in it",
        "could {m} [please be|be] [written to|saved in|saved as|stored in|put into|noted in] {f}",
        "can {m} [be written to|be saved in|be saved as|be stored in|go into] {f}",
        "can i have {m} [in|written to|saved in|saved as|stored in] {f}",
        "can i have a file {f} with {m} in it",
        "could you [put|write|save|note] {m} [in|to|into] {f}",
        "would you [put|write|save|note] {m} [in|to|into] {f}",
        "can you [put|write|save|note] {m} [in|to|into] [a file called|the file|my file|a new file] {f}",
    ],
    statements: &[
        "[i want|i need|i'd like] {m} [in|written to|saved to|saved in|saved as|stored in] {f}",
        "{m} -> {f}",
        "[i want|i need] {m} to be in {f}",
        "{m} should be in {f}",
        "{m} [must|needs to|has to|should|is to|ought to] [go into|be written to|be stored in|be put into|be saved as|be saved in|be noted in|go in] {f}",
        "{m} [goes|belongs] [in|into] {f}",
        "{m} [=>|>|→|--> ] {f}",
        "[i want|i need|i'd like] {m} [noted in|recorded in|put into|stored as|written down in|to go into|to be saved in] {f}",
        "[i want|i need|i'd like] [a file |]{f} with {m} [in it|inside|as its content]",
        "{f} with {m} in it",
        "i need to remember {m}, [put|write|save|note] it in {f}",
        "the [note|text|message|line] is {m}, [put|write|save] it [in|to] {f}",
        "it would be nice to have {m} in {f}",
        "if you could [write|save|put] {m} [to|in|into] {f}",
        "text {m}, file {f}",
        "[text|content]: {m}, [file|in|path]: {f}",
    ],
};
/// The same, where nothing but the file follows.
const BEFORE_FILE: Phrasings = Phrasings {
    commands: &[
        "[write|write|save|put|store|note|record|note down|write down|jot down|print|place|type|enter] {m} [to|to|into|in|into the file|to the file|in the file|to a new file|into a file called|in a file called|to a file named|in a new file called|to file|to the file called|in my file|to my] {f}",
        "write {m} to {f}",
        "write {m} to {f}",
        "write {m} into {f}",
        "save {m} to {f}",
        "save {m} as {f}",
        "put {m} in {f}",
        "put {m} into {f}",
        "store {m} in {f}",
        "echo {m} > {f}",
        "note {m} in {f}",
        "write {m} in {f}",
        "[write|save|put|store|note|record|enter|log|place|dump|drop|stick|keep|type in|set down|scribble|take down|put down|capture] {m} [to|in|into|down in|inside] {f}",
        "[write|save|put|store|note] {m} [to|in|into|in the|to the|in my|to our|into the|in a new file|as a new file|in a file|to disk as|under the name|as a file called|into a new file called|in the text file|into the text file] {f}",
        "jot {m} down in {f}",
        "jot down {m} in {f}",
        "write {m} down in {f}",
        "put {m} down in {f}",
        "[save|store|archive|keep|file] {m} [as|under] {f}",
        "note down {m} in {f}",
        "[remember|log|record|memorize] {m} in {f}",
        "printf {m} > {f}",
        "echo {m} | tee {f}",
        "[write|save|put]: {m} [to|in|into] {f}",
        "[write|save|put|store] [this|the following|this text|the text|the words|this line]: {m} [to|in|into|in the file] {f}",
    ],
    questions: &[],
    statements: &[
        "echo {m} > {f}",
        "write {m} to {f}",
        "save {m} in {f}",
        "[save|write|put|store|note] {m} [in|to|into] {f}",
        "[if you could|i wanted to ask you to|i would be happy if you could|maybe you can] [write|save|put] {m} [to|in|into] {f}",
        "note to self: {m} in {f}",
    ],
};
const EMPTY: Phrasings = Phrasings {
    commands: &[
        "[create|make|add|start|generate|set up|open] [an empty file|an empty file called|an empty file named|a new empty file|a blank file|an empty text file|an empty document|an empty|a blank|a blank file called|an empty new file] {f}",
        "create {f} [with nothing in it|as an empty file|without content|with no content|, empty|empty|but leave it empty|with no text]",
        "touch {f}",
        "[empty|clear] $F",
        "make $F empty",
        "write nothing [to|into] {f}",
        "[create|make] a file {f} [with nothing in it|that is empty|without any content|and leave it empty|with no content]",
        "[create|make|add] {f} [as a blank file|, nothing in it|, no content|, leave it empty|, blank|, just empty|and write nothing to it|and put nothing in it|, zero bytes|without anything in it|with an empty content]",
        "[create|make|add|start] [a file|a new file|a file called|a file named|a text file] {f}[, empty|, nothing in it|, but leave it empty| with nothing inside| without any text| with empty content|, content: none| that has nothing in it|, no text]",
        "[wipe|delete|erase|remove|clear|drop] [all the text|everything|the whole text|the entire content|the contents|all the content] [in|of|from] $F[, but keep the file| but leave the file there|, so that it is empty|, leaving it empty]",
        "[truncate|blank out] $F",
        "truncate $F to [nothing|zero bytes|zero length]",
        "[overwrite|replace the content of] $F with nothing",
        "let $F be empty",
    ],
    questions: &[
        "can i have an empty file {f}",
        "can i have an empty {f}",
        "$G [creating|making|adding] an empty [|file |file called |file named ]{f}",
        "can there be an empty file {f}",
        "can i get [an empty|a blank] [file called |file named |file |]{f}",
        "could you make $F empty",
    ],
    statements: &[
        "touch {f}",
        "[i want|i need|i'd like] an empty file [called |named |]{f}",
        "new empty file {f}",
        "an empty file {f}",
        "{f} should be empty",
        "empty file {f}",
        "[we need|there should be|i'd love] an empty [file |]{f}",
        "{f}, empty",
        "{f}: [create it empty|empty file|make it empty|leave it empty|empty it]",
        "$F [must|has to|needs to|shall] be empty",
        "an empty file [called|named] {f}[| should be created]",
        "> {f}",
        ": > {f}",
    ],
};

/// `{p}` is between line ends or marks, and may have several lines.
const BLOCK: Phrasings = Phrasings {
    commands: &[
        "[write|save|put|store] [this|the following|the text below|the code below|this block|these lines] [to|in|into|as] $F[:|]\n```\n{p}\n```",
        "[create|make|write] [|a file |a new file |a file called ]{f} with [this|the following|the text below|the following content|this content|this code]:\n```\n{p}\n```",
        "[create|make|write] {f}[:|]\n```\n{p}\n```",
        "[overwrite|fill] $F with\n```\n{p}\n```",
        "cat > {f} <<EOF\n{p}\nEOF",
        "cat <<EOF > {f}\n{p}\nEOF",
        "cat > {f} << 'EOF'\n{p}\nEOF",
        "[write|put|save]\n```\n{p}\n```\n[to|into|in] {f}",
        "[write|put|save] [this|the following]:\n\n{p}\n\n[to|into|in] [the file |a file called |]{f}",
    ],
    questions: &[],
    statements: &[
        "{f}:\n```\n{p}\n```",
        "{f}\n```\n{p}\n```",
        "[new file|file] {f}:\n```\n{p}\n```",
        "$F should [contain|say|look like this|be]:\n```\n{p}\n```",
        "[this|the following] [should go|goes] into {f}:\n```\n{p}\n```",
        "```\n{p}\n```\n[save|write|put] [this|that|it] [as|to|in] {f}",
        "cat > {f} <<EOF\n{p}\nEOF",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    match draw.between(0, 99) {
        0..46 => {
            let text = if draw.chance(10) { draw.lines(2, 5) } else { draw.text() };
            let t = quoted(draw, &text);
            let request = filled(&QUOTED.draw(draw), &[("f", &f), ("t", &t)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        46..66 => {
            let request = OPEN.draw(draw);
            let (shown, text) = if draw.chance(15) {
                let lines = draw.lines(2, 6);
                (lines.clone(), lines)
            } else {
                open_text(draw, &request)
            };
            let request = filled(&request, &[("f", &f), ("u", &shown)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        66..70 => {
            let text = if draw.chance(70) { draw.lines(2, 5) } else { bare(draw, false) };
            let request = filled(&BLOCK.draw(draw), &[("f", &f), ("p", &text)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        70..93 => {
            let last = draw.chance(65);
            let text = match draw.between(0, 99) {
                0..42 if last => draw.everyday(),
                // The file ends the request, so the text may be any that does not seem to go on.
                42..64 if last => loop {
                    let text = bare(draw, false);
                    let end = text.rsplit(' ').next().unwrap_or_default();
                    if !is_small_word(end) && !end.ends_with([',', ':', ';']) {
                        break text;
                    }
                },
                _ => bare(draw, true),
            };
            let phrasings = if last { &BEFORE_FILE } else { &MIDDLE };
            let request = filled(&phrasings.draw(draw), &[("f", &f), ("m", &text)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        _ => call("write", filled(&EMPTY.draw(draw), &[("f", &f)]), Call::write(path, "")),
    }
}

/// A bare text for the end of `request`: as it is put there, and without what is the request's. The mark at
/// the end of `can you … ?` is the request's.
pub(super) fn open_text(draw: &mut Draw, request: &str) -> (String, String) {
    const ASKED: &[&str] = &[
        "can you",
        "could you",
        "can u",
        "could u",
        "will you",
        "would you",
        "possible to",
        "you think you",
        "able to",
        "chance you",
        "could i",
        "may i",
    ];
    let text = loop {
        let text = if draw.chance(25) { draw.everyday() } else { bare(draw, false) };
        // A question mark at the end could be the request's.
        if !text.ends_with('?') {
            break text;
        }
    };
    let start = request.to_lowercase();
    if !ASKED.iter().any(|words| start.contains(words)) {
        return (text.clone(), text);
    }
    let text = text.trim_end_matches(['.', '!']).trim_end().to_owned();
    if text.is_empty() {
        return open_text(draw, "");
    }
    if draw.chance(60) { (format!("{text}?"), text) } else { (text.clone(), text) }
}

/// A text that can stand without quotes. `inner`: nothing in it could be taken for what follows it.
pub(super) fn bare(draw: &mut Draw, inner: bool) -> String {
    loop {
        let text = if inner && draw.chance(60) { draw.plain_words(1, 5) } else { draw.text() };
        let quotes = text.starts_with(['"', '\'', '`', '“', '‘', '«']);
        // A poem is to be made up and not to be written as `a poem`.
        let article = [
            "a ", "the ", "an ", "my ", "this ", "that ", "out ", "down ", "up ", "in ", "to ", "it ", "as ",
        ]
        .iter()
        .any(|word| text.starts_with(word));
        let joint = [" into ", " > ", "->", " called ", "it's"];
        let unclear = inner
            && (joint.iter().any(|word| format!(" {text} ").contains(word))
                || text.split(' ').any(|word| is_small_word(&word.to_lowercase()))
                || text.ends_with(['.', '?', '!', ':', ',', ';']));
        // An end that could be the request's own.
        let end = text.ends_with([' ', '"', '\'', '`']);
        if !quotes && !article && !unclear && !end {
            return text;
        }
    }
}
