//! One watcher's place in a log.

use std::{collections::VecDeque, fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

use tokio::sync::watch;

use super::{
    SubagentEvent, SubagentLog,
    log::{LogEnd, events},
};

/// Bytes that are read at once. The longest event takes less: its text is cut at 4 KiB, each byte of which
/// JSON may write as six.
const BLOCK: u64 = 64 * 1024;

/// A place in a log. It reads the file itself, so a watcher that is slow costs its place and no queue.
#[derive(Debug)]
pub struct Cursor {
    /// Keeps the log open.
    _team: Arc<SubagentLog>,
    end: watch::Receiver<LogEnd>,
    file: Option<Arc<File>>,
    offset: u64,
    /// The number of the last event that was given.
    seen: u64,
}

impl Cursor {
    pub(super) fn new(team: Arc<SubagentLog>, end: watch::Receiver<LogEnd>, after: u64) -> Self {
        Self { _team: team, end, file: None, offset: 0, seen: after }
    }

    /// Resolves when there may be more to read, at once the first time.
    pub async fn changed(&mut self) {
        // The sender is in the team that is held above.
        self.end.changed().await.expect("the log is open");
    }

    /// The next events, at most a block of them; empty when all have been read. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn read(&mut self) -> io::Result<VecDeque<SubagentEvent>> {
        let mut news = VecDeque::new();
        while news.is_empty() {
            let LogEnd { file, len } = self.end.borrow_and_update().clone();
            let Some(current) = file else { break };
            let same = self.file.as_ref().is_some_and(|file| Arc::ptr_eq(file, &current));
            let (file, len) = match &self.file {
                Some(old) if !same => (Arc::clone(old), old.metadata()?.len()),
                _ => (Arc::clone(&current), len),
            };
            if self.offset >= len {
                if same {
                    break;
                }
                // The log was cut and goes on in another file.
                self.file = Some(current);
                self.offset = 0;
                continue;
            }
            let mut block =
                vec![0; usize::try_from((len - self.offset).min(BLOCK)).expect("a block is small")];
            file.read_exact_at(&mut block, self.offset)?;
            // A block may end within a line; what is written ends with one.
            let whole = memchr::memrchr(b'\n', &block).map_or(block.len(), |at| at + 1);
            self.offset += whole as u64;
            self.file = Some(file);
            news.extend(events(&block[..whole]).into_iter().filter(|event| event.seq > self.seen));
            self.seen = news.back().map_or(self.seen, |event| event.seq);
        }
        Ok(news)
    }
}
