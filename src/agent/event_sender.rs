//! The ordered event stream of one run.

use std::task::{Context, Poll};

use tokio::{runtime::Handle, sync::mpsc};

use crate::core::Cancel;

use super::protocol::{Event, Outcome};

/// Events that may wait for a slow reader before the run waits too.
const QUEUE: usize = 256;

/// The writing end: the run loop, and the thread on which the provider answers.
#[derive(Clone)]
pub(super) struct EventSender {
    events: mpsc::Sender<Event>,
}

/// A place kept free for the ending, so that no slow reader can hold up a run that is over.
pub(super) struct EndPermit(mpsc::OwnedPermit<Event>);

/// The reading end.
pub(super) struct Events(mpsc::Receiver<Event>);

/// The reader is gone or the run was cancelled.
pub(super) struct Gone;

pub(super) fn channel() -> ((EventSender, EndPermit), Events) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let last = sender.clone().try_reserve_owned().expect("a new channel has room");
    ((EventSender { events: sender }, EndPermit(last)), Events(receiver))
}

impl EventSender {
    /// Waits for room; a cancel ends the wait.
    pub(super) async fn emit(&self, event: Event, cancel: &Cancel) -> Result<(), Gone> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Gone),
            sent = self.events.send(event) => sent.map_err(|_| Gone),
        }
    }

    /// As [`Emitter::emit`], from a blocking thread.
    pub(super) fn emit_blocking(&self, event: Event, cancel: &Cancel, runtime: &Handle) {
        if cancel.is_cancelled() {
            return;
        }
        if let Err(mpsc::error::TrySendError::Full(event)) = self.events.try_send(event) {
            // Whether it was sent does not matter: the loop sees the cancel itself.
            drop(runtime.block_on(self.emit(event, cancel)));
        }
    }

    /// Resolves when nobody reads any more.
    pub(super) async fn closed(&self) {
        self.events.closed().await;
    }
}

impl EndPermit {
    pub(super) fn say(self, outcome: Outcome) {
        self.0.send(Event::Ended(outcome));
    }
}

impl Events {
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(cx)
    }
}
