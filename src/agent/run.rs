//! The two ends of a run: [`Run`], which its client holds, and [`RunIo`], which the run itself holds.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::mpsc::{self, error::SendTimeoutError},
};

use crate::core::{CallId, Cancel, RunId};

use super::{
    pending_calls::PendingCalls,
    protocol::{Command, Event, FailureKind, Outcome, RunError},
};

/// The number of events that may wait for a slow client before the run waits for it.
const EVENT_QUEUE: usize = 256;

/// The time that a run waits for a client that reads nothing while the queue of events is full. After that the run
/// fails, because it may hold a slot at the model that others wait for. A pager does not come near this: the client's
/// library takes several megabytes of events before the queue fills up.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A run in progress. Dropping it cancels the run.
pub struct Run {
    id: RunId,
    /// `None` once the client has closed its side.
    commands: Option<mpsc::UnboundedSender<Command>>,
    pending: Arc<PendingCalls>,
    events: mpsc::Receiver<Event>,
    cancel: Cancel,
    ended: bool,
}

/// What clients that did not start a run may do to it.
pub(super) struct RunHandle {
    /// Weak, so that the run's own client can still close the run's inbox.
    commands: mpsc::WeakUnboundedSender<Command>,
    pub(super) pending: Arc<PendingCalls>,
    pub(super) cancel: Cancel,
}

/// The run's own end: it sends events and receives commands.
pub(super) struct RunIo {
    pub(super) events: EventSender,
    /// `None` once no more commands can come.
    commands: Option<mpsc::UnboundedReceiver<Command>>,
    pub(super) pending: Arc<PendingCalls>,
}

/// Sends the events of a run, from async code and from blocking threads.
#[derive(Clone)]
pub(super) struct EventSender {
    events: mpsc::Sender<Event>,
    cancel: Cancel,
    /// The client has not read for [`READ_TIMEOUT`].
    unread: Arc<AtomicBool>,
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
    // The queue needs no limit: each command answers one call of the run, and a call takes one answer.
    let (command_sender, commands) = mpsc::unbounded_channel();
    let pending = Arc::new(PendingCalls::default());
    let (event_sender, events) = mpsc::channel(EVENT_QUEUE);
    let end = event_sender.clone().try_reserve_owned().expect("a new channel has room");
    let sender = EventSender {
        events: event_sender,
        cancel: cancel.clone(),
        unread: Arc::default(),
        runtime: Handle::current(),
    };
    let run = Run {
        id,
        commands: Some(command_sender),
        pending: Arc::clone(&pending),
        events,
        cancel,
        ended: false,
    };
    (run, RunIo { events: sender, commands: Some(commands), pending }, EndPermit(end))
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
        let Some(commands) = &self.commands else { return };
        let taken = match command.decided_call() {
            Some(call) => self.pending.decide(&call.clone(), command, commands),
            None => commands.send(command).is_ok(),
        };
        if !taken {
            tracing::debug!("ignored a command after the run has ended, or for a call that does not wait");
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

    /// Returns the handle for other clients, or `None` if the client has closed its side.
    pub(super) fn handle(&self) -> Option<RunHandle> {
        let commands = self.commands.as_ref()?.downgrade();
        Some(RunHandle { commands, pending: Arc::clone(&self.pending), cancel: self.cancel.clone() })
    }
}

impl RunHandle {
    /// Passes a decision on to the run. Returns false if the call does not wait for one.
    pub(super) fn decide(&self, call: &CallId, command: Command) -> bool {
        self.commands.upgrade().is_some_and(|commands| self.pending.decide(call, command, &commands))
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

    /// Sends an event. If the client does not read, this cancels the run after [`READ_TIMEOUT`].
    async fn send(&self, event: Event) -> Result<(), Stop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
            sent = self.events.send_timeout(event, READ_TIMEOUT) => sent.map_err(|error| {
                if matches!(error, SendTimeoutError::Timeout(_)) {
                    self.unread.store(true, Ordering::Relaxed);
                    self.cancel.cancel();
                }
                Stop::Cancelled
            }),
        }
    }

    /// Returns the outcome of a run that was cancelled.
    pub(super) fn outcome_of_cancel(&self) -> Outcome {
        if self.unread.load(Ordering::Relaxed) {
            let seconds = READ_TIMEOUT.as_secs();
            let message = format!("the client read no event for {seconds} s");
            return Outcome::Failed(RunError::new(FailureKind::Limit, message));
        }
        Outcome::Cancelled
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
pub(super) async fn receive<T>(receiver: &mut Option<mpsc::UnboundedReceiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_run_whose_client_does_not_read_fails_and_its_end_is_still_queued() {
        let cancel = Cancel::new();
        let (mut run, io, end) = channel(RunId::new(), cancel.clone());
        let mut queued = 0;
        while io.send(Event::Text("x".to_owned())).await.is_ok() {
            queued += 1;
        }
        assert_eq!((queued, cancel.is_cancelled()), (EVENT_QUEUE - 1, true));
        end.finish(io.events.outcome_of_cancel());
        let mut last = None;
        while let Some(event) = run.next_event().await {
            last = Some(event);
        }
        assert!(
            matches!(&last, Some(Event::Ended(Outcome::Failed(error))) if error.kind == FailureKind::Limit),
            "{last:?}"
        );
    }
}
