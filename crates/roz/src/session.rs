//! The task of one session: it handles the client's requests and runs one turn at a time.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    task::Poll,
};

use tokio_stream::StreamExt as _;
use tonic::{Status, Streaming};
use uuid::Uuid;

use kontekst_agent::{AgentCore, protocol::Event};
use kontekst_core::{Message, Role};
use kontekst_pb::roz::{
    MessageFeedback, RegisterTools, SessionRequest, StartSession, UserMessage, session_request::Request,
};
use kontekst_store::sessions::Feedback;

use super::{
    client_run::{ClientRun, RunEnding, RunSignal},
    outbox::{BoundedOutbox, Overflow},
    server_event::{Fault, ServerEvent},
    start::{OpenSession, TurnStart},
    state::{Action, Refusal, State, on_half_close, on_request},
    watch::{OpenSessionGuard, OpenSessions},
};

/// The reason why a session is over.
enum SessionEnd {
    /// It ended as it should. The client still reads what is queued.
    Done,
    /// The client does not read.
    Stalled,
}

impl From<Overflow> for SessionEnd {
    fn from(_: Overflow) -> Self {
        Self::Stalled
    }
}

/// One session, from its stream's first request to its last frame.
pub(super) struct Session {
    core: AgentCore,
    open_sessions: OpenSessions,
    outbox: BoundedOutbox,
    /// `None` once the client has closed its side or has cancelled the session.
    requests: Option<Streaming<SessionRequest>>,
    session: Option<OpenSession>,
    /// Keeps the session in [`OpenSessions`].
    watch_guard: Option<OpenSessionGuard>,
    run: Option<ClientRun>,
    /// The summary to end the session with as soon as there is no run any more.
    ending: Option<&'static str>,
    /// Prefers the run if a request and an event of the run are both ready.
    run_first: bool,
}

/// Something that the session has to handle.
enum Incoming {
    /// A request, an error of the stream, or `None` when the client has closed its side.
    Request(Option<Result<SessionRequest, Status>>),
    Run(RunSignal),
}

impl Session {
    pub(super) fn new(
        core: AgentCore,
        open_sessions: OpenSessions,
        requests: Streaming<SessionRequest>,
        outbox: BoundedOutbox,
    ) -> Self {
        Self {
            core,
            open_sessions,
            outbox,
            requests: Some(requests),
            session: None,
            watch_guard: None,
            run: None,
            ending: None,
            run_first: false,
        }
    }

    /// Serves until the session is over. Dropping the session cancels its run.
    pub(super) async fn serve(mut self) {
        loop {
            let incoming = tokio::select! {
                biased;
                () = self.outbox.closed() => return,
                // A run ends when the core stops, and its ending is still reported to the client.
                () = self.core.stopped(), if self.run.is_none() => return,
                incoming = next_incoming(&self.outbox, &mut self.requests, &mut self.run, self.run_first) => incoming,
            };
            // Requests and the run take turns, so that neither a chatty client nor a chatty model can starve the
            // other.
            self.run_first = matches!(incoming, Incoming::Request(_));
            let handled = match incoming {
                Incoming::Request(Some(Ok(request))) => self.handle_request(request.request).await,
                Incoming::Request(Some(Err(status))) => self.handle_read_error(&status),
                Incoming::Request(None) => self.handle_half_close().await,
                Incoming::Run(signal) => self.handle_signal(signal),
            };
            match handled {
                Ok(()) => {}
                Err(SessionEnd::Done) => return,
                Err(SessionEnd::Stalled) => {
                    tracing::info!("a client does not read; its session is over");
                    self.outbox.abort(Status::resource_exhausted("too much waits to be read"));
                    return;
                }
            }
        }
    }

    fn state(&self) -> State {
        match (&self.session, &self.run) {
            (None, _) => State::NoSession,
            (Some(_), None) => State::Idle,
            (Some(_), Some(_)) => State::InTurn,
        }
    }

    async fn handle_request(&mut self, request: Option<Request>) -> Result<(), SessionEnd> {
        self.perform(on_request(self.state(), request)).await
    }

