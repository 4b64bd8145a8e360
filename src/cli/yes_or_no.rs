//! A question with yes or no on the terminal.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
};

use rustix::termios::{QueueSelector, tcflush};

/// The longest answer, in bytes.
const MAX_ANSWER: u64 = 4096;

/// Asks on the controlling terminal. What was typed before the question is not an answer. Returns `None` if there is no
/// terminal.
pub(super) fn ask(text: &str) -> Option<bool> {
    ask_with_default(text, false)
}

/// Asks as [`ask`] does, where an empty line is an answer, too. The end of the input is no.
pub(super) fn ask_with_default(text: &str, default: bool) -> Option<bool> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    // Fails if this process may not use the terminal. The read then fails as well.
    tcflush(&terminal, QueueSelector::IFlush).ok();
    terminal.write_all(text.as_bytes()).ok()?;
    let mut line = String::new();
    let read = BufReader::new(terminal.take(MAX_ANSWER)).read_line(&mut line);
    let is_empty = line == "\n";
    let is_yes = ["y", "yes"].contains(&&*line.trim().to_ascii_lowercase());
    Some(read.is_ok() && (is_yes || (is_empty && default)))
}
