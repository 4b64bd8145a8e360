//! Reads the lines of a file backwards, in blocks, and holds at most one line in memory.

use std::io;

use memchr::{memchr, memrchr};

/// Fills the whole buffer with the bytes at a file offset.
pub(super) type ReadAt<'a> = dyn Fn(&mut [u8], u64) -> io::Result<()> + 'a;

/// The size of a block in bytes. Source: architecture seed, "Session Persistence".
const BLOCK: usize = 8 * 1024;

/// Reads lines backwards. The first line is the text after the last newline, which is empty in a
/// well-formed file.
pub(super) struct Backward<'a> {
    read: &'a ReadAt<'a>,
    /// Lines longer than this many bytes are skipped.
    limit: usize,
    /// The file offset of `buf[0]`.
    start: u64,
    buf: Vec<u8>,
    /// `buf[..end]` has not been returned yet.
    end: usize,
    done: bool,
}

/// A line without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RawLine<'a> {
    Whole(&'a [u8]),
    /// The line is longer than the limit. `has_nul` says whether it contains a NUL byte, which JSON text
    /// never does.
    TooLong {
        bytes: u64,
        has_nul: bool,
    },
}

impl<'a> Backward<'a> {
    pub(super) fn new(len: u64, read: &'a ReadAt<'a>, limit: usize) -> Self {
        Self { read, limit, start: len, buf: Vec::new(), end: 0, done: false }
    }

    /// Returns the file offset of the first byte of the line that was returned last.
    pub(super) fn position(&self) -> u64 {
        if self.done { 0 } else { self.start + self.end as u64 + 1 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        if self.done {
            return Ok(None);
        }
        // Only new bytes are searched and the blocks double in size, so the cost of a long line is
        // proportional to its length.
        let mut newline = memrchr(b'\n', &self.buf[..self.end]);
        while newline.is_none() && self.start > 0 {
            let buffered = self.end;
            if buffered > self.limit {
                return self.skip_line().map(Some);
            }
            let space = self.limit.saturating_add(BLOCK) - buffered;
            let size = block_size(buffered.max(BLOCK).min(space), self.start);
            self.prepend(size)?;
            newline = memrchr(b'\n', &self.buf[..size]);
        }
        let line = match newline {
            Some(at) => {
                let line = at + 1..self.end;
                self.end = at;
                line
            }
            None => {
                self.done = true;
                0..self.end
            }
        };
        let bytes = &self.buf[line];
        Ok(Some(if bytes.len() > self.limit {
            RawLine::TooLong { bytes: bytes.len() as u64, has_nul: memchr(0, bytes).is_some() }
        } else {
            RawLine::Whole(bytes)
        }))
    }

    /// Reads the `size` bytes before `start` and puts them at the front of the buffer.
    fn prepend(&mut self, size: usize) -> io::Result<()> {
        let mut buf = vec![0; size + self.end];
        let at = self.start - size as u64;
        (self.read)(&mut buf[..size], at)?;
        buf[size..].copy_from_slice(&self.buf[..self.end]);
        self.end = buf.len();
        self.buf = buf;
        self.start = at;
        Ok(())
    }

    /// Skips a line that is too long to hold, back to the newline before it.
    fn skip_line(&mut self) -> io::Result<RawLine<'_>> {
        const STEP: usize = 256 * 1024;
        let mut bytes = self.end as u64;
        let mut nul = memchr(0, &self.buf[..self.end]).is_some();
        self.buf = Vec::new();
        self.end = 0;
        loop {
            if self.start == 0 {
                self.done = true;
                return Ok(RawLine::TooLong { bytes, has_nul: nul });
            }
            self.end = 0;
            self.prepend(block_size(STEP, self.start))?;
            let newline = memrchr(b'\n', &self.buf);
            let line = &self.buf[newline.map_or(0, |at| at + 1)..];
            bytes += line.len() as u64;
            nul |= memchr(0, line).is_some();
            if let Some(at) = newline {
                self.end = at;
                return Ok(RawLine::TooLong { bytes, has_nul: nul });
            }
        }
    }
}

fn block_size(wanted: usize, available: u64) -> usize {
    wanted.min(usize::try_from(available).unwrap_or(usize::MAX))
}