    async fn handle_half_close(&mut self) -> Result<(), SessionEnd> {
        self.requests = None;
        self.perform(on_half_close(self.state())).await
    }

    /// Ends the session after a message that could not be read, or after the connection broke: the client no
    /// longer controls the run, so it is cancelled.
    fn handle_read_error(&mut self, status: &Status) -> Result<(), SessionEnd> {
        self.requests = None;
        self.send_error(Fault::invalid_argument(format!(
            "a message could not be read: {}",
            status.message()
        )))?;
        Err(SessionEnd::Done)
    }

    async fn perform(&mut self, action: Action) -> Result<(), SessionEnd> {
        match action {
            Action::Start(start) => self.start(start).await,
            Action::BeginTurn(message) => self.begin_turn(message),
            Action::DeliverResult(result) => self.with_run(|run, _| run.handle_tool_result(result)),
            Action::Decide(decision) => self.with_run(|run, _| run.decide(decision)),
            Action::Register(register) => self.register(register),
            Action::CancelTurn => self.with_run(|run, _| run.cancel()),
            Action::CancelThenEnd => {
                self.with_run(|run, _| run.cancel())?;
                self.requests = None;
                self.end("cancelled by client")
            }
            Action::FinishThenEnd => {
                self.with_run(ClientRun::half_close)?;
                self.end("session completed")
            }
            Action::End => self.end("session completed"),
            Action::Pong => self.send(ServerEvent::Pong),
            Action::StoreFeedback(feedback) => {
                self.store_feedback(feedback).await;
                Ok(())
            }
            Action::Ignore => Ok(()),
            Action::Refuse(refusal) => self.refuse(refusal),
        }
    }

    async fn start(&mut self, start: StartSession) -> Result<(), SessionEnd> {
        match OpenSession::new(&self.core, start).await {
            Ok((session, started)) => {
                self.watch_guard = Some(self.open_sessions.insert(session.id.clone()));
                self.session = Some(session);
                self.send(started)
            }
            Err(fault) => {
                self.send_error(fault)?;
                Err(SessionEnd::Done)
            }
        }
    }

