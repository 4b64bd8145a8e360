//! Requests about what was piped in: the data first, an empty line, the instruction.

use super::{Meaning, Request, call, named, number, ordinal, some_path};
use crate::data::{
    Call, DECLINED, Draw, TOO_LONG,
    contents::{lines_of_a_file, lines_of_prose},
    grammar::{Phrasings, filled},
};

const NTH: Phrasings = Phrasings {
    commands: &[
        "$R [the {n} one|the {n} file|the {n} of these|the {n} of them|the {n} of these files|the {n} file in the list|the {n} name|the {n} file of the list|the {n} listed file|the {n} document|the {n} file above|only the {n} one|just the {n} one|the {n}|the {n} entry|number {i}|file number {i}|the {n} of those|the {n} file here]",
        "$R [the file on line {c}|the one on line {c}|the file in line {i}|the file named on line {i}|no. {i}|#{i}|file #{i}|entry {i}|entry number {c}|item {i}|item number {c}|number {c}|number {c}|number {c} of these|number {c} in the list|the file at position {i}|the one at position {c}]",
        "$R [the {i}{t} one|the {i}{t} entry|the {i}{t} file|the {i}{t}]",
        "$R [the {m} from the top|the {m} one from the top|the {m} file from the top|the {m} one down|the {m} name from the top]",
        "$R [the {n} item|the {n} in the list|the {n} of the list|the {n} one in this list|the {n} one on the list|the {n} of the above|the {n} of the files above|the {n} path|the {n} filename|the file listed {n}|the one listed {n}|the {n} thing in the list|the {n} result|the {n} match|the {n} one listed above|the {n} file listed above|the {n} name above|the one that comes {n}|the file mentioned {n}]",
        "$R [the {n} one|the {n} file|the {n} of them|the {n} entry]",
        "of these[ files|], [read|show me|open] the {n}[ one|]",
        "out of these[ files|], [read|show me|open] the {n} one",
        "[pick|take|choose|select] the {n} [one|file|of these] and [read it|open it|show it|show me what it says|tell me what's in it]",
        "from this list, [read|open|show me] [the {n} file|the {n} one|the {n} entry|number {c}]",
        "go to the {n} [one|file] and [read|open] it",
        "start with the {n} [one|file]",
        "ignore the others, [read|open] the {n} one",
        "[read|show|open|cat] {n} [one|file|entry]",
        "[tell me|show me] what [is in the {n} file|the {n} one says|the {n} file contains|number {c} says|is in the file on line {c}]",
        "[only|just] [read|open|show] the {n} [one|file]",
    ],
    questions: &[
        "what does the {n} [one|file|of them|of these|of these files] [say|contain]",
        "what's in the {n} [one|file|of these]",
        "what is in the {n} [one|file|of them]",
        "what does number {c} say",
        "what's in number {c}",
        "what's in the [file|one] on line {c}",
        "what does the file on line {c} [say|contain]",
        "what does the {m} [file|one] from the top [say|contain]",
        "what does the {n} [entry|item|listed file|of those|document|in the list] [say|contain]",
        "[can|could|may] i see the {n} [one|file|of these|of them|entry]",
        "[can|could|may] i see number {c}",
        "can the {n} [one|file] be opened",
        "which text is in the {n} [one|file]",
        "what do we have in the {n} one",
        "how does the {n} [one|file] look",
    ],
    statements: &[
        "the {n} one",
        "{n} file please",
        "[i want|i'd like] to [see|read] the {n} [one|file]",
        "the {n} one please",
        "contents of the {n} [one|file]",
        "{n} one",
        "#{i}",
        "#{i} please",
        "number {c}",
        "number {c}, please",
        "no. {i}",
        "the {i}{t} one",
        "the {m} from the top",
        "the {n} of these[?|]",
        "the {n} file, please",
        "[only|just] the {n} one",
        "[what about|how about|and|now] [the {n} one|number {c}|the {n} file]?",
        "my boss wants to [see|know what's in] the {n} [one|file]",
        "would you mind [opening|reading|showing me] the {n} [one|file|of these]?",
        "if you could [open|read|show me] the {n} [one|file][, that would be great|]",
        "i [need|want] [the contents of|to know what's in|what's in] [the {n} one|the {n} file|number {c}]",
        "line {i}: [read it|open it|what's in that file?]",
        "the {n} one looks interesting[, read it|. Open it.|, what does it say?]",
        "the {n} [file|one]: what's in it?",
        "the {n} one, what does it say?",
        "i [can't|don't] remember what's in the {n} one",
    ],
};
const NTH_PAGE: Phrasings = Phrasings {
    commands: &[
        "[fetch|get|open|download|load|read|visit|show me|show|check|look at|curl] [the {n} one|the {n} url|the {n} of these|the {n} link|the {n} page|the {n} of them|only the {n} one|the {n}|the {n} address]",
        "[fetch|get|open|visit|load|read|show me] [number {c}|link {i}|link number {c}|#{i}|url {i}|the link on line {c}|the one on line {c}|the {i}{t} one|the {i}{t} link|the {m} from the top|the {m} link from the top]",
        "[fetch|get|open|visit|load|read] the {n} [entry|item|link in the list|of these links|of these pages|one in the list|link above|one listed above]",
        "of these[ links| pages|], [open|fetch|visit] the {n}[ one|]",
        "[pick|take|choose] the {n} [one|link] and [fetch|open|read] it",
        "[tell me|see] what [is on the {n} page|the {n} one says|the {n} page says]",
        "follow the {n} link",
    ],
    questions: &[
        "what's [at|on] the {n} [one|url|page|link|site]",
        "what does the {n} [one|page|site|url] say",
        "what's on number {c}",
        "what does number {c} say",
        "can i see the {n} [one|page]",
        "what is behind the {n} link",
        "where does the {n} link lead",
        "is the {n} one up",
    ],
    statements: &[
        "the {n} one",
        "{n} url please",
        "[i want|i'd like] to see the {n} [one|page]",
        "#{i}",
        "number {c}",
        "the {n} [link|page|url], please",
        "only the {n} one",
        "would you mind [opening|fetching|visiting] the {n} [one|link]?",
        "my boss wants to know what's on the {n} page",
        "[what about|and|how about] the {n} [one|link|page]?",
    ],
};
const COUNT: Phrasings = Phrasings {
    commands: &[
        "count [them|these|the lines|the files|the names|the entries|these files|these lines]",
        "[tell me|say] how many [there are|files there are|lines there are|these are]",
        "[tell me|give me] the number of [lines|files|entries|names|items]",
        "[give me|do] a [count|line count|quick count]",
        "count [how many there are|all of them|what is listed|the items|all lines]",
        "[find out|work out|say] [how long this list is|how many these are]",
        "tell me the [total|line count|number of lines]",
    ],
    questions: &[
        "how many are there",
        "how many [files|lines|names|entries|items|of them|rows] are there",
        "how many [files|lines|names|entries] [is this|are these|are listed|do you see|are in the list|do i have|are here]",
        "how many lines does this have",
        "how many is that",
        "what's the [count|number of lines|line count|total number of lines]",
        "how long is [this list|the list]",
        "how many [files|names|lines] did i [paste|send you|give you|pipe in]",
        "how many lines [are above|is it|did you get|do you count]",
        "how many entries does [this|the] list have",
    ],
    statements: &[
        "how many?",
        "number of lines?",
        "count?",
        "count",
        "how many files?",
        "how many lines?",
        "wc -l",
        "[line count|total|number of entries], please",
        "i [need|want] to know how many [there are|lines there are|entries there are]",
        "my boss wants to know how many [these|there] are",
        "would you mind counting [these|them|the lines]?",
    ],
};
const WHICH: Phrasings = Phrasings {
    commands: &[
        "[tell me|say|print|name|repeat|show|show me|output|give me] [only |just |]the {n} line",
        "[repeat|quote|print|show me|read me|say] [line {i}|the {n} line above|the {n} line of this|the {n} line of the text|line number {i}]",
        "[tell me|say] what [is on|stands on] [the {n} line|line {i}]",
    ],
    questions: &[
        "[what is|what's|which is] the {n} line",
        "what does the {n} line say",
        "what [is|stands] on the {n} line",
        "what's [on|in] line {i}",
        "what is line {i}",
        "what does it say on the {n} line",
        "can i see the {n} line",
    ],
    statements: &[
        "the {n} line",
        "{n} line?",
        "{n} line please",
        "line {i}",
        "line {i} please",
        "[just|only] the {n} line",
        "i [need|want] the {n} line",
        "the {n} line, what does it say?",
    ],
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
        "[save|store|keep] [this|the above|it] under [the name |]{f}",
        "call it {f} and save it",
        "name it {f} and save it",
        "let {f} contain [this|the above]",
        "let this be the [content|text] of {f}",
        "make this the content of {f}",
        "[save|store|put|write] what [i piped in|is above|you see above|i pasted] [to|into|in] {f}",
        "[keep|save] this for later in {f}",
        "into {f}, [write|put] [this|the above]",
    ],
    questions: &[
        "can this be saved [as|in|to] {f}",
        "can i have this in {f}",
        "can [this|the above] [go|be put|be written] [in|into] {f}",
        "can [this|it] be stored under the name {f}",
    ],
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
        "cat > {f}",
        "this [belongs in|belongs into|goes in|goes into|goes to] {f}",
        "that's for {f}",
        "for {f}",
        "{f} <- this",
        "{f} should [contain|hold|have] [this|the above|these lines]",
        "above is [the content of|what goes into|the text for] {f}[, save it|. Write it.]",
        "would you mind [saving|writing|storing|putting] this [to|in] {f}?",
        "if you could save this [as|to|in] {f}[, that would be great|]",
        "i'd like [this|the above] to be [saved|stored|written] [as|in|to] {f}",
        "i don't want to lose this, [save it|put it] in {f}",
        "save, [filename|name]: {f}",
        "[filename|target|file]: {f}, [save it|write it]",
        "my boss needs this in {f}",
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
        0..32 => nth(draw),
        32..38 => nth_page(draw),
        38..45 => counted(draw),
        45..51 => nth_line(draw),
        51..75 => kept(draw),
        75..91 => {
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

/// One of several, and how it is called.
struct Which {
    at: usize,
    ordinal: String,
    /// Counted from the end, so it has no number.
    from_the_end: bool,
}

impl Which {
    fn draw(draw: &mut Draw, count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(1);
        if count > 1 && draw.chance(15) {
            return Self { at: count as usize - 1, ordinal: "last".to_owned(), from_the_end: true };
        }
        if count > 2 && draw.chance(4) {
            let words = draw.pick(&[
                "second to last",
                "second-to-last",
                "last but one",
                "next to last",
                "penultimate",
            ]);
            return Self { at: count as usize - 2, ordinal: words.to_owned(), from_the_end: true };
        }
        let nth = match draw.between(0, 99) {
            0..20 => 1,
            20..85 => draw.between(1, count.min(5)),
            _ => draw.between(1, count.min(8)),
        };
        Self { at: nth as usize - 1, ordinal: ordinal(draw, nth), from_the_end: false }
    }

    /// A request for it: `{n}` is its ordinal, `{m}` the same but never `last`, `{i}` its number, `{c}` too, maybe
    /// in words, and `{t}` what makes an ordinal of digits.
    fn ask(&self, draw: &mut Draw, phrasings: Phrasings) -> String {
        let text = loop {
            let text = phrasings.draw(draw);
            if !self.from_the_end || !["{m}", "{i}", "{c}"].iter().any(|slot| text.contains(slot)) {
                break text;
            }
        };
        let nth = u32::try_from(self.at + 1).unwrap_or(1);
        let c = if draw.chance(40) { nth.to_string() } else { number(draw, nth) };
        let slots: &[(&str, &str)] = &[
            ("n", &self.ordinal),
            ("m", &self.ordinal),
            ("i", &nth.to_string()),
            ("c", &c),
            ("t", ["st", "nd", "rd"].get(self.at).unwrap_or(&"th")),
        ];
        filled(&text, slots)
    }

    /// Returns true if it is in the part of a long text that is shown.
    fn is_seen(&self, text: &str) -> bool {
        let head: String = text.chars().take(240).collect();
        is_short(text) || (!self.from_the_end && head.matches('\n').count() > self.at)
    }
}

fn nth(draw: &mut Draw) -> Request {
    let most = draw.pick(&[6, 12, 20]);
    let names = names(draw, most);
    one_of(draw, &names, NTH, Call::read)
}

fn nth_page(draw: &mut Draw) -> Request {
    let pages: Vec<String> = (0..draw.between(2, 7)).map(|_| draw.url()).collect();
    one_of(draw, &pages, NTH_PAGE, Call::fetch)
}

/// A request about one of the lines, which is named by its place.
fn one_of(draw: &mut Draw, lines: &[String], phrasings: Phrasings, meant: fn(String) -> Call) -> Request {
    let which = Which::draw(draw, lines.len());
    let text = joined(&lines.join("\n"), &which.ask(draw, phrasings));
    if which.is_seen(&text) {
        call("piped", text, meant(lines[which.at].clone()))
    } else {
        say("decline", text, TOO_LONG)
    }
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
    let lines: Vec<String> = (0..draw.between(2, 8)).map(|_| draw.words(1, 6)).collect();
    let which = Which::draw(draw, lines.len());
    let instruction = which.ask(draw, WHICH);
    // Said as it was asked, a number as an ordinal.
    let n = if instruction.contains(&which.ordinal) {
        which.ordinal.clone()
    } else {
        let end = ["st", "nd", "rd"].get(which.at).unwrap_or(&"th");
        format!("{}{end}", which.at + 1)
    };
    let text = joined(&lines.join("\n"), &instruction);
    let answer =
        if is_short(&text) { format!("The {n} line is: {}", lines[which.at]) } else { TOO_LONG.to_owned() };
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
