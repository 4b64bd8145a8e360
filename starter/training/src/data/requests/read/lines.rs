//! Requests to read some lines of a file.

use super::super::{Request, call, number, number_words, ordinal, some_path};
use crate::data::{
    Call, Draw,
    grammar::{Phrasings, expand, filled, noisy},
};

const SPAN: &str = "[lines {a} to {b}|lines {a} to {b}|lines {a}-{b}|lines {a}-{b}|lines {a} through {b}|line {a} to {b}|line {a} to line {b}|lines {a} until {b}|lines {a}..{b}|lines {a} – {b}|lines {a} and {b}|lines {a} thru {b}|lines {a} - {b}|lines number {a} to {b}|lines {a} up to {b}|rows {a} to {b}|everything from line {a} to line {b}|the lines {a} to {b}|the lines from {a} to {b}|only lines {a} to {b}|just lines {a}-{b}|lines from {a} to {b}|the part from line {a} to {b}|lines {a} down to {b}|lines {a} till {b}|lines {a} all the way to {b}|L{a}-L{b}|L{a}-{b}|{a}-{b}|lines {a}:{b}|lines {a},{b}|lines no. {a} to {b}|lines nr {a} - {b}|the passage from line {a} to line {b}|the section between lines {a} and {b}|the range {a}-{b}|range {a} to {b}|line range {a}-{b}|everything between lines {a} and {b}|the lines between {a} and {b}|line numbers {a} to {b}|the bit from line {a} to {b}|lines {a} to {b} inclusive|lines {a} to {b} only|lines {a} through to {b}|the text on lines {a} to {b}|the code on lines {a}-{b}|line {a} through line {b}|line {a} - line {b}|line {a} through {b}|the block from line {a} to {b}|line {a} till {b}]";
const BETWEEN: &str = "[from line {a} to line {b}|from line {a} to {b}|from lines {a} to {b}|between lines {a} and {b}|between line {a} and line {b}|from {a} to {b}|starting at line {a} and ending at line {b}|from line {a} until line {b}|, lines {a} to {b}|, lines {a}-{b}|lines {a}-{b}|, only lines {a} to {b}|, but only lines {a} to {b}|, line {a} to {b}|starting at line {a} up to line {b}|from line {a} through {b}|(lines {a}-{b})|from line {a} down to line {b}|from line {a} down to {b}|from {a} through {b}|from {a} down to {b}|between {a} and {b}|, line {a} till {b}|at lines {a} to {b}|on lines {a} to {b}|in lines {a} to {b}|for lines {a} to {b}|: lines {a} to {b}|; lines {a}-{b}|but only from line {a} to {b}|, nothing but lines {a} to {b}|starting from line {a} and stopping at line {b}|, start at line {a}, stop at {b}|beginning with line {a} and up to line {b}|, first line {a}, last line {b}|L{a}-L{b}|({a} to {b})|, {a}-{b}|from line {a} all the way to line {b}|from line {a} till line {b}|from {a} till {b}|from line {a} thru {b}|between line {a} and line {b}|, {a} to {b}]";
const ONE: &str = "[line {a}|line {a}|line {a}|line number {a}|the {n} line|line no. {a}|just line {a}|only line {a}|row {a}|the line {a}|the line number {a}|line #{a}|line {a} only|line {a} alone|nothing but line {a}|L{a}|the {n} row|the {n} line only|only the {n} line|just the {n} line|the single line {a}|line nr {a}|line nr. {a}|line no {a}|the text on line {a}|the text of the {n} line|the content of line {a}|exactly line {a}|line {w}|line {w}|line number {w}|line {w} only|the {n} line]";
const FIRST: &str = "[the first {a} lines|the first {a} lines|the first {a} lines|first {a} lines|the top {a} lines|top {a} lines|the initial {a} lines|{a} lines from the start|{a} lines from the top|the first {a} rows|only the first {a} lines|just the first {a} lines|the starting {a} lines|the opening {a} lines|the opening {a} lines|the leading {a} lines|the {a} first lines|{a} lines from the beginning|{a} lines at the top|the {a} lines at the top|the {a} top lines|the topmost {a} lines|the {a} topmost lines|the first {a} lines only|no more than the first {a} lines|the very first {a} lines|first {a} lines only|everything up to line {a}|all lines up to line {a}|the lines up to number {a}|lines 1 to {a}|lines 1-{a}|the first {a} lines and no more|all of the first {a} lines]";
const ON: &str = "[from line {a}|from line {a}|from line {a} on|from line {a} onwards|from line {a} onward|starting at line {a}|starting from line {a}|starting with line {a}|beginning at line {a}|beginning with line {a}|from line {a} to the end|from line {a} till the end|from line {a} until the end|line {a} onwards|from line number {a}|from the {n} line on|, starting at line {a}|, from line {a}|line {a} and everything after|from line {a} down|from line {a} to the last line|from line {a} forward|from line {a} to the very end|from line {a} till the very end|from {a} on|from {a} onwards|from {a} to the end|, line {a} to the end|, lines {a} to the end|, everything from line {a}|, line {a} and below|but only from line {a}|, but start at line {a}|, begin at line {a}|from the {n} line to the end|from line {a} to its end|beginning from line {a}|: from line {a}|starting on line {a}]";

