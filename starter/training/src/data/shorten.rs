//! The part of a text that the model sees. `starter/training/template.jinja` does the same, and a test compares the two.

/// A longer request is shortened, in characters.
const REQUEST: usize = 400;
/// The number of bytes that are kept of its start and of its end. Data comes first, and the instruction last.
const REQUEST_HEAD: usize = 240;
const REQUEST_TAIL: usize = 140;
/// Lines of a result that are kept.
const LINES: usize = 8;
/// Characters that are kept of one line, and of all lines together.
const LINE: usize = 200;
const ROOM: usize = 360;

/// A request as the model sees it: without its middle if it is long, and with numbers in front of the lines of the
/// data it begins with, because counting lines byte by byte is hard.
pub fn shown_request(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > REQUEST {
        let head: String = chars[..REQUEST_HEAD].iter().collect();
        let tail: String = chars[chars.len() - REQUEST_TAIL..].iter().collect();
        return format!("{}\n…\n{tail}", numbered(&head));
    }
    match text.rsplit_once("\n\n") {
        Some((data, instruction)) => format!("{}\n\n{instruction}", numbered(data)),
        None => text.to_owned(),
    }
}

/// Each line behind its number and a tab, if there are several.
fn numbered(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let lines = text.split('\n').zip(1..).map(|(line, number)| format!("{number}\t{line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first lines of a result. A last line says how many of how many they are: `… (8 of 45 lines)`.
///
/// Of a fetched page the head is left out but for the status.
pub fn shortened_result(text: &str) -> String {
    if let (true, Some((head, body))) = (text.starts_with("Status: "), text.split_once("\n\n")) {
        let status = head.split('\n').next().unwrap_or_default();
        return format!("{status}\n{}", lines(body, false));
    }
    lines(text, true)
}

fn lines(text: &str, notes: bool) -> String {
    let all: Vec<&str> = text.split('\n').collect();
    let mut kept = Vec::new();
    let mut room = ROOM;
    for line in all.iter().take(LINES) {
        let length = line.chars().count();
        let line =
            if length > LINE { line.chars().take(LINE).chain(['…']).collect() } else { (*line).to_owned() };
        if length.min(LINE) > room {
            break;
        }
        room -= length.min(LINE);
        kept.push(line);
    }
    let shown = kept.len();
    if shown < all.len() {
        // A tool's own note at the end says that there was more.
        let total = match all.last() {
            Some(last) if notes && last.starts_with('(') => format!("{}+", all.len() - 1),
            _ => all.len().to_string(),
        };
        kept.push(format!("… ({shown} of {total} lines)"));
    }
    kept.join("\n")
}
