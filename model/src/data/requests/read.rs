//! Requests to read a file, or some of its lines.

use super::{Request, call, named, number, ordinal, some_path};
use crate::data::{
    Call, Draw,
    grammar::{Phrasings, expand, filled, noisy},
};

const WHOLE: Phrasings = Phrasings {
    commands: &[
        "$R $F",
        "$R $F",
        "$R $F",
        "$R $F",
        "$R $F",
        "$R $F",
        "$R $F",
        "[show|show me|print|display|give me|get|get me|output|read|dump|let me see|reveal|see|view|print out|read out|pull up|bring up|list|share|return] [the contents|the content|the text|the lines|the full text|all the lines|everything|what's written|what is written|the body|all the text|all of the text|the whole text] [of|in|inside|from|within] $F",
        "[tell me|tell us|find out|check|see|explain|show me|let me know|let me see|describe] what [$F says|is in $F|$F contains|$F is about|$F has in it|is written in $F|stands in $F|$F looks like|there is in $F|is inside $F|$F does|$F is for]",
        "[show me|tell me|let me see|check|see] [what's in|what's inside|whats in|what's written in] $F",
        "give me [a summary|a quick summary|an overview|an explanation|a rundown|the gist|the short version|a description|a look at|a view of|a preview] of $F",
        "[use|call|run|invoke] [the tool |]read_file [on|for|with] $F",
        "read [all of|the whole of|the whole|the entire|the complete|the full] [file |]{f}",
        "[open|read|show me|look at] $F and [tell me what it says|show me what's in it|tell me what is in it|explain it|summarize it|summarise it|show it to me|print it|tell me about it|tell me what it contains]",
        "[open|read|show|print|view|display|load] [this file|the following file|the following|this|this one]: {f}",
        "have a [look|peek|glance] at $F",
        "take a [quick |closer |]look at $F",
        "get the [text|content|contents] of $F",
        "put [the contents of |]$F on [the|my] screen",
        "[walk me through|talk me through|take me through] $F",
        "quote [the beginning of |the start of |]$F",
        "preview $F",
        "[forget|ignore|never mind] {g}, [read|show me|open|look at] {f} instead",
        "[read|open|show me] {f}, not {g}",
        "[read|open|show me] {f} instead of {g}",
        "help me understand $F",
        "start by reading $F",
        "begin with $F",
        "display $F [here|in the terminal|on screen]",
        "see what [$F says|$F contains|is in $F]",
    ],
    questions: &[
        "what does $F [say|contain|look like|have in it|have|hold|include|read|tell us|mean|do]",
        "[what's|whats|what is] [in|inside|written in|within] $F",
        "[what's|whats|what is] [in|inside|written in] $F",
        "[what's|whats|what is] $F about",
        "what are the contents of $F",
        "[what's|what is] the [content|text|story] of $F",
        "what does it say in $F",
        "what [do we have|have we got|have I got|do I have] in $F",
        "how does $F [look|start|begin|read]",
        "what text is in $F",
        "what can be found in $F",
        "what stands in $F",
        "what did I write in $F",
        "what's there in $F",
        "what have I written in $F",
        "may i see $F",
        "can i see $F",
        "could i see $F",
        "can i have a look at $F",
        "can i read $F",
        "may i have the contents of $F",
        "can we see $F",
        "can we look at $F",
        "what information is in $F",
        "which text is in $F",
        "what is $F for",
        "what kind of file is {f}",
        "what exactly does $F say",
        "what does our {f} say these days",
    ],
    statements: &[
        "{f}",
        "{f} please",
        "{f}, please",
        "{f}?",
        "[the |]contents of $F",
        "[the |]content of $F",
        "summary of $F",
        "read: {f}",
        "cat {f}",
        "less {f}",
        "more {f}",
        "cat {f}",
        "type {f}",
        "bat {f}",
        "vim {f}",
        "the file {f}: what does it say?",
        "{f}: [show it|read it|what is in it?|what does it say?|open it|contents?|summary?]",
        "read_file {f}",
        "[i want|i'd like|i would like|i need|i wish|i'd love|we want|we need] to [see|read|view|check|look at|look into|inspect|know what is in|know what's in|open|have a look at|review] $F",
        "[i want|i need|i'd like|give me|we need] [the contents of|the text of|what is in|what's in|everything in] $F",
        "there is a file [called |named |]{f}. [What does it say?|Read it.|Show it to me.|Open it.|What is in it?|Please read it.]",
        "there's a file [called |named |]{f}, [read it|show it to me|what does it say?|open it|what's in it?|please read it]",
        "i have a file [called |named |]{f}[, |; |. ][can you read it?|what's in it?|show me.|read it please|tell me what it says]",
        "[what about|how about|and|now|next:|then] $F",
        "in {f}, what does it say?",
        "i forgot what [is in $F|$F says|i wrote in $F]",
        "[i can't remember|i don't remember|not sure] what is in $F[, show me|. Show me.|, please read it]",
        "i edited {g}, now [show me|read|open] {f}",
        "i [already know|have read|know] {g}. Now [show me|read|open|what does] {f}",
        "reading {f} would help",
        "my {f}, [please|what does it say?|show it]",
        "i was wondering, what does {f} say?",
        "does {f} say anything [interesting|useful|new]?",
        "{f} - [what's in it?|what does it say?|read it|show me|contents please]",
        "file {f}",
        "need to see {f}",
        "lemme see {f}",
        "gimme {f}",
        "show {f}",
        "read {f}",
        "open {f}",
    ],
};

