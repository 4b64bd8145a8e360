//! The text with which the model ends. It follows from the call and from the visible part of the result, and from
//! nothing else, so that there is one right answer.

use super::Call;

/// To whoever asks what it is or can do, and to a greeting.
pub const ABILITIES: &str = "I am kontekst's small built-in model: I can list, read, write and edit files and \
                             fetch web pages; `kontekst models` shows how to get a larger model.";
/// To everything that is not one call.
pub const DECLINED: &str =
    "The small built-in model cannot do that; `kontekst models` shows how to get a larger one.";
/// To what cannot be done because part of the text is not seen.
pub const TOO_LONG: &str =
    "That text is too long for the small built-in model; `kontekst models` shows how to get a larger one.";

/// The text about a result. `shown` is the shortened result; `failed` says that it is the message of an error.
pub fn report(call: &Call, shown: &str, failed: bool) -> String {
    if failed {
        let message = shown.split('\n').next().unwrap_or_default();
        return match message.strip_prefix("denied: ") {
            Some(reason) => format!("Nothing was done. The call was denied: {reason}"),
            None => format!("That did not work: {message}"),
        };
    }
    match call.name {
        "list_files" => listed(call.text("pattern"), shown),
        "read_file" => read(call, shown),
        "web_fetch" => fetched(call.text("url"), shown),
        _ => changed(shown),
    }
}

/// The last line of a shortened result: what comes before it, and `8 of 45`.
fn cut(shown: &str) -> (&str, Option<&str>) {
    let (rest, last) = shown.rsplit_once('\n').unwrap_or(("", shown));
    match last.strip_prefix("… (").and_then(|last| last.strip_suffix(" lines)")) {
        Some(count) => (rest, Some(count)),
        None => (shown, None),
    }
}

fn listed(pattern: &str, shown: &str) -> String {
    if let Some(rest) = shown.strip_prefix("no files match ") {
        return format!("No files match {rest}.");
    }
    let (names, count) = cut(shown);
    let (names, note) = match names.rsplit_once('\n') {
        Some((names, note)) if note.ends_with("; use a narrower pattern)") => (names, format!("\n{note}")),
        _ => (names, String::new()),
    };
    let names: Vec<&str> = names.split('\n').collect();
    let one = names.len() == 1 && count.is_none();
    let what = match (pattern.ends_with('/'), one) {
        (false, true) => "file",
        (false, false) => "files",
        (true, true) => "directory",
        (true, false) => "directories",
    };
    let verb = if one { "is" } else { "are" };
    let count = count.map_or_else(|| names.len().to_string(), str::to_owned);
    format!("Here {verb} {count} {what}:\n- {}{note}", names.join("\n- "))
}

fn read(call: &Call, shown: &str) -> String {
    let path = call.text("path");
    if shown == "(empty file)" {
        return format!("{path} is empty.");
    }
    let (numbered, count) = cut(shown);
    let lines: Vec<(&str, &str)> =
        numbered.split('\n').map(|line| line.split_once(": ").unwrap_or((line, ""))).collect();
    let text: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
    let text = text.join("\n");
    let (first, last) = (lines[0].0.trim_start(), lines[lines.len() - 1].0.trim_start());
    let head = match (call.number("start_line"), count) {
        (Some(_), _) if first == last => format!("Line {first} of {path}"),
        (Some(_), _) => format!("Lines {first} to {last} of {path}"),
        (None, None) => format!("{path} says"),
        (None, Some(count)) => format!("{path} begins ({count} lines)"),
    };
    format!("{head}:\n\n{text}")
}

fn fetched(url: &str, shown: &str) -> String {
    let (status, body) = shown.split_once('\n').unwrap_or((shown, ""));
    let status = status.trim_start_matches("Status: ");
    if !status.starts_with('2') || body.is_empty() {
        let nothing = if status.starts_with('2') { " and nothing else" } else { "" };
        return format!("{url} answered {status}{nothing}.");
    }
    if let Some(why) = body.strip_prefix("(not shown: ") {
        return format!("{url} cannot be shown: {}.", why.trim_end_matches(')'));
    }
    match cut(body) {
        (text, None) => format!("{url} says:\n\n{text}"),
        (text, Some(count)) => format!("{url} begins ({count} lines):\n\n{text}"),
    }
}

fn changed(shown: &str) -> String {
    match shown.strip_prefix("no change: ") {
        Some(why) => format!("Nothing changed: {why}."),
        None => match shown.split_once(' ') {
            Some(("Successfully", rest)) => format!("Done: {rest}."),
            Some(("Replaced", rest)) => {
                let times = if rest.starts_with("1 ") { "occurrence" } else { "occurrences" };
                format!("Done: replaced {}.", rest.replacen("occurrence(s)", times, 1))
            }
            _ => format!("Done: {shown}"),
        },
    }
}
