//! Changes that a request gives in full: its words are known, and its texts are in quotes.

use super::{
    Change, bare,
    form::Form,
    tokens::{Token, tokens},
};
use crate::numbers::numbers;

/// The forms of a request to write a text to a file, see `words::WORDS`.
const WRITES: [&str; 15] = [
    "p=t", "t>p", "t-p", "vt>p", "vtip", "vtap", "vp=t", "vpt", "v>pt", "vipt", "ipvt", ">pvt", "pvt",
    "vp=th", "vp&vth",
];
/// The same where the file is named as what is replaced.
const OVERWRITES: [&str; 2] = ["op=t", "rp=t"];
const EMPTIES: [&str; 1] = ["ep"];
const EMPTY_FILES: [&str; 2] = ["np", "vnp"];

/// The forms of the part before a text that goes on to the end of the request.
const WRITES_WHAT_FOLLOWS: [&str; 13] =
    ["vp", "v>p", "vip", "vp=", "vd>p", "vdip", "vdap", "ipv", ">pv", "pv", "vp&vh", "v>p=", "op="];

/// The forms of a request to replace a text.
const EDITS: [&str; 16] = [
    "rtstip", "r0tstip", "rutstip", "iprtst", "ipr0tst", "iprutst", "prtst", "pr0tst", "rtipst", "r0tipst",
    "rutipst", "t-tip", "ipt-t", "pt-t", "0tip-t", "0t-tip",
];
/// The forms of a request to delete a text.
const DELETES: [&str; 8] = ["xtfp", "x0tfp", "xutfp", "xtip", "x0tip", "xutip", "fpxt", "ipxt"];

/// The longest part of a request before its text, in bytes.
const MAX_HEAD: usize = 400;

/// The most words and quoted texts of a request for a change.
const MAX_TOKENS: usize = 120;

/// Reads a request for a change. `piped` is what was piped in.
pub(super) fn change(request: &str, piped: Option<&str>) -> Option<Change> {
    let tokens = tokens(request).filter(|tokens| tokens.len() <= MAX_TOKENS);
    let quoted = tokens.as_ref().and_then(|tokens| quoted_change(request, tokens));
    let change = quoted.or_else(|| piped.and_then(|data| save(request, tokens.as_deref()?, data)));
    let tokens = tokens.filter(|_| !request.contains('\n'));
    let change = change.or_else(|| bare::edit(request, tokens.as_deref()?));
    let change = change.or_else(|| bare::write(request, tokens.as_deref()?));
    change.or_else(|| write_what_follows(request))
}

