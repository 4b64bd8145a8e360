//! The task of one session: requests in, news out, one turn at a time.

use tokio_stream::StreamExt as _;
use tonic::{Status, Streaming};
use uuid::Uuid;

use crate::{
    agent::{AgentCore, protocol::Event},
    core::{Message, Role},
    pb::roz::{SessionRequest, session_request::Request},
    sessions::Feedback,
};

use super::{
    client_run::{ClientRun, RunEnding, RunSignal},
    outbox::{BoundedOutbox, Overflow},
    server_event::{Fault, ServerEvent},
    start::{OpenSession, TurnStart},
    state::{Action, Input, State, transition},
    watch::{OpenSessionGuard, OpenSessions},
};

/// Why a session is over.
enum SessionEnd {
    /// As it should be; what waits is still read.
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
    /// `None` once the client has closed its side.
    requests: Option<Streaming<SessionRequest>>,
    session: Option<OpenSession>,
    /// It can be watched.
    watch_guard: Option<OpenSessionGuard>,
    run: Option<ClientRun>,
    /// What the session ends with as soon as the turn has.
    ending: Option<&'static str>,
}

/// Something that the session has to look at.
enum Incoming {
    Request(Option<Result<SessionRequest, Status>>),
    Run(RunSignal),
}

impl Session {
    pub(super) fn new(
        core: AgentCore,
        live: OpenSessions,
        requests: Streaming<SessionRequest>,
        out: BoundedOutbox,
    ) -> Self {
        let requests = Some(requests);
        Self {
            core,
            open_sessions: live,
            outbox: out,
            requests,
            session: None,
            watch_guard: None,
            run: None,
            ending: None,
        }
    }

