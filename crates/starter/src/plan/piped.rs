//! A request that begins with piped data, and what its instruction asks about the data: their count, or the line at a place.

use crate::{
    number_words::{ORDINALS, numeral},
    numbers::numbers,
    sentences::DECLINED,
};

/// Places that are counted from the end, with how many lines follow.
const FROM_THE_END: [(&str, usize); 7] = [
    ("last but one", 1),
    ("second to last", 1),
    ("third to last", 2),
    ("next to last", 1),
    ("penultimate", 1),
    ("last", 0),
    ("final", 0),
];
/// Words for the first line.
const FIRST: [&str; 1] = ["top"];

/// Words after which a place does not mean a single line, or not the line at that place.
const NOT_ONE_LINE: &str = " after all before beginning between both bottom but center centre each end even every except \
                            following half longest middle next not odd other others past previous random rest shortest since \
                            skip starting than then through till until up ";

/// The words of questions for the number of lines.
const COUNTING: &str = " a above all are count counting did do does entries files get give got have here how i in is it \
                        items just l length line lines list listed long many me much names number of paste please pls quick \
                        rows say see send tell that the them there these this those total wc what whats you ";
/// One of these is in each such question.
const COUNTS: [&str; 8] =
    ["how many", "how long", "count", "counting", "number of", "line count", "wc", "total number"];

/// The words of questions for a line, apart from its place.
const SHOWING: &str = " a above can could data does for give here i in input is it just kontekst line me name need of on \
                       once one only output please pls print quote read repeat row s say says see show stands tell text \
                       the these this want what whats which would you ";

/// Words for what a line may name. Who speaks of them does not mean the line itself.
const NAMED: [&str; 8] =
    [" file ", " files ", " one on line ", " link ", " url ", " page ", " document ", " address "];

/// The data of a request and the instruction after them.
pub(crate) struct Piped<'a> {
    pub data: &'a str,
    pub instruction: &'a str,
}

/// The line of the data that an instruction asks for by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picked<'a> {
    Line(&'a str),
    /// The instruction has no place, or one that is not understood.
    Unknown,
}

impl<'a> Piped<'a> {
    pub(crate) fn new(request: &'a str) -> Option<Self> {
        let (data, instruction) = request.rsplit_once("\n\n")?;
        Some(Self { data, instruction })
    }

    pub(crate) fn picked(&self) -> Picked<'a> {
        let lines = self.data.split('\n').count();
        let at = if lines == 1 { Some(0) } else { place(self.instruction, lines) };
        at.and_then(|at| self.data.split('\n').nth(at)).map_or(Picked::Unknown, Picked::Line)
    }

    /// The answer to a question for the number of lines or for a line. An instruction that speaks of lines and is not
    /// understood is declined, because the model cannot count.
    pub(super) fn answer(&self) -> Option<String> {
        let lines = self.data.split('\n').count();
        let words = words(self.instruction);
        let text = format!(" {} ", words.join(" "));
        let all_in = |list: &str| words.iter().all(|word| list.contains(&format!(" {word} ")));
        let counts = COUNTS.iter().any(|phrase| text.contains(&format!(" {phrase} ")));
        let speaks_of_a_line =
            [" line ", " lines ", " row ", " rows "].iter().any(|word| text.contains(word));
        if counts && all_in(COUNTING) {
            return Some(if lines == 1 {
                "There is 1 line.".to_owned()
            } else {
                format!("There are {lines} lines.")
            });
        }
        if !counts && !speaks_of_a_line {
            return None;
        }
        if !counts && NAMED.iter().any(|word| text.contains(word)) {
            return None;
        }
        let found = read_place(self.instruction, lines).filter(|found| !counts && is_showing(&found.rest));
        let line = |at: usize| self.data.split('\n').nth(at);
        Some(match found.map(|found| (line(found.at), found.name)) {
            Some((Some(line), name)) => format!("The {name} line is: {line}"),
            Some((None, _)) => format!("There are only {lines} lines."),
            None => DECLINED.to_owned(),
        })
    }
}

fn is_showing(words: &[String]) -> bool {
    words.iter().all(|word| SHOWING.contains(&format!(" {word} ")))
}

/// The index of the line that a text means which is nothing but a place, such as `the second line`.
pub(super) fn place_alone(text: &str, lines: usize) -> Option<usize> {
    let found = read_place(text, lines)?;
    let around = ["the", "line", "row", "only", "just"];
    let is_alone = found.rest.iter().all(|word| around.contains(&word.as_str()));
    (is_alone && found.at < lines).then_some(found.at)
}

/// The index of the line that an instruction asks for: `the third one` or `the last`, but not `lines 3 to 5` or `all but the
/// third`. `lines` is how many there are.
fn place(instruction: &str, lines: usize) -> Option<usize> {
    read_place(instruction, lines).map(|found| found.at).filter(|at| *at < lines)
}

/// A place in an instruction, and the other words of it.
struct Found {
    /// The index of the line, which may not exist.
    at: usize,
    /// The place as the instruction says it, a number as an ordinal.
    name: String,
    rest: Vec<String>,
}

fn read_place(instruction: &str, lines: usize) -> Option<Found> {
    let mut text = format!(" {} ", words(instruction).join(" ")).replace(" after all ", " ");
    // `line 2 of 300`, where there are 300
    text = text.replace(&format!(" of {lines} "), " ").replace(" from the top ", " ");
    let end = FROM_THE_END.iter().find(|(place, _)| text.contains(&format!(" {place} ")));
    if let Some((place, _)) = end {
        text = text.replacen(&format!(" {place} "), " ", 1);
    }
    let first = FIRST.iter().find(|place| text.contains(&format!(" {place} ")));
    if let Some(place) = first {
        text = text.replacen(&format!(" {place} "), " ", 1);
    }
    // `one` is not a number in `the third one`, but it is in `line one`.
    let words: Vec<&str> = text.split_whitespace().collect();
    let means_number = |at: usize| at > 0 && ["line", "row", "number"].contains(&words[at - 1]);
    let counted: Vec<&str> = words
        .iter()
        .enumerate()
        .filter(|(at, word)| **word != "one" || means_number(*at))
        .map(|(_, word)| *word)
        .collect();
    if counted.iter().any(|word| NOT_ONE_LINE.contains(&format!(" {word} "))) {
        return None;
    }
    let found = numbers(&counted.join(" "));
    let (at, name) = match (end, first, &found[..]) {
        (Some((name, after)), None, []) => (lines.checked_sub(after + 1)?, (*name).to_owned()),
        (None, Some(name), []) => (0, (*name).to_owned()),
        (None, None, [number]) => {
            let (at, word) = ((*number as usize).checked_sub(1)?, ordinal(*number as usize));
            let is_said = counted.contains(&word.as_str());
            (at, if is_said { word } else { numeral(*number as usize) })
        }
        _ => return None,
    };
    let is_number = |word: &&&str| !numbers(word).is_empty();
    let rest = counted.iter().filter(|word| !is_number(word)).map(|word| (*word).to_owned()).collect();
    Some(Found { at, name, rest })
}

fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\'', '’'], "");
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A number as people say it: `first` to `tenth`, then `11th`.
fn ordinal(number: usize) -> String {
    let word = number.checked_sub(1).and_then(|at| ORDINALS[..10].get(at));
    word.map_or_else(|| numeral(number), |word| (*word).to_owned())
}
