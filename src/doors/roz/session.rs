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
    news::{Fault, News},
    outbox::{Outbox, Overflow},
    start::{Beginning, Open},
    state::{Said, State, Step, step},
    turn::{Ending, Happened, Turn},
    watch::{Entry, Live},
};

/// Why a session is over.
enum Over {
    /// As it should be; what waits is still read.
    Done,
    /// The client does not read.
    Stalled,
}

impl From<Overflow> for Over {
    fn from(_: Overflow) -> Self {
        Self::Stalled
    }
}

/// One session, from its stream's first request to its last frame.
pub(super) struct Session {
    core: AgentCore,
    live: Live,
    out: Outbox,
    /// `None` once the client has closed its side.
    requests: Option<Streaming<SessionRequest>>,
    open: Option<Open>,
    /// It can be watched.
    entry: Option<Entry>,
    turn: Option<Turn>,
    /// What the session ends with as soon as the turn has.
    leaving: Option<&'static str>,
}

/// Something that the session has to look at.
enum Next {
    Request(Option<Result<SessionRequest, Status>>),
    Turn(Happened),
}

impl Session {
    pub(super) fn new(core: AgentCore, live: Live, requests: Streaming<SessionRequest>, out: Outbox) -> Self {
        let requests = Some(requests);
        Self { core, live, out, requests, open: None, entry: None, turn: None, leaving: None }
    }

    /// Serves until the session is over. Dropping what it holds cancels its turn.
    pub(super) async fn serve(mut self) {
        loop {
            let stopped = self.core.clone();
            let next = tokio::select! {
                biased;
                () = self.out.gone() => return,
                // A turn that is going ends with the core, and is told.
                () = stopped.stopped(), if self.turn.is_none() => return,
                next = next(&self.out, &mut self.requests, &mut self.turn) => next,
            };
            let over = match next {
                Next::Request(Some(Ok(request))) => self.hear(request.request).await,
                Next::Request(Some(Err(status))) => self.garbled(&status),
                Next::Request(None) => self.closed(),
                Next::Turn(happened) => self.happened(happened),
            };
            match over {
                Ok(()) => {}
                Err(Over::Done) => return,
                Err(Over::Stalled) => {
                    tracing::info!("a client does not read; its session is over");
                    self.out.cut(Status::resource_exhausted("too much waits to be read"));
                    return;
                }
            }
        }
    }

    fn state(&self) -> State {
        match (&self.open, &self.turn) {
            (None, _) => State::NoSession,
            (Some(_), None) => State::Idle,
            (Some(_), Some(_)) => State::InTurn,
        }
    }

    async fn hear(&mut self, request: Option<Request>) -> Result<(), Over> {
        let step = step(self.state(), said(request.as_ref()));
        match (step, request) {
            (Step::Refuse(refusal), _) => {
                let (code, message) = (refusal.code(), refusal.message().to_owned());
                self.refuse(Fault { code, message, retryable: false })
            }
            (Step::Start, Some(Request::Start(start))) => match Open::new(&self.core, start).await {
                Ok((open, news)) => {
                    self.entry = Some(self.live.enter(open.id.clone()));
                    self.open = Some(open);
                    self.say(news)
                }
                Err(fault) => {
                    self.refuse(fault)?;
                    Err(Over::Done)
                }
            },
            (Step::BeginTurn, Some(Request::UserMessage(message))) => {
                let Some(open) = &mut self.open else { return Ok(()) };
                match open.begin(message) {
                    Ok(beginning) => self.begin(beginning),
                    Err(fault) => self.refuse(fault),
                }
            }
            (Step::TakeResult, Some(Request::ToolResult(result))) => {
                if let Some(turn) = &mut self.turn {
                    turn.take(result);
                }
                Ok(())
            }
            (Step::Decide, Some(Request::PermissionDecision(decision))) => {
                self.in_turn(|turn, out| turn.decide(decision, out))
            }
            (Step::Register, Some(Request::RegisterTools(register))) => {
                match self.open.as_mut().map(|open| open.register(register)) {
                    Some(Err(fault)) => self.refuse(fault),
                    Some(Ok(())) | None => Ok(()),
                }
            }
            (Step::KeepFeedback, Some(Request::Feedback(feedback))) => {
                let (session, message, rating) = (feedback.session_id, feedback.message_id, feedback.rating);
                let kept = self.core.store_feedback(Feedback { session, message, rating }).await;
                if let Err(error) = kept {
                    tracing::warn!(%error, "an opinion was not kept");
                }
                Ok(())
            }
            (Step::CancelTurn, _) => {
                if let Some(turn) = &self.turn {
                    turn.cancel();
                }
                Ok(())
            }
            (Step::Leave, _) => {
                if let Some(turn) = &self.turn {
                    turn.cancel();
                }
                self.requests = None;
                self.leave("cancelled by client")
            }
            (Step::Pong, _) => self.say(News::Pong),
            (Step::End, _) => Err(Over::Done),
            _ => Ok(()),
        }
    }

    /// The client has closed its side.
    fn closed(&mut self) -> Result<(), Over> {
        self.requests = None;
        match step(self.state(), Said::HalfClose) {
            Step::Finish => {
                self.in_turn(Turn::close)?;
                self.leave("session completed")
            }
            _ if self.open.is_some() => self.leave("session completed"),
            _ => Err(Over::Done),
        }
    }

