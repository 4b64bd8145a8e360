//! Watching what the subagents of a session do.

use std::{collections::VecDeque, io, sync::Arc};

use kontekst_core::SessionId;
use kontekst_store::subagent_log::{Cursor, SubagentEvent, SubagentLogError};

use crate::{
    run::{Blocking, FailureKind, RunError, blocking},
    state::Shared,
};

/// The events of all subagents below one session: first those in the log, then the new ones.
///
/// A watch holds a position in the log and at most one block of it in memory, however slow its reader is.
pub struct SubagentWatch {
    shared: Arc<Shared>,
    root_session: SessionId,
    /// The number of the last event that was returned.
    after: u64,
    ready: VecDeque<SubagentEvent>,
    state: WatchState,
}

enum WatchState {
    Closed,
    Open(Cursor),
    /// The read is kept here, so that nothing is lost when the future that waits for it is dropped.
    Reading(Blocking<Result<ReadBlock, ReadError>>),
}

/// The events of one block, and the cursor after it.
struct ReadBlock {
    cursor: Cursor,
    events: VecDeque<SubagentEvent>,
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Log(#[from] SubagentLogError),
    #[error("the log of a team cannot be read")]
    Io(#[from] io::Error),
}

impl SubagentWatch {
    pub(crate) fn new(shared: Arc<Shared>, root_session: SessionId, after: u64) -> Self {
        Self { shared, root_session, after, ready: VecDeque::new(), state: WatchState::Closed }
    }

    /// Returns the next event, and waits until there is one. If this future is dropped before it is done, no
    /// event is lost.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Storage`] when the log cannot be read.
    pub async fn next(&mut self) -> Result<SubagentEvent, RunError> {
        loop {
            if let Some(event) = self.next_recorded().await? {
                return Ok(event);
            }
            if let WatchState::Open(cursor) = &mut self.state {
                cursor.changed().await;
            }
        }
    }

    /// Returns the next event that is already in the log, or `None` if all have been returned.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Storage`] when the log cannot be read.
    pub async fn next_recorded(&mut self) -> Result<Option<SubagentEvent>, RunError> {
        if let Some(event) = self.ready.pop_front() {
            return Ok(Some(event));
        }
        let reading = match &mut self.state {
            WatchState::Reading(reading) => reading,
            state => {
                let (shared, root_session, after) =
                    (Arc::clone(&self.shared), self.root_session.clone(), self.after);
                let old = std::mem::replace(state, WatchState::Closed);
                *state = WatchState::Reading(blocking(move || {
                    let mut cursor = match old {
                        WatchState::Open(cursor) => cursor,
                        WatchState::Closed | WatchState::Reading(_) => {
                            shared.storage.subagent_logs.open(&root_session)?.watch(after)
                        }
                    };
                    let events = cursor.read()?;
                    Ok(ReadBlock { cursor, events })
                }));
                let WatchState::Reading(reading) = state else { unreachable!("it was just put there") };
                reading
            }
        };
        let read = reading.join().await;
        self.state = WatchState::Closed;
        let ReadBlock { cursor, events } =
            read?.map_err(|error| RunError::from_source(FailureKind::Storage, &error))?;
        self.state = WatchState::Open(cursor);
        self.ready = events;
        let event = self.ready.pop_front();
        if let Some(event) = &event {
            self.after = event.seq;
        }
        Ok(event)
    }
}
