//! Finds the first error in a file of a format or language that kontekst can parse, and the parts of code that is shown.

mod highlight;
mod indentation;
mod language;
mod source;

use serde::de::IgnoredAny;

pub(crate) use self::{
    highlight::{CodePart, Highlighter},
    language::Language,
};
use crate::config::toml_file::position;

/// The maximum size of a text in a data format that is parsed, in bytes. It bounds the time, because the parsers are linear.
const MAX_BYTES: usize = 1 << 20;
/// The maximum length of a message, in bytes.
const MAX_MESSAGE: usize = 200;

/// The result of parsing a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Valid,
    Error(SyntaxError),
    /// The format is unknown, or the text is too large or takes too long.
    Unknown,
}

/// A text that is not in its format. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The name of the format or language.
    pub format: &'static str,
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// No parser takes the text. Otherwise the text may be valid, because the grammar does not allow all that is.
    pub is_certain: bool,
}

/// Parses `text` in the format or language that the extension of `path` names.
pub(crate) fn syntax(path: &str, text: &str) -> Syntax {
    let Some((_, extension)) = path.rsplit_once('.') else { return Syntax::Unknown };
    let extension = extension.to_ascii_lowercase();
    if let Some(language) = Language::of_extension(&extension) {
        return source::syntax(language, text);
    }
    let first_error = match &*extension {
        "json" => json_error,
        "toml" => toml_error,
        "yaml" | "yml" => yaml_error,
        _ => return Syntax::Unknown,
    };
    if text.len() > MAX_BYTES {
        return Syntax::Unknown;
    }
    first_error(text).map_or(Syntax::Valid, Syntax::Error)
}

fn json_error(text: &str) -> Option<SyntaxError> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    let message = error.to_string();
    Some(SyntaxError::new("JSON", (error.line(), error.column()), before(&message, " at line ")))
}

fn toml_error(text: &str) -> Option<SyntaxError> {
    let error = toml::from_str::<toml::Table>(text).err()?;
    let place = position(text, error.span().map_or(0, |span| span.start));
    Some(SyntaxError::new("TOML", place, error.message()))
}

fn yaml_error(text: &str) -> Option<SyntaxError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: 64, max_events: 200_000 },
    };
    let error = serde_saphyr::from_multiple_with_options::<IgnoredAny>(text, options).err()?;
    let place = error.location().map_or((1, 1), |location| {
        (usize::try_from(location.line()).unwrap_or(1), usize::try_from(location.column()).unwrap_or(1))
    });
    let message = error.to_string();
    Some(SyntaxError::new("YAML", place, before(&message, " at line ")))
}

/// Returns the part of a message before the place, which has fields of its own.
fn before<'a>(message: &'a str, place: &str) -> &'a str {
    message.rsplit_once(place).map_or(message, |(message, _)| message)
}

impl SyntaxError {
    fn new(format: &'static str, (line, column): (usize, usize), message: &str) -> Self {
        let message = message.lines().next().unwrap_or_default();
        let message = message[..message.floor_char_boundary(MAX_MESSAGE)].to_owned();
        Self { format, line: line.max(1), column: column.max(1), message, is_certain: true }
    }
}

#[cfg(test)]
mod tests;
