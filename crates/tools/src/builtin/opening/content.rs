//! The content of a file as it comes with a prompt.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
};

use kontekst_core::{is_binary, utf16_text};

use super::words::{is_between_words, words_of};

use crate::Workspace;

/// A word that stands in more lines of a file says too little.
const MAX_LINES_WITH_WORD: usize = 5;
/// A larger file is not searched for words, in bytes.
const MAX_SEARCHED_FILE: u64 = 4 << 20;

/// Reads a file, or of one that has more than `max_bytes` bytes the beginning, the end, and lines between them with words of the
/// prompt. Returns the text, and true if it has all of the file. `None` if it is no text or cannot be read.
pub(super) fn content(
    workspace: &Workspace,
    path: &str,
    prompt: &str,
    max_bytes: usize,
) -> Option<(String, bool)> {
    let mut file = workspace.open(&workspace.path(path).ok()?).ok()?;
    let max = max_bytes as u64;
    let length = file.metadata().ok()?.len();
    let mut head = Vec::new();
    if length <= max {
        file.take(max).read_to_end(&mut head).ok()?;
        return Some((text(&head)?, true));
    }
    (&mut file).take(max / 2).read_to_end(&mut head).ok()?;
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(length - max / 4)).ok()?;
    (&mut file).take(max / 4).read_to_end(&mut tail).ok()?;
    // Whole lines, so that no half line is taken for a line of the file.
    let end = head.iter().rposition(|byte| *byte == b'\n').unwrap_or(head.len());
    let start = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (head, tail) = (text(&head[..end])?, text(&tail[start..])?);
    let left_out = length.saturating_sub((head.len() + tail.len()) as u64);
    let next = head.lines().count() + 1;
    let lines =
        if length <= MAX_SEARCHED_FILE { lines_with_words(&mut file, prompt, max_bytes / 4) } else { None };
    let lines =
        lines.map(|lines| format!("[lines there with words of the request:]\n{lines}\n")).unwrap_or_default();
    let text = format!(
        "{head}\n[{left_out} of {length} bytes are left out here: read_file with start_line {next} shows them]\n{lines}{tail}"
    );
    Some((text, false))
}

/// Returns the numbered lines of a file that have a word of the prompt which few lines have, in at most `max_bytes` bytes.
fn lines_with_words(file: &mut File, prompt: &str, max_bytes: usize) -> Option<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(MAX_SEARCHED_FILE).read_to_end(&mut bytes).ok()?;
    let text = text(&bytes)?;
    let mut lines_of: BTreeMap<&str, BTreeMap<usize, &str>> =
        words_of(prompt).into_iter().map(|word| (word, BTreeMap::new())).collect();
    for (at, line) in text.lines().enumerate() {
        for word in line.split(is_between_words) {
            let lines = lines_of.get_mut(word).filter(|lines| lines.len() <= MAX_LINES_WITH_WORD);
            lines.and_then(|lines| lines.insert(at, line));
        }
    }
    lines_of.retain(|_, lines| lines.len() <= MAX_LINES_WITH_WORD);
    let found: BTreeMap<usize, &str> = lines_of.into_values().flatten().collect();
    let mut lines = String::new();
    for (at, line) in found {
        let line = format!("{}: {line}\n", at + 1);
        if lines.len() + line.len() > max_bytes {
            break;
        }
        lines.push_str(&line);
    }
    (!lines.is_empty()).then(|| lines.trim_end().to_owned())
}

/// Returns `None` also for bytes that are not UTF-8: read_file shows the rest of them, and says so.
fn text(bytes: &[u8]) -> Option<String> {
    let utf8 = || std::str::from_utf8(bytes).ok().filter(|_| !is_binary(bytes));
    utf16_text(bytes).or_else(|| utf8().map(|text| text.replace('\0', "␀")))
}
