//! The two ends of a run: [`Run`], which its client holds, and [`RunIo`], which the run itself holds.

use std::{
    future::pending,
    task::{Context, Poll},
};

use tokio::{runtime::Handle, sync::mpsc};

use crate::core::{Cancel, RunId};

use super::protocol::{Command, Event, Outcome, RunError};

/// The number of events that may wait for a slow client before the run waits for it.
const EVENT_QUEUE: usize = 256;
/// The number of commands that may wait for the run before further ones are dropped.
const COMMAND_QUEUE: usize = 256;

/// A run in progress. Dropping it cancels the run.
pub struct Run {
    id: RunId,
    /// `None` once the client has closed its side.
    commands: Option<mpsc::Sender<Command>>,
    events: mpsc::Receiver<Event>,
    cancel: Cancel,
    ended: bool,
}

/// The run's own end: it sends events and receives commands.
pub(super) struct RunIo {
    pub(super) events: EventSender,
    /// `None` once no more commands can come.
    commands: Option<mpsc::Receiver<Command>>,
}

/// Sends the events of a run, from async code and from blocking threads.
#[derive(Clone)]
pub(super) struct EventSender {
    events: mpsc::Sender<Event>,
    cancel: Cancel,
    runtime: Handle,
}

/// A reserved place in the event queue for [`Event::Ended`], so that a slow client cannot delay the end of a
/// run.
pub(super) struct EndPermit(mpsc::OwnedPermit<Event>);

/// Why a run stops before the model has finished.
pub(super) enum Stop {
    /// The run was cancelled, or its client is gone.
    Cancelled,
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

/// Makes both ends of a run. Must be called within the runtime.
pub(super) fn channel(id: RunId, cancel: Cancel) -> (Run, RunIo, EndPermit) {
    let (command_sender, commands) = mpsc::channel(COMMAND_QUEUE);
    let (event_sender, events) = mpsc::channel(EVENT_QUEUE);
    let end = event_sender.clone().try_reserve_owned().expect("a new channel has room");
    let sender = EventSender { events: event_sender, cancel: cancel.clone(), runtime: Handle::current() };
    let run = Run { id, commands: Some(command_sender), events, cancel, ended: false };
    (run, RunIo { events: sender, commands: Some(commands) }, EndPermit(end))
}

impl Run {
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Polls for the next event. Returns `None` after [`Event::Ended`].
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = std::task::ready!(self.events.poll_recv(cx));
        // The thread of a cancelled model call may still send text. Nothing is read after the end.
        self.ended = matches!(event, None | Some(Event::Ended(_)));
        Poll::Ready(event)
    }

    /// Waits for the next event. Returns `None` after [`Event::Ended`].
    pub async fn next_event(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Sends a command to the run. A command that makes no sense at this moment is ignored.
    pub fn send(&self, command: Command) {
        if let Some(commands) = &self.commands
            && commands.try_send(command).is_err()
        {
            tracing::debug!("a command came after the run had ended, or faster than the run reads them");
        }
    }

    /// Tells the run that no more commands will come. Calls that wait for a decision are denied, and the run
    /// goes on.
    pub fn close_commands(&mut self) {
        self.commands = None;
    }

    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(super) fn cancel_signal(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns a sender of commands that does not keep the run's inbox open.
    pub(super) fn command_sender(&self) -> Option<mpsc::WeakSender<Command>> {
        self.commands.as_ref().map(mpsc::Sender::downgrade)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl RunIo {
    pub(super) fn cancel(&self) -> &Cancel {
        &self.events.cancel
    }

    /// Sends an event. Waits while the queue is full, until the run is cancelled.
    pub(super) async fn send(&self, event: Event) -> Result<(), Stop> {
        self.events.send(event).await
    }

    /// Returns the next command, or `None` when the client closes its side. Once it has closed, this never
    /// resolves, so use it only in a `select!`.
    pub(super) async fn next_command(&mut self) -> Option<Command> {
        receive(&mut self.commands).await
    }

    /// Returns true if a command can still arrive.
    pub(super) fn accepts_commands(&self) -> bool {
        self.commands.is_some()
    }

    pub(super) fn close_commands(&mut self) {
        self.commands = None;
    }

    /// Resolves when the run is cancelled or its client stops reading events. The future borrows nothing, so
    /// that a loop can poll it beside other uses of the run.
    pub(super) fn interrupted(&self) -> impl Future<Output = ()> + Send + use<> {
        let EventSender { events, cancel, .. } = self.events.clone();
        async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = events.closed() => {}
            }
        }
    }

    /// Waits for `work` until the run is cancelled.
    pub(super) async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.cancel().cancelled() => Err(Stop::Cancelled),
            result = work => Ok(result),
        }
    }
}

impl EventSender {
    pub(super) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    async fn send(&self, event: Event) -> Result<(), Stop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
            sent = self.events.send(event) => sent.map_err(|_| Stop::Cancelled),
        }
    }

    /// Sends an event from a blocking thread. An event of a cancelled run is dropped.
    pub(super) fn send_blocking(&self, event: Event) {
        if self.cancel.is_cancelled() {
            return;
        }
        if let Err(mpsc::error::TrySendError::Full(event)) = self.events.try_send(event) {
            // The result does not matter here, because the run notices a cancel by itself.
            drop(self.runtime.block_on(self.send(event)));
        }
    }
}

impl EndPermit {
    /// Sends the last event.
    pub(super) fn finish(self, outcome: Outcome) {
        self.0.send(Event::Ended(outcome));
    }
}

/// Receives from `receiver`. Once it is `None`, this never resolves.
pub(super) async fn receive<T>(receiver: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => pending().await,
    }
}