const UP_TO: &str = "[up to line {a}|up to line {a}|up to line {a}|up to and including line {a}|until line {a}|through line {a}|down to line {a}|from the start to line {a}|from the top to line {a}|from the top down to line {a}|from the beginning to line {a}|from the beginning until line {a}|from line 1 to line {a}|from line one to {a}|till line {a}|, but only the first {a} lines|, only the first {a} lines|, just the first {a} lines|, first {a} lines|, top {a} lines|, but no further than line {a}|, only up to line {a}|but stop at line {a}|and stop at line {a}|and stop after line {a}|and stop after {a} lines|, the first {a} lines|, {a} lines from the top|: first {a} lines|, the opening {a} lines]";
/// To the end of the file, as a noun.
const REST: &str = "[everything from line {a} on|everything from line {a} onwards|everything from line {a}|all lines from {a} on|all lines from line {a} to the end|the rest from line {a}|the part from line {a} to the end|line {a} and everything after it|line {a} and all that follows|lines {a} to the end|lines {a} to the last|line {a} to the end|lines {a} and following|the remainder from line {a}|the {n} line and everything below]";
/// The same, said by what is left out: `{s}` lines.
const SKIPPED: &str = "[all but the first {s} lines|everything but the first {s} lines|everything except the first {s} lines|all lines except the first {s}|all of it except the first {s} lines]";

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
        "[take|pick|pull|extract|grab|fish] % [from|out of] $F[ and show me| for me|]",
        "[scroll|go|jump|turn] to % [of|in] $F and [show me what's there|read it out|tell me what it says]",
        "[limit|restrict] the output to % of $F",
        "show [nothing but|no more than] % of $F",
        "$R [only|just] % [of|from|in] $F",
        "$R % of $F[, not the whole file|, not more|, nothing else|, the rest doesn't matter|, I don't need the rest| and nothing else]",
        "in the file {f}, [show me|read|print|look at] %",
        "[for|with] $F, [show|print|read|give me] %",
        "read $F, but [only |just ]%",
        "open $F, % [is|are] enough",
        "in $F[,|] [look at|check|find] %",
    ],
    questions: &[
        "what [is|are] % of $F",
        "what does % of $F say",
        "[what's|what is] [on|in|at] % [of|in] $F",
        "can i see % [of|in|from] $F",
        "what do we have on % of $F",
        "what do % of $F say",
        "what can be read [on|in] % of $F",
        "what's written [on|in|at] % of $F",
        "what is there [on|in] % of $F",
        "[could|may] i see % of $F",
        "could we look at % of $F",
        "can % of $F be [shown|printed|displayed]",
        "is it possible to see % of $F",
        "what stands [on|in|at] % of {f}",
        "in $F, what [is|are] %",
        "in {f}, what does it say [on|in|at] %",
        "which text is [on|in] % of $F",
        "how [do|does] % of $F [read|look|go]",
    ],
    statements: &[
        "{f}: [show|print|read|give me] %",
        "[i want|i need|i'd like] [to see |to read |]% [of|in|from] $F",
        "% of $F",
        "% of $F please",
        "% from $F",
        "{f} %",
        "{f}, %",
        "{f} - %",
        "{f}; %",
        "{f}: %",
        "{f}, %, please",
        "file {f}, %",
        "% (of {f})",
        "%, {f}",
        "[only|just] % of $F",
        "% of $F [is all i need|will do|would be enough|should do|, nothing else|, no more]",
        "i [only|just] [need|want] % of $F",
        "i don't need all of $F, [only|just] %",
        "not the whole file, [only|just] % of {f}",
        "the error [is|must be] [in|on|at] % of $F[, show me|. Show it.|, let me see]",
        "the compiler complains about % of $F[, show me|. What does it say?|, let me see]",
        "my [boss|colleague] [asked about|wants to see|needs] % of $F",
        "there's something [odd|strange] [in|on] % of $F, [show me|let me see|print it]",
        "would you mind [reading|showing me|printing] % of $F?",
        "if you could [show me|read|print] % of $F[, that would be great|]",
        "% of $F would [help|be useful|be enough|interest me]",
        "quick look at % of $F[?|]",
        "[i'm|i am] [interested in|curious about] % of $F",
        "from {f} [i need|i want|i'd like] %",
        "of {f} i [only|just] [need|want] %",
        "[what about|how about|and|now] % of $F?",
        "i forgot what is [on|in|at] % of $F",
        "before i go on, [show me|read] % of $F",
    ],
};
const FILE_FIRST: Phrasings = Phrasings {
    commands: &[
        "$R $F %",
        "$R $F %",
        "$R $F %",
        "[read|show|print|open|display|view|show me|cat|output] $F %",
    ],
    questions: &[
        "what does $F say %",
        "what is in $F %",
        "can i see $F %",
        "what [stands|is written] in $F %",
        "[could|may] i see $F %",
        "how does $F [read|look|go] %",
    ],
    statements: &[
        "{f} %",
        "[i want|i'd like|i need] to [read|see] $F %",
        "the [text|contents|content] of $F %",
        "would you mind [reading|showing me] $F %?",
        "i [only |just |][want|need] $F %",
        "if you could [read|show me|print] $F %[, that would be great|]",
        "my boss wants to see $F %",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    match draw.between(0, 99) {
        0..37 => span(draw),
        37..56 => one(draw),
        56..83 => first(draw),
        _ => onwards(draw),
    }
}

fn line(draw: &mut Draw) -> u32 {
    let top = draw.pick(&[20, 100, 500, 3000]);
    draw.small(1, top)
}

fn span(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let start = line(draw);
    let end = start + draw.small(1, 200);
    let (a, b) = if draw.chance(18) {
        (spelled(draw, start), spelled(draw, end))
    } else {
        (start.to_string(), end.to_string())
    };
    let (i, j) = (start.to_string(), end.to_string());
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("b", &b), ("i", &i), ("j", &j)];
    let call_ = Call::read_lines(path, start, Some(end));
    if draw.chance(8) {
        let text = draw.pick(&[
            "{f}:{i}-{j}",
            "read {f}:{i}-{j}",
            "show {f} {i}-{j}",
            "sed -n {i},{j}p {f}",
            "sed -n '{i},{j}p' {f}",
            "show me {f}:{i}-{j}",
            "open {f} at {i}-{j}",
            "{f} {i}..{j}",
            "{f}, {i} to {j}",
            "{f} L{i}-L{j}",
            "{f}#L{i}-L{j}",
            "{f}:{i},{j}",
            "{f} {i}:{j}",
            "cat {f} | sed -n {i},{j}p",
            "bat -r {i}:{j} {f}",
            "bat --line-range {i}:{j} {f}",
            "awk 'NR>={i} && NR<={j}' {f}",
            "read_file {f} {i} {j}",
            "cat {f} {i}-{j}",
        ]);
        return call("read lines", filled(text, slots), call_);
    }
    let (frames, phrase) = if draw.chance(60) { (OF_LINES, SPAN) } else { (FILE_FIRST, BETWEEN) };
    call("read lines", filled(&framed(draw, frames, phrase), slots), call_)
}