/// A file and the directory that it is in, named apart.
const APART: Phrasings = Phrasings {
    commands: &[
        "$R $F [in|inside|from|under|within|that is in|which is in|out of] $D",
        "$R $F [in|inside|from|under] $D",
        "[go to|look in|look into|open] $D and [read|open|show me|print] {f}",
        "[in|from] $D[, | ][read|open|show me|print|show] {f}",
    ],
    questions: &[
        "[what's|what is] in $F [in|inside|under|from] $D",
        "what does $F [in|inside|under|from] $D [say|contain]",
        "what does $F say [in|inside] $D",
    ],
    statements: &[
        "{f} [in|from|inside] $D",
        "in $D there is a file {f}. [Read it.|What does it say?|Show it to me.]",
        "in $D there's {f}, [read it|show me|what does it say?]",
    ],
};

const SPAN: &str = "[lines {a} to {b}|lines {a} to {b}|lines {a}-{b}|lines {a}-{b}|lines {a} through {b}|line {a} to {b}|line {a} to line {b}|lines {a} until {b}|lines {a}..{b}|lines {a} – {b}|lines {a} and {b}|lines {a} thru {b}|lines {a} - {b}|lines number {a} to {b}|lines {a} up to {b}|rows {a} to {b}|everything from line {a} to line {b}|the lines {a} to {b}|the lines from {a} to {b}|only lines {a} to {b}|just lines {a}-{b}|lines from {a} to {b}|the part from line {a} to {b}]";
const BETWEEN: &str = "[from line {a} to line {b}|from line {a} to {b}|from lines {a} to {b}|between lines {a} and {b}|between line {a} and line {b}|from {a} to {b}|starting at line {a} and ending at line {b}|from line {a} until line {b}|, lines {a} to {b}|, lines {a}-{b}|lines {a}-{b}|, only lines {a} to {b}|, but only lines {a} to {b}|, line {a} to {b}|starting at line {a} up to line {b}|from line {a} through {b}|(lines {a}-{b})]";
const ONE: &str = "[line {a}|line {a}|line {a}|line number {a}|the {n} line|line no. {a}|just line {a}|only line {a}|row {a}|the line {a}|the line number {a}|line #{a}]";
const FIRST: &str = "[the first {a} lines|the first {a} lines|the first {a} lines|first {a} lines|the top {a} lines|top {a} lines|the initial {a} lines|{a} lines from the start|{a} lines from the top|the first {a} rows|only the first {a} lines|just the first {a} lines|the starting {a} lines]";
const ON: &str = "[from line {a}|from line {a}|from line {a} on|from line {a} onwards|from line {a} onward|starting at line {a}|starting from line {a}|starting with line {a}|beginning at line {a}|beginning with line {a}|from line {a} to the end|from line {a} till the end|from line {a} until the end|line {a} onwards|from line number {a}|from the {n} line on|, starting at line {a}|, from line {a}|line {a} and everything after|from line {a} down|from line {a} to the last line]";

/// `%` stands for the phrase that says which lines.
const OF_LINES: Phrasings = Phrasings {
    commands: &[
        "$R % [of|in|from|of|of|inside] $F",
        "$R % [of|in|from|of|of] $F",
        "$R % [of|in|from|of|of] $F",
        "[show|show me|print|give me|read|display|let me see] % [of|in|from] $F",
        "[in|from|of] $F[,|] [show|show me|print|read|give me|display] %",
        "open $F [and|, then] [show me|print|read|go to|jump to] %",
        "cut % [from|out of] $F and show them to me",
        "quote % of $F",
        "[tell me|show me] what [is on|is in|stands on] % of $F",
    ],
    questions: &[
        "what [is|are] % of $F",
        "what does % of $F say",
        "[what's|what is] [on|in|at] % [of|in] $F",
        "can i see % [of|in|from] $F",
        "what do we have on % of $F",
    ],
    statements: &[
        "{f}: [show|print|read|give me] %",
        "[i want|i need|i'd like] [to see |to read |]% [of|in|from] $F",
        "% of $F",
        "% of $F please",
        "% from $F",
        "{f} %",
        "{f}, %",
    ],
};
const FILE_FIRST: Phrasings = Phrasings {
    commands: &[
        "$R $F %",
        "$R $F %",
        "$R $F %",
        "[read|show|print|open|display|view|show me|cat|output] $F %",
    ],
    questions: &["what does $F say %", "what is in $F %", "can i see $F %"],
    statements: &["{f} %", "[i want|i'd like|i need] to [read|see] $F %"],
};

