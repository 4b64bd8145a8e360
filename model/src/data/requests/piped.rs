//! Requests about what was piped in: the data first, an empty line, the instruction.

use super::{Meaning, Request, call, named, ordinal, some_path};
use crate::data::{
    Call, DECLINED, Draw, TOO_LONG,
    contents::{lines_of_a_file, lines_of_prose},
    grammar::{Phrasings, filled},
};

const NTH: Phrasings = Phrasings {
    commands: &[
        "$R [the {n} one|the {n} file|the {n} of these|the {n} of them|the {n} of these files|the {n} file in the list|the {n} name|the {n} file of the list|the {n} listed file|the {n} document|the {n} file above|only the {n} one|just the {n} one|the {n}|the {n} entry|number {i}|file number {i}|the {n} of those|the {n} file here]",
    ],
    questions: &[
        "what does the {n} [one|file|of them|of these|of these files] [say|contain]",
        "what's in the {n} [one|file|of these]",
        "what is in the {n} [one|file|of them]",
    ],
    statements: &[
        "the {n} one",
        "{n} file please",
        "[i want|i'd like] to [see|read] the {n} [one|file]",
        "the {n} one please",
        "contents of the {n} [one|file]",
        "{n} one",
    ],
};
const NTH_PAGE: Phrasings = Phrasings {
    commands: &[
        "[fetch|get|open|download|load|read|visit|show me|show|check|look at|curl] [the {n} one|the {n} url|the {n} of these|the {n} link|the {n} page|the {n} of them|only the {n} one|the {n}|the {n} address]",
    ],
    questions: &[
        "what's [at|on] the {n} [one|url|page|link|site]",
        "what does the {n} [one|page|site|url] say",
    ],
    statements: &["the {n} one", "{n} url please", "[i want|i'd like] to see the {n} [one|page]"],
};
const COUNT: Phrasings = Phrasings {
    commands: &[
        "count [them|these|the lines|the files|the names|the entries|these files|these lines]",
        "[tell me|say] how many [there are|files there are|lines there are|these are]",
        "[tell me|give me] the number of [lines|files|entries|names|items]",
    ],
    questions: &[
        "how many are there",
        "how many [files|lines|names|entries|items|of them|rows] are there",
        "how many [files|lines|names|entries] [is this|are these|are listed|do you see|are in the list|do i have|are here]",
        "how many lines does this have",
        "how many is that",
    ],
    statements: &["how many?", "number of lines?", "count?", "count", "how many files?", "how many lines?"],
};
const WHICH: Phrasings = Phrasings {
    commands: &["[tell me|say|print|name|repeat|show|show me|output|give me] [only |just |]the {n} line"],
    questions: &["[what is|what's|which is] the {n} line", "what does the {n} line say"],
    statements: &["the {n} line", "{n} line?", "{n} line please"],
};
const KEEP: Phrasings = Phrasings {
    commands: &[
        "[save|save|write|store|put|keep|copy|dump|record|place|output|export|paste|pipe] [this|this|it|that|the above|this text|the text above|everything above|all of this|all this|the input|the data|the output|this output|these lines|what i piped in|the content|it all|them|these|this list|this data|the whole thing|the text] [to|to|as|as|in|into|under|to a file called|in a file named|in a new file called|into the file|in the file|to the file|as a file called|to a new file] {f}",
        "save this as {f}",
        "write this to {f}",
        "save this to {f}",
        "save it as {f}",
        "put this in {f}",
        "put this into {f}",
        "write it to {f}",
        "[create|make|write] {f} [with|from|out of|containing] [this|this text|the above|it|this content|the text above|these lines|the input|this data]",
        "[create|make] a [|new ]file [called |named |]{f} [with|from|containing|out of] [this|this text|the above|it|these lines|this data|the input]",
        "[make|turn] this [into|a file called] {f}",
        "[use|take] this as [the content of|the contents of|] {f}",
        "[overwrite|fill] {f} with [this|the above|this text]",
        "redirect this to {f}",
        "[write|save] [this|it] down in {f}",
    ],
    questions: &["can this be saved [as|in|to] {f}", "can i have this in {f}"],
    statements: &[
        "> {f}",
        "this should go [into|to|in] {f}",
        "this should be [saved|written|stored] [as|in|to] {f}",
        "[i want|i need|i'd like] this [in|saved as|saved to|written to|saved in|in a file called] {f}",
        "this is {f}, [save it|write it]",
        "save as {f}",
        "write to {f}",
        "{f}: [save it there|write it there|put it there|save this there]",
        "to {f}",
        "into {f} please",
        "this is the new {f}. [Write it.|Save it.]",
        "save to {f}",
        "tee {f}",
        "-> {f}",
    ],
};
const THOUGHT: Phrasings = Phrasings {
    commands: &[
        "[summarize|summarise|explain|translate|analyze|analyse|describe|rephrase|improve|review|correct|proofread|sort|simplify|shorten|classify|group|check|interpret|reformat|format|reverse|comment on|evaluate|fix|debug] [this|it|the above|this text|them|the input|these lines|that|this code|this data|this log|these]",
        "[translate|convert] [this|it|the text|the above] [into|to] [german|french|json|yaml|english|spanish|csv|xml|python|rust|a table|markdown]",
        "find the [bug|error|mistake|largest|longest|shortest|problem|duplicates|pattern] [in this|here|in it|]",
        "[tell me|explain] what [this means|is wrong|went wrong|this is about|this does|happened here|the problem is]",
        "write a [summary|commit message|test|title|reply|comment|docstring|report] for this",
        "remove the duplicates",
        "extract the [names|dates|numbers|emails|urls|errors]",
        "make a table [of|from|out of] this",
        "turn this into a [poem|story|table|list|function]",
        "pick the best one",
        "rank them",
        "give me the gist",
        "sum [them|these|it] up",
        "add them up",
        "rename them all",
        "delete them all",
        "read all of them",
        "compare them",
        "run this",
        "execute this",
    ],
    questions: &[
        "what does this mean",
        "what is wrong [here|with this|with it]",
        "why does this [fail|happen|not work]",
        "what is this [about|for|]",
        "is this [correct|right|good|valid|safe|ok]",
        "which [of these|one|of them] is [the best|the largest|the newest|important|the oldest|wrong|better]",
        "what happened here",
        "how can i [fix|improve] this",
        "what language is this",
        "who wrote this",
        "what should i do",
        "are there any errors",
        "what is the sum",
        "what is the average",
        "does this look right",
        "can you fix it",
        "what do these have in common",
        "what went wrong",
    ],
    statements: &[
        "tldr",
        "tl;dr",
        "summary please",
        "explanation?",
        "summary",
        "thoughts?",
        "why?",
        "what now?",
        "and now?",
        "meaning?",
        "review please",
        "opinions?",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    match draw.between(0, 99) {
        0..27 => nth(draw),
        27..33 => nth_page(draw),
        33..41 => counted(draw),
        41..45 => nth_line(draw),
        45..73 => kept(draw),
        73..91 => {
            let text = some_data(draw);
            let instruction = filled(&THOUGHT.draw(draw), &[]);
            say("decline", joined(&text, &instruction), DECLINED)
        }
        91..93 => {
            let text = if draw.chance(50) { draw.lines(2, 12) } else { lines_of_a_file(draw, 20).join("\n") };
            let text = format!("{}\n{}", text.trim(), draw.sentence(2, 6));
            say("decline", text.trim_start().to_owned(), DECLINED)
        }
        _ => {
            // The data has nothing to do with it.
            let text = some_data(draw);
            let request = match draw.between(0, 4) {
                0 => super::list::request(draw),
                1 | 2 => super::read::request(draw),
                3 => super::fetch::request(draw),
                _ => super::edit::request(draw),
            };
            Request { kind: "piped", text: joined(&text, &request.text), ..request }
        }
    }
}

fn say(kind: &'static str, text: String, answer: &str) -> Request {
    Request { kind, text, meaning: Meaning::Say(answer.to_owned()) }
}

fn joined(data: &str, instruction: &str) -> String {
    format!("{}\n\n{instruction}", data.trim_end_matches('\n'))
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= 400
}

fn some_data(draw: &mut Draw) -> String {
    match draw.between(0, 5) {
        0 => names(draw, 12).join("\n"),
        1 => lines_of_prose(draw, 5).join("\n").trim().to_owned(),
        2 => draw.text(),
        3 => draw.lines(1, 8),
        4 => lines_of_a_file(draw, 60).join("\n"),
        _ => lines_of_a_file(draw, 12).join("\n"),
    }
}

/// Files as `ls` gives them, often of one kind and in order.
fn names(draw: &mut Draw, most: u32) -> Vec<String> {
    let count = draw.small(2, most);
    let end = draw.extension();
    let front = if draw.chance(30) { format!("{}/", draw.directory()) } else { String::new() };
    let alike = draw.chance(65);
    let mut names: Vec<String> = (0..count)
        .map(|_| {
            if alike {
                format!("{front}{}.{end}", draw.stem())
            } else {
                format!("{front}{}", draw.file_name())
            }
        })
        .collect();
    if draw.chance(80) {
        names.sort();
    }
    names
}

/// Which of them, as a number and as words.
fn which(draw: &mut Draw, count: usize) -> (usize, String) {
    let count = u32::try_from(count).unwrap_or(1);
    let at = if draw.chance(45) { 1 } else { draw.between(1, count.min(5)) };
    let words = if (at == count || draw.chance(18)) && count > 1 {
        ("last".to_owned(), count)
    } else {
        (ordinal(draw, at), at)
    };
    (words.1 as usize - 1, words.0)
}

fn nth(draw: &mut Draw) -> Request {
    let most = draw.pick(&[6, 20]);
    let names = names(draw, most);
    let (at, n) = which(draw, names.len());
    let text = NTH.draw(draw);
    let (n, text) = if n == "last" {
        (n, text.replace("number {i}", "the last one").replace("file the last one", "the last file"))
    } else {
        (n, text)
    };
    let i = (at + 1).to_string();
    let text = joined(&names.join("\n"), &filled(&text, &[("n", &n), ("i", &i)]));
    let head: String = text.chars().take(240).collect();
    // Of a long list the start is seen.
    let seen = is_short(&text) || (n != "last" && head.matches('\n').count() > at);
    if seen { call("piped", text, Call::read(names[at].clone())) } else { say("decline", text, TOO_LONG) }
}

fn nth_page(draw: &mut Draw) -> Request {
    let pages: Vec<String> = (0..draw.between(2, 5)).map(|_| draw.url()).collect();
    let (at, n) = which(draw, pages.len());
    let text = joined(&pages.join("\n"), &filled(&NTH_PAGE.draw(draw), &[("n", &n)]));
    let head: String = text.chars().take(240).collect();
    let seen = is_short(&text) || (n != "last" && head.matches('\n').count() > at);
    if seen { call("piped", text, Call::fetch(pages[at].clone())) } else { say("decline", text, TOO_LONG) }
}

fn counted(draw: &mut Draw) -> Request {
    let lines = match draw.between(0, 2) {
        0 => names(draw, 30),
        1 => names(draw, 8),
        _ => (0..draw.between(1, 8)).map(|_| draw.words(1, 4)).collect(),
    };
    let text = joined(&lines.join("\n"), &filled(&COUNT.draw(draw), &[]));
    let answer = match lines.len() {
        1 => "There is 1 line.".to_owned(),
        count if count <= 10 && is_short(&text) => format!("There are {count} lines."),
        _ => TOO_LONG.to_owned(),
    };
    say("count", text, &answer)
}

fn nth_line(draw: &mut Draw) -> Request {
    let lines: Vec<String> = (0..draw.between(2, 6)).map(|_| draw.words(1, 6)).collect();
    let (at, n) = which(draw, lines.len());
    let text = joined(&lines.join("\n"), &filled(&WHICH.draw(draw), &[("n", &n)]));
    let answer =
        if is_short(&text) { format!("The {n} line is: {}", lines[at]) } else { TOO_LONG.to_owned() };
    say("count", text, &answer)
}

fn kept(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let data = match draw.between(0, 9) {
        0..3 => lines_of_a_file(draw, 6).join("\n"),
        3 => names(draw, 8).join("\n"),
        4 => draw.lines(1, 4),
        5 => lines_of_prose(draw, 3).join("\n"),
        6 => lines_of_a_file(draw, 60).join("\n"),
        _ => draw.text(),
    };
    let data = data.trim_end_matches('\n');
    let data = if data.trim().is_empty() { "x" } else { data };
    let f = if path.contains(' ') { f } else { named(draw, &path) };
    let text = joined(data, &filled(&KEEP.draw(draw), &[("f", &f)]));
    if is_short(&text) {
        call("piped", text, Call::write(path, format!("{data}\n")))
    } else {
        say("decline", text, TOO_LONG)
    }
}