    /// A message could not be read, or the connection broke: nobody is in control any more.
    fn garbled(&mut self, status: &Status) -> Result<(), Over> {
        self.requests = None;
        self.refuse(Fault::invalid(format!("a message could not be read: {}", status.message())))?;
        Err(Over::Done)
    }

    fn begin(&mut self, beginning: Beginning) -> Result<(), Over> {
        let Beginning { request, message, index, note } = beginning;
        let turn = Turn::new(self.core.start(request), message, index);
        let mut out = Vec::new();
        turn.begin(note.as_deref(), &mut out);
        self.turn = Some(turn);
        self.say_all(out)
    }

    fn happened(&mut self, happened: Happened) -> Result<(), Over> {
        match happened {
            Happened::Keepalive => match &self.turn {
                Some(turn) => self.say(turn.keepalive()),
                None => Ok(()),
            },
            Happened::Expired => self.in_turn(Turn::expire),
            Happened::Event(Some(event)) => self.tell(event),
            // The core always says how a run has ended.
            Happened::Event(None) => {
                self.turn = None;
                self.after_turn()
            }
        }
    }

    fn tell(&mut self, event: Event) -> Result<(), Over> {
        let (Some(turn), Some(open)) = (&mut self.turn, &mut self.open) else { return Ok(()) };
        let mut out = Vec::new();
        let ending = turn.tell(event, &mut open.ids, &mut out);
        let correlation = turn.correlation();
        if let Some(ending) = &ending {
            open.totals += turn.usage();
            if let Some(mark) = mark(ending) {
                open.conversation.push(Message::text(Role::Assistant, mark));
            }
            // Before the last frame leaves: the next message may be here at once.
            self.turn = None;
        }
        for news in out {
            self.out.send(news, correlation)?;
        }
        if ending.is_some() { self.after_turn() } else { Ok(()) }
    }

    fn after_turn(&mut self) -> Result<(), Over> {
        match self.leaving {
            Some(summary) => self.leave(summary),
            None => Ok(()),
        }
    }

    /// Ends the session, once its turn is over.
    fn leave(&mut self, summary: &'static str) -> Result<(), Over> {
        self.leaving = Some(summary);
        if self.turn.is_some() {
            return Ok(());
        }
        if let Some(open) = &self.open {
            tracing::debug!(session = %open.id, summary, "a session is over");
            let totals = open.totals;
            self.say(News::Completed { summary, totals })?;
        }
        Err(Over::Done)
    }

    fn in_turn(&mut self, act: impl FnOnce(&mut Turn, &mut Vec<News>)) -> Result<(), Over> {
        let mut out = Vec::new();
        if let Some(turn) = &mut self.turn {
            act(turn, &mut out);
        }
        self.say_all(out)
    }

    fn say_all(&self, all: Vec<News>) -> Result<(), Over> {
        all.into_iter().try_for_each(|news| self.say(news))
    }

    fn say(&self, news: News) -> Result<(), Over> {
        let correlation = self.turn.as_ref().map_or_else(Uuid::new_v4, Turn::correlation);
        Ok(self.out.send(news, correlation)?)
    }

    /// Says no; that belongs to no turn.
    fn refuse(&self, fault: Fault) -> Result<(), Over> {
        Ok(self.out.send(News::Error(fault), Uuid::new_v4())?)
    }
}

/// Whichever comes first, in no fixed order: neither a chatty client nor a chatty model may starve the
/// other. Can be dropped halfway without losing anything.
async fn next(
    out: &Outbox,
    requests: &mut Option<Streaming<SessionRequest>>,
    turn: &mut Option<Turn>,
) -> Next {
    let request = async {
        let Some(requests) = requests else { return std::future::pending().await };
        // A client that does not read is not read either.
        out.room().await;
        requests.next().await
    };
    let turn = async {
        match turn {
            Some(turn) => turn.next().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        request = request => Next::Request(request),
        happened = turn => Next::Turn(happened),
    }
}

fn said(request: Option<&Request>) -> Said {
    match request {
        Some(Request::Start(_)) => Said::Start,
        Some(Request::UserMessage(_)) => Said::UserMessage,
        Some(Request::ToolResult(_)) => Said::ToolResult,
        Some(Request::CancelTurn(_)) => Said::CancelTurn,
        Some(Request::CancelSession(_)) => Said::CancelSession,
        Some(Request::Ping(_)) => Said::Ping,
        Some(Request::Feedback(_)) => Said::Feedback,
        Some(Request::PermissionDecision(_)) => Said::PermissionDecision,
        Some(Request::RegisterTools(_)) => Said::RegisterTools,
        // Cameras and robots.
        Some(Request::WebrtcAnswer(_) | Request::IceCandidate(_) | Request::CameraRequest(_)) | None => {
            Said::Nothing
        }
    }
}

/// What the conversation says about a turn that did not go well, so that the model does not take its
/// prompt for unanswered.
fn mark(ending: &Ending) -> Option<&'static str> {
    match ending {
        Ending::Completed => None,
        Ending::Cancelled => Some("[cancelled before it was finished]"),
        Ending::Failed => Some("[this turn failed before it was finished]"),
    }
}
