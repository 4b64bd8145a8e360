//! What a run leaves on disk.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    core::{CallId, Message, RunId, clock, error_chain},
    sessions::{Record, SessionError, SessionLog},
};

use super::{
    bridge::blocking,
    protocol::{FailureKind, RunError},
    session_locks::SessionGuard,
};

/// Writes a run's messages to its session, if it has one.
///
/// A write has reached the disk when its future is done; nothing is acknowledged before.
#[derive(Clone)]
pub(super) struct Recorder {
    run: RunId,
    agent: String,
    log: Option<Arc<Mutex<SessionLog>>>,
    /// Held until the last write is done, also when the run was cancelled meanwhile.
    _turn: Option<Arc<SessionGuard>>,
}

impl Recorder {
    /// `log` is `None` for a conversation that the client keeps.
    pub(super) fn new(
        run: RunId,
        agent: String,
        log: Option<SessionLog>,
        turn: Option<SessionGuard>,
    ) -> Self {
        Self { run, agent, log: log.map(|log| Arc::new(Mutex::new(log))), _turn: turn.map(Arc::new) }
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Fills in who made the message and when.
    pub(super) fn sign(&self, message: &mut Message) {
        message.run = Some(self.run.clone());
        message.agent_name = Some(self.agent.clone());
        message.at = Some(clock::unix_millis());
    }

    /// Appends on this thread; for callers that are on a blocking one.
    pub(super) fn append_blocking(&self, messages: &[Message]) -> Result<(), RunError> {
        self.write(&messages.iter().map(Record::Message).collect::<Vec<_>>())
    }

    pub(super) async fn append(&self, messages: Vec<Message>) -> Result<(), RunError> {
        if messages.is_empty() {
            return Ok(());
        }
        self.on_a_thread(move |this| this.append_blocking(&messages)).await
    }

    /// Notes that everything so far is also said by `summary`.
    pub(super) async fn compacted(&self, summary: String, tokens: u32) -> Result<(), RunError> {
        let note =
            move |this: &Self| this.write(&[Record::Compacted { summary: &summary, tokens, run: &this.run }]);
        self.on_a_thread(note).await
    }

    /// Notes that a tool is about to act, before it does.
    pub(super) async fn intend(&self, call: CallId) -> Result<(), RunError> {
        self.on_a_thread(move |this| this.write(&[Record::ToolStarted { call: &call, run: &this.run }])).await
    }

    fn write(&self, records: &[Record<'_>]) -> Result<(), RunError> {
        let Some(log) = &self.log else { return Ok(()) };
        log.lock().unwrap_or_else(PoisonError::into_inner).append(records).map_err(|error| storage(&error))
    }

    /// Gives a write its thread, if there is anything to write to.
    async fn on_a_thread(
        &self,
        write: impl FnOnce(&Self) -> Result<(), RunError> + Send + 'static,
    ) -> Result<(), RunError> {
        if self.log.is_none() {
            return Ok(());
        }
        let this = self.clone();
        blocking(move || write(&this)).join().await?
    }
}

/// A session error with its causes, as a run's failure.
pub(super) fn storage(error: &SessionError) -> RunError {
    RunError::new(FailureKind::Storage, error_chain(error))
}
