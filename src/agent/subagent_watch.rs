//! Watching the workers of a team.

use std::{collections::VecDeque, io, sync::Arc};

use crate::{
    core::{SessionId, error_chain},
    subagent_log::{Cursor, SubagentEvent, SubagentLogError},
};

use super::{
    Shared,
    bridge::{Blocking, blocking},
    protocol::{FailureKind, RunError},
};

/// What the workers of one team did and do: first all that the log has, then what comes. It holds a place in
/// the log and at most one block of it, however slow its reader is.
pub struct SubagentWatch {
    shared: Arc<Shared>,
    team: SessionId,
    after: u64,
    ready: VecDeque<SubagentEvent>,
    state: State,
}

enum State {
    Closed,
    Open(Cursor),
    /// Kept here, so that a wait that is given up halfway loses nothing.
    Reading(Blocking<Result<(Cursor, VecDeque<SubagentEvent>), ReadError>>),
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Team(#[from] SubagentLogError),
    #[error("the log of a team cannot be read")]
    Io(#[from] io::Error),
}

impl SubagentWatch {
    pub(super) fn new(shared: Arc<Shared>, team: SessionId, after: u64) -> Self {
        Self { shared, team, after, ready: VecDeque::new(), state: State::Closed }
    }

    /// The next event, waiting until there is one. May be called again after it was dropped halfway.
    ///
    /// # Errors
    ///
    /// [`Failure::Storage`] when the log cannot be read.
    pub async fn next(&mut self) -> Result<SubagentEvent, RunError> {
        loop {
            if let Some(event) = self.next_recorded().await? {
                return Ok(event);
            }
            if let State::Open(cursor) = &mut self.state {
                cursor.changed().await;
            }
        }
    }

    /// The next event that has happened; `None` when all have been given.
    ///
    /// # Errors
    ///
    /// As [`WorkerWatch::next`].
    pub async fn next_recorded(&mut self) -> Result<Option<SubagentEvent>, RunError> {
        if let Some(event) = self.ready.pop_front() {
            return Ok(Some(event));
        }
        let reading = match &mut self.state {
            State::Reading(reading) => reading,
            state => {
                let (shared, team, after) = (Arc::clone(&self.shared), self.team.clone(), self.after);
                let old = std::mem::replace(state, State::Closed);
                *state = State::Reading(blocking(move || {
                    let mut cursor = match old {
                        State::Open(cursor) => cursor,
                        State::Closed | State::Reading(_) => shared.teams.open(&team)?.watch(after),
                    };
                    let news = cursor.read()?;
                    Ok((cursor, news))
                }));
                let State::Reading(reading) = state else { unreachable!("it was just put there") };
                reading
            }
        };
        let read = reading.join().await;
        self.state = State::Closed;
        let (cursor, news) =
            read?.map_err(|error| RunError::new(FailureKind::Storage, error_chain(&error)))?;
        self.state = State::Open(cursor);
        self.ready = news;
        let event = self.ready.pop_front();
        if let Some(event) = &event {
            self.after = event.seq;
        }
        Ok(event)
    }
}