fn one(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let start = if draw.chance(25) { draw.between(1, 20) } else { line(draw) };
    let (a, n, w) = (start.to_string(), ordinal(draw, start), spelled(draw, start));
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("n", &n), ("w", &w)];
    let text = match draw.between(0, 9) {
        0 => draw
            .pick(&[
                "{f}:{a}",
                "read {f}:{a}",
                "show {f}:{a}",
                "sed -n {a}p {f}",
                "sed -n '{a}p' {f}",
                "read {f}, line {a}",
                "show me line {a} in {f}",
                "{f}#L{a}",
                "{f} L{a}",
                "open {f}:{a}",
                "cat {f} | sed -n {a}p",
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
                "what does {f} say on line {a}?",
                "what does {f} have on line {w}?",
                "what's on line {a}, in {f}?",
                "{f}, line {a} only",
                "what is the {n} line of {f}?",
                "line {w} of {f}, what does it say?",
            ])
            .to_owned(),
        _ => framed(draw, OF_LINES, ONE),
    };
    call("read lines", filled(&text, slots), Call::read_lines(path, start, Some(start)))
}

fn first(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let count = match draw.between(0, 99) {
        0..16 => 1,
        16..60 => draw.between(2, 20),
        60..70 => draw.pick(&[25, 30, 40, 50, 60, 100, 200]),
        _ => draw.small(2, 200),
    };
    let (a, i) = (spelled(draw, count), count.to_string());
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("i", &i)];
    let text = match draw.between(0, 99) {
        _ if count == 1 => framed(
            draw,
            OF_LINES,
            "[the first line|the first line|line 1|the very first line|only the first line|just the first line|the top line|the 1st line|line one|the opening line|the first row|the first line only|nothing but the first line]",
        ),
        0..9 => draw
            .pick(&[
                "head -n {i} {f}",
                "head -{i} {f}",
                "head {f} -n {i}",
                "head -n{i} {f}",
                "cat {f} | head -n {i}",
                "cat {f} | head -{i}",
                "head --lines={i} {f}",
                "head {i} {f}",
                "sed {i}q {f}",
            ])
            .to_owned(),
        9..32 => framed(draw, FILE_FIRST, UP_TO),
        _ => framed(draw, OF_LINES, FIRST),
    };
    call("read lines", filled(&text, slots), Call::read_lines(path, 1, Some(count)))
}

