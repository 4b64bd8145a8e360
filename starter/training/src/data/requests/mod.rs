//! Requests, and their meaning.

mod edit;
mod fetch;
mod list;
#[path = "../../../../src/number_words.rs"]
mod number_words;
mod other;
mod piped;
mod read;
mod write;

use super::{Call, Draw};

/// The meaning of a request.
pub enum Meaning {
    Call(Call),
    /// It is answered at once.
    Say(String),
}

pub struct Request {
    pub kind: &'static str,
    pub text: String,
    pub meaning: Meaning,
}

/// A request of any kind.
pub fn request(draw: &mut Draw) -> Request {
    match draw.between(0, 99) {
        0..16 => list::request(draw),
        16..38 => read::request(draw),
        38..54 => write::request(draw),
        54..73 => edit::request(draw),
        73..81 => fetch::request(draw),
        81..90 => piped::request(draw),
        _ => other::request(draw),
    }
}

fn call(kind: &'static str, text: String, call: Call) -> Request {
    Request { kind, text, meaning: Meaning::Call(call) }
}

/// A path as it is put into a request: bare, or in quotes, always if it has spaces.
fn named(draw: &mut Draw, path: &str) -> String {
    if path.contains(' ') || draw.chance(16) { quoted(draw, path) } else { path.to_owned() }
}

/// A file of any kind, and how it is put.
fn some_path(draw: &mut Draw) -> (String, String) {
    let path = if draw.chance(4) { draw.spaced_path() } else { draw.path() };
    let shown = named(draw, &path);
    (path, shown)
}

/// In quotes that do not occur in it.
fn quoted(draw: &mut Draw, text: &str) -> String {
    let pairs =
        [('"', '"'), ('"', '"'), ('"', '"'), ('\'', '\''), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’')];
    let mut open: Vec<_> = pairs.into_iter().filter(|(start, end)| !text.contains([*start, *end])).collect();
    if open.is_empty() {
        open.push(('«', '»'));
    }
    let (start, end) = draw.pick(&open);
    format!("{start}{text}{end}")
}

/// A number in digits, or as a word if it is small.
fn number(draw: &mut Draw, number: u32) -> String {
    let word = number_words::ONES.get(number as usize).or((number == 20).then_some(&number_words::TENS[0]));
    match word {
        Some(word) if draw.chance(25) => (*word).to_owned(),
        _ => number.to_string(),
    }
}

fn ordinal(draw: &mut Draw, number: u32) -> String {
    match number_words::ORDINALS[..10].get(number as usize - 1) {
        Some(word) if draw.chance(70) => (*word).to_owned(),
        _ => number_words::numeral(number as usize),
    }
}
