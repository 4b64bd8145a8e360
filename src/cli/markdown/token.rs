//! Reads the next mark or text of a line.

use super::mark::Mark;

/// The most text that is kept because of one mark, in bytes.
pub(super) const MAX_KEPT: usize = 300;
/// The longest token that is looked for, in bytes. Addresses can be long.
pub(super) const MAX_TOKEN: usize = 2048;
/// The characters at which text ends, because they may be a mark.
const SPECIAL: [char; 10] = ['\\', '`', '*', '_', '~', '[', ']', '!', '<', '&'];

const ENTITIES: [(&str, &str); 7] = [
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&nbsp;", " "),
];
const LINE_BREAKS: [&str; 3] = ["<br>", "<br/>", "<br />"];

/// The next part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Text(&'a str),
    Code(&'a str),
    /// An address between `<` and `>`.
    Address(&'a str),
    Mark(Mark),
    /// `]` behind a bracket that is open, with the address of the link if one follows.
    Close(Option<&'a str>),
    LineBreak,
}

/// The characters of which one has to come before the token is known. Empty for any character.
type Wanted = &'static str;

/// Reads the first token of `rest`, which is not empty. Returns it with its length in the source.
///
/// # Errors
///
/// Returns what is missing if the token depends on text that follows, unless the line `is_whole`. The result never depends
/// on how much of the text is known when it is read.
pub(super) fn next_token(rest: &str, before: char, is_whole: bool) -> Result<(Token<'_>, usize), Wanted> {
    let first = rest.chars().next().expect("there is text");
    match first {
        '\\' => escaped(rest, is_whole),
        '`' => code(rest, is_whole),
        '*' | '_' | '~' => {
            let run = rest.len() - rest.trim_start_matches(first).len();
            let after = match rest[run..].chars().next() {
                Some(after) => after,
                None if is_whole || run > MAX_KEPT => ' ',
                None => return Err(""),
            };
            let mark = Mark::between(first, run, before, after);
            let is_text = !(mark.can_open || mark.can_close);
            Ok((if is_text { Token::Text(&rest[..run]) } else { Token::Mark(mark) }, run))
        }
        '[' => Ok((Token::Mark(Mark::bracket(1)), 1)),
        '!' => match rest[1..].chars().next() {
            Some('[') => Ok((Token::Mark(Mark::bracket(2)), 2)),
            None if !is_whole => Err(""),
            _ => Ok((Token::Text("!"), 1)),
        },
        ']' => close(rest, is_whole),
        '<' => angle(rest, is_whole),
        '&' => Ok(match ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, text)) => (Token::Text(text), name.len()),
            None if !is_whole && ENTITIES.iter().any(|(name, _)| name.starts_with(rest)) => return Err(""),
            None => (Token::Text("&"), 1),
        }),
        _ => {
            let end = rest.find(SPECIAL).unwrap_or(rest.len());
            Ok((Token::Text(&rest[..end]), end))
        }
    }
}

fn escaped(rest: &str, is_whole: bool) -> Result<(Token<'_>, usize), Wanted> {
    match rest[1..].chars().next() {
        None if is_whole => Ok((Token::Text(""), 1)),
        None => Err(""),
        // Models write formulas between these, and a formula is easier to see with them.
        Some('(' | ')' | '[' | ']') => Ok((Token::Text(&rest[..2]), 2)),
        Some(c) if c.is_ascii_punctuation() => Ok((Token::Text(&rest[1..2]), 2)),
        Some(_) => Ok((Token::Text("\\"), 1)),
    }
}

fn code(rest: &str, is_whole: bool) -> Result<(Token<'_>, usize), Wanted> {
    let run = rest.len() - rest.trim_start_matches('`').len();
    let as_text = Ok((Token::Text(&rest[..run]), run));
    if run > MAX_KEPT {
        return as_text;
    }
    let (mut at, known) = (run, rest.len());
    while let Some(found) = rest[at..].find('`').filter(|found| at + found - run <= MAX_KEPT) {
        let begin = at + found;
        let length = rest[begin..].len() - rest[begin..].trim_start_matches('`').len();
        if begin + length == known && !is_whole {
            return Err("");
        }
        if length == run {
            let code = &rest[run..begin];
            let is_padded = code.starts_with(' ') && code.ends_with(' ') && !code.trim().is_empty();
            let code = if is_padded { &code[1..code.len() - 1] } else { code };
            return Ok((Token::Code(code), begin + length));
        }
        at = begin + length;
    }
    if is_whole || known - run > MAX_KEPT { as_text } else { Err(if known == run { "" } else { "`" }) }
}

fn close(rest: &str, is_whole: bool) -> Result<(Token<'_>, usize), Wanted> {
    let no_link = Ok((Token::Close(None), 1));
    match rest[1..].chars().next() {
        None if !is_whole => return Err(""),
        Some('(') => {}
        _ => return no_link,
    }
    let mut depth = 0;
    for (at, c) in rest.char_indices().skip(1).take_while(|(at, _)| *at < MAX_TOKEN) {
        depth += i32::from(c == '(');
        depth -= i32::from(c == ')');
        if depth == 0 {
            let address = rest[2..at].trim();
            let is_bracketed = address.starts_with('<') && address.ends_with('>') && address.len() > 1;
            let address = if is_bracketed { &address[1..address.len() - 1] } else { address };
            return Ok((Token::Close(Some(address)), at + 1));
        }
    }
    if is_whole || rest.len() >= MAX_TOKEN { no_link } else { Err(")") }
}

fn angle(rest: &str, is_whole: bool) -> Result<(Token<'_>, usize), Wanted> {
    if let Some(line_break) = LINE_BREAKS.iter().find(|known| rest.starts_with(**known)) {
        return Ok((Token::LineBreak, line_break.len()));
    }
    if !is_whole && LINE_BREAKS.iter().any(|known| known.starts_with(rest)) {
        return Err("");
    }
    let as_text = Ok((Token::Text("<"), 1));
    let inner = &rest[1..];
    let end = inner.find(|c: char| c == '>' || c == '<' || c.is_whitespace());
    match end {
        Some(end) if end <= MAX_KEPT && inner[end..].starts_with('>') && is_address(&inner[..end]) => {
            Ok((Token::Address(&inner[..end]), end + 2))
        }
        None if !is_whole && inner.len() <= MAX_KEPT => {
            let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic()) || inner.is_empty();
            if is_name { Err("") } else { as_text }
        }
        _ => as_text,
    }
}

fn is_address(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_url = scheme.len() >= 2 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    is_url || text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}
