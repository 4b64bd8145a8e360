//! Phrasings that a person wrote.

use std::collections::HashSet;

use serde_json::Value;

use super::{Model, Report, Said, called};
use crate::data::{ABILITIES, Draw, Role, sample};

/// A request and what it means.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub request: String,
    pub expected: Expected,
}

#[derive(Debug, PartialEq)]
pub enum Expected {
    Call(Value),
    /// That it cannot be done, and who can.
    Decline,
    /// Questions about the model and its abilities.
    About,
}

impl Expected {
    fn call(&self) -> Option<&Value> {
        match self {
            Self::Call(call) => Some(call),
            Self::Decline | Self::About => None,
        }
    }

    fn is_met_by(&self, said: &str) -> bool {
        match self {
            Self::Call(call) => called(said) == Said::Call(call.clone()),
            Self::Decline => called(said) == Said::Text && said.contains("kontekst models"),
            Self::About => said == ABILITIES,
        }
    }
}

/// Reads `request TAB call` lines, the call as JSON or one of the words `decline` and `about`. In the request `\n` and `\t` stand
/// for a new line and a tab. Empty lines and those that start with `#` are passed over.
///
/// # Errors
///
/// The number of the first line that is not understood.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (request, call) = line.split_once('\t').ok_or_else(|| format!("line {number} has no tab"))?;
        let expected = match call.trim() {
            "decline" => Expected::Decline,
            "about" => Expected::About,
            call => {
                Expected::Call(serde_json::from_str(call).map_err(|error| format!("line {number}: {error}"))?)
            }
        };
        lines.push(Line { request: request.replace("\\n", "\n").replace("\\t", "\t"), expected });
    }
    Ok(lines)
}

/// Examines a model on the lines, apart for phrasings that the generator could have given.
pub fn examine(model: &mut dyn Model, lines: &[Line], known: &HashSet<String>, report: &mut Report) {
    let conversations: Vec<_> = lines.iter().map(|line| [(Role::User, line.request.clone())]).collect();
    let views: Vec<_> = conversations.iter().map(|conversation| &conversation[..]).collect();
    let answers = model.answers(&views);
    for (line, said) in lines.iter().zip(&answers) {
        let right = line.expected.is_met_by(said);
        let new = !known.contains(&phrasing(&line.request, line.expected.call()));
        let expected =
            line.expected.call().map_or_else(|| format!("{:?}", line.expected), ToString::to_string);
        report.handwritten(new, right, &line.request, &expected, said);
    }
}

/// The phrasings of many draws.
pub fn known(draws: usize) -> HashSet<String> {
    let mut draw = Draw::for_training(fastrand::Rng::with_seed(1));
    (0..draws)
        .map(|_| {
            let sample = sample(&mut draw);
            let call = sample.call.map(|call| call.value());
            phrasing(&sample.conversation[0].1, call.as_ref())
        })
        .collect()
}

/// A request without what differs from one to the next: names, texts, numbers, capitals, the punctuation at
/// the end.
pub fn phrasing(request: &str, call: Option<&Value>) -> String {
    let mut text = request.to_lowercase();
    let arguments = call.and_then(|call| call["arguments"].as_object());
    for value in arguments.into_iter().flat_map(|arguments| arguments.values()) {
        let value = value.as_str().unwrap_or_default().trim_end_matches('\n').to_lowercase();
        // Of a glob the directory is a name.
        let value = value.split_once("/*").map_or(&*value, |(directory, _)| directory);
        if value.chars().count() > 2 {
            text = text.replace(value, "_");
        }
    }
    let mut plain = String::new();
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (None, '"' | '`' | '“') => quote = Some(if c == '“' { '”' } else { c }),
            (Some(end), c) if c == end => {
                plain.push('_');
                quote = None;
            }
            (Some(_), _) => {}
            (None, c) => plain.push(c),
        }
    }
    let name = |word: &str| {
        word.trim_end_matches(['.', '?', '!', ',', ':']).contains(|c: char| "._/~*0123456789".contains(c))
    };
    let words: Vec<&str> = plain.split_whitespace().map(|word| if name(word) { "_" } else { word }).collect();
    words.join(" ").trim_matches(['.', '?', '!', ' ']).to_owned()
}
