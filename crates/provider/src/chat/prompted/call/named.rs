//! Calls as a name and then the object of the arguments, with words and special tokens around the name.

use serde_json::value::RawValue;

use kontekst_core::parse_lenient_prefix;

use crate::chat::{ParsedCall, prompted::wrappers::head_words};

/// Parses the name of a tool, and its arguments in JSON. Sources: Mistral, DeepSeek, Kimi, Functionary, gpt-oss and Gemma 4.
pub(super) fn call(text: &str) -> Option<ParsedCall> {
    let at = text.find('{')?;
    let mut words = head_words(&text[..at]);
    let name = words.next().filter(|_| words.next().is_none())?.to_owned();
    let body = gemma_strings(&text[at..]);
    let mut values = serde_json::Deserializer::from_str(&body).into_iter::<&RawValue>();
    let (arguments, end) = match values.next() {
        Some(Ok(value)) => (value.get().to_owned(), values.byte_offset()),
        _ => match parse_lenient_prefix(&body) {
            Some((value, end)) => (value.to_string(), end),
            // The model is told what is wrong with them.
            None => return Some(ParsedCall { name, arguments: body.trim_end().to_owned() }),
        },
    };
    let nothing_else = head_words(body[end..].trim_start_matches(['}', ']'])).next().is_none();
    nothing_else.then_some(ParsedCall { name, arguments })
}

/// Turns the quotes of Gemma 4, which are tokens of their own, into those of JSON.
fn gemma_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, part) in text.split("<|\"|>").enumerate() {
        match number % 2 {
            0 => out.push_str(part),
            _ => out.push_str(&serde_json::to_string(part).expect("a string is JSON")),
        }
    }
    out
}
