//! Reads a whole conversation from its start.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use kontekst_core::{Message, SessionId};

use super::{
    SessionError,
    record::{MAX_LINE, SessionLine},
};

use crate::config::{PathContext, PathError, file::unfollowed};

/// A conversation in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub messages: Vec<Message>,
    /// The numbers, from 1, of the lines that could not be parsed.
    pub damaged: Vec<u64>,
}

/// One line of a conversation. Marks such as [`super::Record::ToolStarted`] are skipped.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are messages, and there is one at a time")]
pub enum Entry {
    Message(Message),
    /// Numbered from 1.
    Damaged {
        line: u64,
    },
}

/// Iterates over a session file and holds one line at a time in memory.
#[derive(Debug)]
pub struct Entries {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
}

impl Entries {
    pub(super) fn open(path: &Path, id: &SessionId) -> Result<Self, SessionError> {
        match unfollowed().open(path) {
            Ok(file) => Ok(Self {
                path: path.to_owned(),
                file: BufReader::with_capacity(64 * 1024, file),
                line: Vec::new(),
                number: 0,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SessionError::NotFound(id.to_string()))
            }
            Err(error) => Err(PathError::new(path, error).into()),
        }
    }

    /// Reads the next line into `line`. Returns false at the end of the file. Of a line that is too long,
    /// only one byte more than the limit is kept.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut any = false;
        loop {
            let block = match self.file.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                block => block?,
            };
            if block.is_empty() {
                return Ok(any);
            }
            any = true;
            let newline = memchr::memchr(b'\n', block);
            let part = &block[..newline.unwrap_or(block.len())];
            let space = (MAX_LINE + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(space)]);
            let used = part.len() + usize::from(newline.is_some());
            self.file.consume(used);
            if newline.is_some() {
                return Ok(true);
            }
        }
    }
}

impl Entries {
    /// Reads the next line with all that it can be.
    pub(super) fn next_line(&mut self) -> Option<Result<SessionLine, SessionError>> {
        match self.read_line().context(&self.path) {
            Ok(true) => self.number += 1,
            Ok(false) => return None,
            Err(error) => return Some(Err(error.into())),
        }
        Some(Ok(SessionLine::parse(&self.line)))
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.next_line()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            match line {
                SessionLine::Message(message) | SessionLine::Unanswered(message) => {
                    return Some(Ok(Entry::Message(message)));
                }
                SessionLine::Damaged => return Some(Ok(Entry::Damaged { line: self.number })),
                SessionLine::ToolStarted { .. } | SessionLine::Compacted { .. } | SessionLine::Nothing => {}
            }
        }
    }
}