pub fn request(draw: &mut Draw) -> Request {
    match draw.between(0, 99) {
        0..50 => whole(draw),
        50..57 => apart(draw),
        57..74 => span(draw),
        74..82 => one(draw),
        82..91 => first(draw),
        _ => onwards(draw),
    }
}

fn whole(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let other = draw.path();
    let g = named(draw, &other);
    let text = filled(&WHOLE.draw(draw), &[("f", &f), ("g", &g)]);
    call("read", text, Call::read(path))
}

fn apart(draw: &mut Draw) -> Request {
    let (directory, file) = (draw.directory(), draw.file_name());
    let (d, f) = (named(draw, &directory), named(draw, &file));
    let text = filled(&APART.draw(draw), &[("d", &d), ("f", &f)]);
    call("read", text, Call::read(format!("{directory}/{file}")))
}

fn line(draw: &mut Draw) -> u32 {
    let top = draw.pick(&[20, 100, 500, 3000]);
    draw.small(1, top)
}

fn span(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let start = line(draw);
    let end = start + draw.small(1, 200);
    let (a, b) = if draw.chance(10) {
        (number(draw, start), number(draw, end))
    } else {
        (start.to_string(), end.to_string())
    };
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("b", &b)];
    let call_ = Call::read_lines(path, start, Some(end));
    if draw.chance(6) {
        let text = draw.pick(&[
            "{f}:{a}-{b}",
            "read {f}:{a}-{b}",
            "show {f} {a}-{b}",
            "sed -n {a},{b}p {f}",
            "show me {f}:{a}-{b}",
            "open {f} at {a}-{b}",
        ]);
        return call("read lines", filled(text, slots), call_);
    }
    let (frames, phrase) = if draw.chance(60) { (OF_LINES, SPAN) } else { (FILE_FIRST, BETWEEN) };
    call("read lines", filled(&framed(draw, frames, phrase), slots), call_)
}

fn one(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let start = line(draw);
    let (a, n) = (start.to_string(), ordinal(draw, start));
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("n", &n)];
    let text = match draw.between(0, 9) {
        0 => draw
            .pick(&[
                "{f}:{a}",
                "read {f}:{a}",
                "show {f}:{a}",
                "sed -n {a}p {f}",
                "read {f}, line {a}",
                "show me line {a} in {f}",
            ])
            .to_owned(),
        1 => draw
            .pick(&[
                "read {f} line {a}",
                "{f} line {a}",
                "show {f} line {a}",
                "in {f}, what is on line {a}?",
                "what is line {a} of {f}?",
                "what does line {a} of {f} say?",
            ])
            .to_owned(),
        _ => framed(draw, OF_LINES, ONE),
    };
    call("read lines", filled(&text, slots), Call::read_lines(path, start, Some(start)))
}

fn first(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let count = if draw.chance(20) { 1 } else { draw.small(2, 200) };
    let a = number(draw, count);
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a)];
    let text = match draw.between(0, 9) {
        0 if count > 1 => filled(
            draw.pick(&["head -n {a} {f}", "head -{a} {f}", "head {f} -n {a}"]),
            &[("f", &f), ("a", &count.to_string())],
        ),
        _ if count == 1 => filled(
            &framed(
                draw,
                OF_LINES,
                "[the first line|the first line|line 1|the very first line|only the first line|just the first line|the top line|the 1st line|line one]",
            ),
            slots,
        ),
        _ => filled(&framed(draw, OF_LINES, FIRST), slots),
    };
    call("read lines", text, Call::read_lines(path, 1, Some(count)))
}

fn onwards(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let start = line(draw).max(2);
    let (a, n) = (start.to_string(), ordinal(draw, start));
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("n", &n)];
    let text = match draw.between(0, 9) {
        0 => draw.pick(&[
            "[show|read|print|give me] [the rest of |]{f} from line {a} on",
            "[skip to|go to|jump to] line {a} of {f} and [read on|read the rest|read from there]",
            "tail -n +{a} {f}",
            "continue reading {f} at line {a}",
            "continue with {f} from line {a}",
            "go on reading {f} from line {a}",
        ]),
        _ => "",
    };
    let text = if text.is_empty() { framed(draw, FILE_FIRST, ON) } else { expand(draw, text) };
    call("read lines", filled(&text, slots), Call::read_lines(path, start, None))
}

/// A frame with its phrase, asked for in one of the usual ways.
fn framed(draw: &mut Draw, frames: Phrasings, phrase: &str) -> String {
    let text = frames.draw(draw);
    let phrase = expand(draw, phrase);
    let phrase = noisy(draw, &phrase);
    let text = if phrase.starts_with(',') { text.replace(" %", "%") } else { text };
    text.replace('%', &phrase)
}