    /// Serves until the session is over. Dropping what it holds cancels its turn.
    pub(super) async fn serve(mut self) {
        loop {
            let stopped = self.core.clone();
            let next = tokio::select! {
                biased;
                () = self.outbox.closed() => return,
                // A turn that is going ends with the core, and is told.
                () = stopped.stopped(), if self.run.is_none() => return,
                next = next_incoming(&self.outbox, &mut self.requests, &mut self.run) => next,
            };
            let over = match next {
                Incoming::Request(Some(Ok(request))) => self.handle_request(request.request).await,
                Incoming::Request(Some(Err(status))) => self.handle_read_error(&status),
                Incoming::Request(None) => self.handle_half_close(),
                Incoming::Run(happened) => self.handle_signal(happened),
            };
            match over {
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
        let step = transition(self.state(), input(request.as_ref()));
        match (step, request) {
            (Action::Refuse(refusal), _) => {
                let (code, message) = (refusal.code(), refusal.message().to_owned());
                self.send_error(Fault { code, message, retryable: false })
            }
            (Action::Start, Some(Request::Start(start))) => match OpenSession::new(&self.core, start).await {
                Ok((open, news)) => {
                    self.watch_guard = Some(self.open_sessions.insert(open.id.clone()));
                    self.session = Some(open);
                    self.send(news)
                }
                Err(fault) => {
                    self.send_error(fault)?;
                    Err(SessionEnd::Done)
                }
            },
            (Action::BeginTurn, Some(Request::UserMessage(message))) => {
                let Some(open) = &mut self.session else { return Ok(()) };
                match open.begin_turn(message) {
                    Ok(beginning) => self.begin_turn(beginning),
                    Err(fault) => self.send_error(fault),
                }
            }
            (Action::DeliverResult, Some(Request::ToolResult(result))) => {
                if let Some(turn) = &mut self.run {
                    turn.handle_tool_result(result);
                }
                Ok(())
            }
            (Action::Decide, Some(Request::PermissionDecision(decision))) => {
                self.with_run(|turn, out| turn.decide(decision, out))
            }
            (Action::Register, Some(Request::RegisterTools(register))) => {
                match self.session.as_mut().map(|open| open.register(register)) {
                    Some(Err(fault)) => self.send_error(fault),
                    Some(Ok(())) | None => Ok(()),
                }
            }
            (Action::StoreFeedback, Some(Request::Feedback(feedback))) => {
                let (session, message, rating) = (feedback.session_id, feedback.message_id, feedback.rating);
                let kept = self.core.store_feedback(Feedback { session, message, rating }).await;
                if let Err(error) = kept {
                    tracing::warn!(%error, "an opinion was not kept");
                }
                Ok(())
            }
            (Action::CancelTurn, _) => {
                if let Some(turn) = &self.run {
                    turn.cancel();
                }
                Ok(())
            }
            (Action::CancelThenEnd, _) => {
                if let Some(turn) = &self.run {
                    turn.cancel();
                }
                self.requests = None;
                self.end("cancelled by client")
            }
            (Action::Pong, _) => self.send(ServerEvent::Pong),
            (Action::End, _) => Err(SessionEnd::Done),
            _ => Ok(()),
        }
    }

    /// The client has closed its side.
    fn handle_half_close(&mut self) -> Result<(), SessionEnd> {
        self.requests = None;
        match transition(self.state(), Input::HalfClose) {
            Action::FinishThenEnd => {
                self.with_run(ClientRun::half_close)?;
                self.end("session completed")
            }
            _ if self.session.is_some() => self.end("session completed"),
            _ => Err(SessionEnd::Done),
        }
    }

    /// A message could not be read, or the connection broke: nobody is in control any more.
    fn handle_read_error(&mut self, status: &Status) -> Result<(), SessionEnd> {
        self.requests = None;
        self.send_error(Fault::invalid_argument(format!(
            "a message could not be read: {}",
            status.message()
        )))?;
        Err(SessionEnd::Done)
    }

    fn begin_turn(&mut self, beginning: TurnStart) -> Result<(), SessionEnd> {
        let TurnStart { request, message, index, note } = beginning;
        let turn = ClientRun::new(self.core.start(request), message, index);
        let mut out = Vec::new();
        turn.begin(note.as_deref(), &mut out);
        self.run = Some(turn);
        self.send_all(out)
    }

    fn handle_signal(&mut self, happened: RunSignal) -> Result<(), SessionEnd> {
        match happened {
            RunSignal::Keepalive => match &self.run {
                Some(turn) => self.send(turn.keepalive()),
                None => Ok(()),
            },
            RunSignal::Expired => self.with_run(ClientRun::expire),
            RunSignal::Event(Some(event)) => self.handle_event(event),
            // The core always says how a run has ended.
            RunSignal::Event(None) => {
                self.run = None;
                self.after_run()
            }
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<(), SessionEnd> {
        let (Some(turn), Some(open)) = (&mut self.run, &mut self.session) else { return Ok(()) };
        let mut out = Vec::new();
        let ending = turn.handle_event(event, &mut open.wire_ids, &mut out);
        let correlation = turn.correlation();
        if let Some(ending) = &ending {
            open.totals += turn.usage();
            if let Some(mark) = interruption_note(ending) {
                open.conversation.push(Message::text(Role::Assistant, mark));
            }
            // Before the last frame leaves: the next message may be here at once.
            self.run = None;
        }
        for news in out {
            self.outbox.send(news, correlation)?;
        }
        if ending.is_some() { self.after_run() } else { Ok(()) }
    }

    fn after_run(&mut self) -> Result<(), SessionEnd> {
        match self.ending {
            Some(summary) => self.end(summary),
            None => Ok(()),
        }
    }

    /// Ends the session, once its turn is over.
    fn end(&mut self, summary: &'static str) -> Result<(), SessionEnd> {
        self.ending = Some(summary);
        if self.run.is_some() {
            return Ok(());
        }
        if let Some(open) = &self.session {
            tracing::debug!(session = %open.id, summary, "a session is over");
            let totals = open.totals;
            self.send(ServerEvent::Completed { summary, totals })?;
        }
        Err(SessionEnd::Done)
    }

    fn with_run(
        &mut self,
        act: impl FnOnce(&mut ClientRun, &mut Vec<ServerEvent>),
    ) -> Result<(), SessionEnd> {
        let mut out = Vec::new();
        if let Some(turn) = &mut self.run {
            act(turn, &mut out);
        }
        self.send_all(out)
    }

    fn send_all(&self, all: Vec<ServerEvent>) -> Result<(), SessionEnd> {
        all.into_iter().try_for_each(|news| self.send(news))
    }

    fn send(&self, news: ServerEvent) -> Result<(), SessionEnd> {
        let correlation = self.run.as_ref().map_or_else(Uuid::new_v4, ClientRun::correlation);
        Ok(self.outbox.send(news, correlation)?)
    }

    /// Says no; that belongs to no turn.
    fn send_error(&self, fault: Fault) -> Result<(), SessionEnd> {
        Ok(self.outbox.send(ServerEvent::Error(fault), Uuid::new_v4())?)
    }
}

/// Whichever comes first, in no fixed order: neither a chatty client nor a chatty model may starve the
/// other. Can be dropped halfway without losing anything.
async fn next_incoming(
    out: &BoundedOutbox,
    requests: &mut Option<Streaming<SessionRequest>>,
    turn: &mut Option<ClientRun>,
) -> Incoming {
    let request = async {
        let Some(requests) = requests else { return std::future::pending().await };
        // A client that does not read is not read either.
        out.drained().await;
        requests.next().await
    };
    let turn = async {
        match turn {
            Some(turn) => turn.next().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        request = request => Incoming::Request(request),
        happened = turn => Incoming::Run(happened),
    }
}

fn input(request: Option<&Request>) -> Input {
    match request {
        Some(Request::Start(_)) => Input::Start,
        Some(Request::UserMessage(_)) => Input::UserMessage,
        Some(Request::ToolResult(_)) => Input::ToolResult,
        Some(Request::CancelTurn(_)) => Input::CancelTurn,
        Some(Request::CancelSession(_)) => Input::CancelSession,
        Some(Request::Ping(_)) => Input::Ping,
        Some(Request::Feedback(_)) => Input::Feedback,
        Some(Request::PermissionDecision(_)) => Input::PermissionDecision,
        Some(Request::RegisterTools(_)) => Input::RegisterTools,
        // Cameras and robots.
        Some(Request::WebrtcAnswer(_) | Request::IceCandidate(_) | Request::CameraRequest(_)) | None => {
            Input::Unknown
        }
    }
}

/// What the conversation says about a turn that did not go well, so that the model does not take its
/// prompt for unanswered.
fn interruption_note(ending: &RunEnding) -> Option<&'static str> {
    match ending {
        RunEnding::Completed => None,
        RunEnding::Cancelled => Some("[cancelled before it was finished]"),
        RunEnding::Failed => Some("[this turn failed before it was finished]"),
    }
}
