//! Requests to write a file.

use super::{Request, call, quoted, some_path};
use crate::data::{
    Call, Draw,
    grammar::{Phrasings, filled},
};

/// `{t}` is in quotes.
const QUOTED: Phrasings = Phrasings {
    commands: &[
        "[write|write|write|save|save|put|store|note|add|insert|record|dump|log|print|output|place|drop|enter|type|note down|write down|jot down|persist|copy|paste|stick|set down] [|||the text |the words |the line |the following text |this text: |the string |this: |the sentence |just |only |the phrase |the message |the value |the content |exactly ][{t}] [to|to|to|into|in|into the|to a new|in a new|as|in the] [file |file called |file named |file ]{f}",
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
    ],
    questions: &[
        "can {f} [say|contain] {t}",
        "may i have a file {f} [with|that says|containing] {t}",
        "can i have a [new |]file {f} [with|that says|containing] {t}",
        "could we have {t} in {f}",
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
    ],
    questions: &[],
    statements: &[
        "[i want|i need|i'd like] [a file|a new file|a file called|] {f} [with|that says|containing|which says|that contains] {u}",
        "{f} should [contain|say|read] {u}",
        "new file {f}: {u}",
        "new file {f} with {u}",
        "{f}: write {u}",
        "$F should [contain|say] {u}",
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
    ],
    questions: &[],
    statements: &[
        "[i want|i need|i'd like] {m} [in|written to|saved to|saved in|saved as|stored in] {f}",
        "{m} -> {f}",
        "[i want|i need] {m} to be in {f}",
        "{m} should be in {f}",
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
    ],
    questions: &[],
    statements: &["echo {m} > {f}", "write {m} to {f}", "save {m} in {f}"],
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
    ],
    questions: &["can i have an empty file {f}", "can i have an empty {f}"],
    statements: &[
        "touch {f}",
        "[i want|i need|i'd like] an empty file [called |named |]{f}",
        "new empty file {f}",
        "an empty file {f}",
        "{f} should be empty",
        "empty file {f}",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    match draw.between(0, 99) {
        0..57 => {
            let text = if draw.chance(10) { draw.lines(2, 5) } else { draw.text() };
            let t = quoted(draw, &text);
            let request = filled(&QUOTED.draw(draw), &[("f", &f), ("t", &t)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        57..75 => {
            let text = if draw.chance(15) { draw.lines(2, 6) } else { bare(draw, false) };
            let request = filled(&OPEN.draw(draw), &[("f", &f), ("u", &text)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        75..93 => {
            let last = draw.chance(70);
            let text = if last && draw.chance(50) { draw.everyday() } else { bare(draw, true) };
            let phrasings = if last { &BEFORE_FILE } else { &MIDDLE };
            let request = filled(&phrasings.draw(draw), &[("f", &f), ("m", &text)]);
            call("write", request, Call::write(path, format!("{text}\n")))
        }
        _ => call("write", filled(&EMPTY.draw(draw), &[("f", &f)]), Call::write(path, "")),
    }
}

/// A text that can stand without quotes. `inner`: nothing in it could be taken for what follows it.
fn bare(draw: &mut Draw, inner: bool) -> String {
    loop {
        let text = if inner && draw.chance(60) { draw.words(1, 6) } else { draw.text() };
        let quotes = text.starts_with(['"', '\'', '`', '“', '‘', '«']);
        // A poem is to be made up and not to be written as `a poem`.
        let article =
            ["a ", "the ", "an ", "my ", "this ", "that "].iter().any(|word| text.starts_with(word));
        let joint = [" to ", " in ", " into ", " as ", " > ", " and ", "->", " called ", "it's"];
        let unclear = inner
            && (joint.iter().any(|word| format!(" {text} ").contains(word))
                || text.ends_with(['.', '?', '!', ':']));
        // An end that could be the request's own.
        let end = text.ends_with([' ', '"', '\'', '`']);
        if !quotes && !article && !unclear && !end {
            return text;
        }
    }
}