    fn begin_turn(&mut self, message: UserMessage) -> Result<(), SessionEnd> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let TurnStart { request, turn, note } = match session.begin_turn(message) {
            Ok(start) => start,
            Err(fault) => return self.send_error(fault),
        };
        let run = ClientRun::new(self.core.start(request), turn);
        let mut out = Vec::new();
        run.announce(note.as_deref(), &mut out);
        self.run = Some(run);
        self.send_all(out)
    }

    fn register(&mut self, register: RegisterTools) -> Result<(), SessionEnd> {
        match self.session.as_mut().map(|session| session.register(register)) {
            Some(Err(fault)) => self.send_error(fault),
            Some(Ok(())) | None => Ok(()),
        }
    }

    async fn store_feedback(&self, feedback: MessageFeedback) {
        let MessageFeedback { session_id, message_id, rating, .. } = feedback;
        let feedback = Feedback { session: session_id, message: message_id, rating };
        if let Err(error) = self.core.store_feedback(feedback).await {
            tracing::warn!(%error, "the client's feedback was not stored");
        }
    }

    fn handle_signal(&mut self, signal: RunSignal) -> Result<(), SessionEnd> {
        match signal {
            RunSignal::Keepalive => self.with_run(|run, out| out.push(run.keepalive())),
            RunSignal::ApprovalExpired => self.with_run(|run, _| run.expire_approval()),
            RunSignal::Event(Some(event)) => self.handle_event(event),
            // `Event::Ended` comes before this and removes the run; this guards against a run without an ending.
            RunSignal::Event(None) => {
                self.run = None;
                self.after_run()
            }
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<(), SessionEnd> {
        let (Some(run), Some(session)) = (&mut self.run, &mut self.session) else { return Ok(()) };
        let mut out = Vec::new();
        let ending = run.handle_event(event, &mut session.wire_ids, &mut out);
        let correlation = run.correlation();
        if let Some(ending) = &ending {
            session.totals += run.usage();
            // A turn that failed before any answer is not in the conversation.
            let is_remembered =
                !matches!(ending, RunEnding::Failed) || session.conversation.ends_with(run.id());
            if let Some(note) = interruption_note(ending).filter(|_| is_remembered) {
                session.conversation.push(Message::text(Role::Assistant, note));
            }
            // The run is removed before its last frame is sent, because the client's next message may come at
            // once.
            self.run = None;
        }
        for event in out {
            self.outbox.send(event, correlation)?;
        }
        if ending.is_some() { self.after_run() } else { Ok(()) }
    }

    /// Ends the session if it only waited for the end of the run.
    fn after_run(&mut self) -> Result<(), SessionEnd> {
        match self.ending {
            Some(summary) => self.end(summary),
            None => Ok(()),
        }
    }

    /// Ends the session, or marks it to be ended once its run is over.
    fn end(&mut self, summary: &'static str) -> Result<(), SessionEnd> {
        self.ending = Some(summary);
        if self.run.is_some() {
            return Ok(());
        }
        if let Some(session) = &self.session {
            tracing::debug!(session = %session.id, summary, "a session is over");
            self.send(ServerEvent::Completed { summary, totals: session.totals })?;
        }
        Err(SessionEnd::Done)
    }

    /// Calls `act` with the run, if there is one, and sends the events that it adds.
    fn with_run(
        &mut self,
        act: impl FnOnce(&mut ClientRun, &mut Vec<ServerEvent>),
    ) -> Result<(), SessionEnd> {
        let mut out = Vec::new();
        if let Some(run) = &mut self.run {
            act(run, &mut out);
        }
        self.send_all(out)
    }

    fn send_all(&self, events: Vec<ServerEvent>) -> Result<(), SessionEnd> {
        events.into_iter().try_for_each(|event| self.send(event))
    }

    fn send(&self, event: ServerEvent) -> Result<(), SessionEnd> {
        let correlation = self.run.as_ref().map_or_else(Uuid::new_v4, ClientRun::correlation);
        Ok(self.outbox.send(event, correlation)?)
    }

    fn refuse(&self, refusal: Refusal) -> Result<(), SessionEnd> {
        let (code, message) = (refusal.code(), refusal.message().to_owned());
        self.send_error(Fault { code, message, retryable: false })
    }

    /// Sends an error that belongs to no turn.
    fn send_error(&self, fault: Fault) -> Result<(), SessionEnd> {
        Ok(self.outbox.send(ServerEvent::Error(fault), Uuid::new_v4())?)
    }
}

/// Waits for a request or for a signal of the run. If both are ready, `run_first` decides. Nothing is lost when
/// this future is dropped before it is ready.
async fn next_incoming(
    outbox: &BoundedOutbox,
    requests: &mut Option<Streaming<SessionRequest>>,
    run: &mut Option<ClientRun>,
    run_first: bool,
) -> Incoming {
    let request = async {
        let Some(requests) = requests else { return pending().await };
        // While a client does not read its frames, its requests are not read either.
        outbox.drained().await;
        Incoming::Request(requests.next().await)
    };
    let signal = async {
        match run {
            Some(run) => Incoming::Run(run.next_signal().await),
            None => pending().await,
        }
    };
    if run_first { first_ready(signal, request).await } else { first_ready(request, signal).await }
}

/// Resolves with the output of whichever future is ready first, or of `preferred` if both are.
async fn first_ready<T>(preferred: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut preferred, mut other) = (pin!(preferred), pin!(other));
    poll_fn(|cx| match preferred.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(output),
        Poll::Pending => other.as_mut().poll(cx),
    })
    .await
}

/// Returns the note that the conversation gets about an interrupted turn. Without it the model would take the
/// turn's prompt for one that was never answered.
fn interruption_note(ending: &RunEnding) -> Option<&'static str> {
    match ending {
        RunEnding::Completed => None,
        RunEnding::Cancelled => Some("[cancelled before it was finished]"),
        RunEnding::Failed => Some("[this turn failed before it was finished]"),
    }
}