fn quoted_change(request: &str, tokens: &[Token<'_>]) -> Option<Change> {
    let form = Form::new(request, tokens).essence();
    let written = form.fit(&WRITES).map(|fit| (fit, replaces(&form)));
    let written = written.or_else(|| form.fit(&OVERWRITES).map(|fit| (fit, !form.one_line)));
    if let Some((fit, replaces)) = written {
        let text = fit.texts[0];
        let is_text = !text.is_empty() && !fit.names_path;
        return is_text.then(|| Change::write(fit.paths[0], format!("{text}\n"), replaces));
    }
    if let Some(fit) = form.fit(&EMPTIES) {
        return (!form.one_line).then(|| Change::write(fit.paths[0], String::new(), true));
    }
    if let Some(fit) = form.fit(&EMPTY_FILES) {
        return Some(Change::write(fit.paths[0], String::new(), false));
    }
    let occurrence = occurrence(&form)?;
    // A line is more than its text.
    let fit = form.fit(&EDITS).or_else(|| form.fit(&DELETES).filter(|_| !form.one_line))?;
    let new = fit.texts.get(1).copied().unwrap_or_default();
    Change::edit(fit.paths[0], fit.texts[0], new, occurrence)
}

/// Returns true if a form may replace the whole of a file that exists.
fn replaces(form: &Form<'_>) -> bool {
    form.has('w') && !form.has('k') && !form.one_line
}

/// Returns the occurrence of a text that a form means: `Some(None)` if it does not say, and `None` if it is not
/// understood.
fn occurrence(form: &Form<'_>) -> Option<Option<u32>> {
    let mut unknown = form.pieces.iter().filter(|piece| piece.letter == 'u');
    match (unknown.next(), form.has('0') || form.has('j')) {
        (None, false) => Some(None),
        (None, true) => Some(Some(0)),
        (Some(word), false) if unknown.next().is_none() => match numbers(word.text)[..] {
            [number] if number > 0 && is_ordinal(word.text) => Some(Some(number)),
            _ => None,
        },
        _ => None,
    }
}

fn is_ordinal(word: &str) -> bool {
    ["st", "nd", "rd", "th"].iter().any(|end| word.to_lowercase().ends_with(end)) || word == "second"
}

/// Reads a request to save piped data, or one line of it.
fn save(request: &str, tokens: &[Token<'_>], data: &str) -> Option<Change> {
    let form = Form::new(request, tokens);
    let essence = form.essence();
    let all = ["vd>p", "vdip", "vdap", "v>p", "vap", "vp=d"];
    if let Some(fit) = essence.fit(&all) {
        return Some(Change::write(fit.paths[0], format!("{data}\n"), replaces(&essence)));
    }
    // A verb, the place of a line, and the file.
    let start = form.pieces.iter().position(|piece| matches!(piece.letter, 'w' | 'k'))?;
    let to = form.pieces.iter().rposition(|piece| matches!(piece.letter, '>' | 'i' | 'a'))?;
    let [verb, to_piece] = [&form.pieces[start], form.pieces.get(to)?];
    let place = request.get(verb.end..to_piece.start)?;
    let around = [&form.pieces[..=start], &form.pieces[to..]].concat();
    let around = Form { pieces: around, ..form }.essence();
    let fit = around.fit(&["v>p", "vip", "vap"])?;
    let lines: Vec<&str> = data.split('\n').collect();
    let line = lines[super::piped::place_alone(place, lines.len())?];
    Some(Change::write(fit.paths[0], format!("{line}\n"), around.has('w')))
}

/// Reads a request whose text follows a colon or is on lines of its own, up to the end of the request.
fn write_what_follows(request: &str) -> Option<Change> {
    let ends = request.char_indices().take_while(|(at, _)| *at < MAX_HEAD);
    let ends = ends.filter(|(_, mark)| matches!(mark, ':' | '\n'));
    for (end, mark) in ends {
        let (head, rest) = (&request[..end], &request[end + 1..]);
        // The colon of an address or a time ends nothing.
        if mark == ':' && !rest.starts_with(char::is_whitespace) {
            continue;
        }
        let Some(tokens) = tokens(head) else { continue };
        let form = Form::new(head, &tokens).essence();
        let Some(fit) = form.fit(&WRITES_WHAT_FOLLOWS) else { continue };
        // `TODO: …` is a text more often than a file.
        let is_doubtful = !fit.paths[0].contains(['.', '/']) && !form.has('>') && !form.has('i');
        if is_doubtful || mark == '\n' && !rest.trim_start().starts_with("```") && !form.announces_text() {
            continue;
        }
        let text = what_follows(rest, mark == '\n', form.asks)?;
        let replaces = (replaces(&form) || form.has('o')) && !form.one_line;
        return Some(Change::write(fit.paths[0], format!("{text}\n"), replaces));
    }
    None
}

/// The text that follows a colon or a line, without the fence around it. A text that only begins with a quote is not clear.
fn what_follows(rest: &str, after_line: bool, asks: bool) -> Option<&str> {
    let text = rest.trim_end();
    let text = match text.split_once('\n') {
        Some((before, after)) if !after_line && before.trim().is_empty() => after.trim_start_matches('\n'),
        _ if after_line => text.trim_start_matches('\n'),
        _ => text.trim_start(),
    };
    if let Some(fenced) = text.strip_prefix("```") {
        let (_, body) = fenced.split_once('\n')?;
        let body = body.strip_suffix("```")?.strip_suffix('\n')?;
        return (!body.contains("```")).then_some(body);
    }
    let begins_quoted = text.starts_with(['"', '\'', '`', '“', '‘', '«']);
    let begins_again = text.starts_with(':');
    let is_unclear = begins_quoted || begins_again || (asks && text.ends_with('?'));
    (!text.is_empty() && !is_unclear).then_some(text)
}