fn onwards(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let skipped = draw.chance(22);
    let start = if skipped { draw.small(3, 21) } else { line(draw).max(2) };
    let (a, n, s) = (start.to_string(), ordinal(draw, start), spelled(draw, start - 1));
    let slots: &[(&str, &str)] = &[("f", &f), ("a", &a), ("n", &n), ("s", &s)];
    let text = match draw.between(0, 9) {
        0..4 if skipped => framed(draw, OF_LINES, SKIPPED),
        _ if skipped => {
            let text = skipping(draw);
            expand(draw, text)
        }
        0 => {
            let text = draw.pick(&[
                "[show|read|print|give me] [the rest of |]{f} from line {a} on",
                "[skip to|go to|jump to] line {a} of {f} and [read on|read the rest|read from there]",
                "tail -n +{a} {f}",
                "continue reading {f} at line {a}",
                "continue with {f} from line {a}",
                "go on reading {f} from line {a}",
                "[i have read|i know] {f} up to line {a}, [read on from there|continue there|go on there]",
                "cat {f} | tail -n +{a}",
                "sed -n '{a},$p' {f}",
                "the rest of {f}, from line {a}",
                "what comes in {f} from line {a} on?",
            ]);
            if text.contains('$') { text.to_owned() } else { expand(draw, text) }
        }
        1..4 => framed(draw, OF_LINES, REST),
        _ => framed(draw, FILE_FIRST, ON),
    };
    call("read lines", filled(&text, slots), Call::read_lines(path, start, None))
}

/// `{s}` lines are left out.
fn skipping(draw: &mut Draw) -> &'static str {
    draw.pick(&[
        "skip the first {s} lines of {f}[ and show the rest| and read on| and read the rest|]",
        "[show|read|print|show me] {f} without the first {s} lines",
        "[show|read|print] {f}[,|] [skipping|leaving out|omitting] the first {s} lines",
        "[show|read|open] {f} but [skip|leave out] the first {s} lines",
        "leave out the first {s} lines of {f} and show me the rest",
    ])
}

/// A number in digits or, more often than elsewhere, in words.
fn spelled(draw: &mut Draw, n: u32) -> String {
    match n {
        21..100 if draw.chance(40) => {
            let tens = number_words::TENS[n as usize / 10 - 2];
            let ones = ["", "-one", "-two", "-three", "-four", "-five", "-six", "-seven", "-eight", "-nine"]
                [n as usize % 10];
            let ones = if draw.chance(20) { ones.replace('-', " ") } else { ones.to_owned() };
            format!("{tens}{ones}")
        }
        100 if draw.chance(40) => draw.pick(&["hundred", "one hundred"]).to_owned(),
        200 if draw.chance(40) => "two hundred".to_owned(),
        _ if draw.chance(35) => {
            // Up to twenty in words.
            (0..6)
                .map(|_| number(draw, n))
                .find(|text| text.starts_with(char::is_alphabetic))
                .unwrap_or(n.to_string())
        }
        _ => n.to_string(),
    }
}

/// A frame with its phrase, asked for in one of the usual ways.
fn framed(draw: &mut Draw, frames: Phrasings, phrase: &str) -> String {
    let text = frames.draw(draw);
    let phrase = expand(draw, phrase);
    let phrase = noisy(draw, &phrase);
    let text = if phrase.starts_with([',', ':', ';']) { text.replace(" %", "%") } else { text };
    // `only` is said once.
    let limited = ["only", "just", "nothing but", "exactly"].iter().any(|word| phrase.contains(word));
    let text = match limited {
        true => text.replace("only %", "%").replace("just %", "%").replace("nothing but %", "%"),
        false => text,
    };
    text.replace('%', &phrase)
}
