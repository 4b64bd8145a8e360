//! The table of what a request does in each state of a session. Pure.
//!
//! Source: the published service's table of states and messages. A refused request never ends a stream.

use kontekst_pb::roz::{
    MessageFeedback, PermissionDecision, RegisterTools, StartSession, ToolResult, UserMessage,
    session_request::Request,
};

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    NoSession,
    Idle,
    InTurn,
}

/// The session's action for a request, with the data that it needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Start(StartSession),
    BeginTurn(UserMessage),
    DeliverResult(ToolResult),
    Decide(PermissionDecision),
    Register(RegisterTools),
    CancelTurn,
    /// Cancels the run, if there is one, and ends the session after it.
    CancelThenEnd,
    /// Lets the run finish without the client's tools, and ends the session after it.
    FinishThenEnd,
    /// Ends the session at once.
    End,
    Pong,
    StoreFeedback(MessageFeedback),
    Ignore,
    Refuse(Refusal),
}

/// A reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NoSession,
    AlreadyStarted,
    TurnInProgress,
    NoActiveTurn,
}

impl Refusal {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::NoSession => "no_session",
            Self::AlreadyStarted => "already_started",
            Self::TurnInProgress => "turn_in_progress",
            Self::NoActiveTurn => "no_active_turn",
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            Self::NoSession => "send StartSession first",
            Self::AlreadyStarted => "this stream has its session already",
            Self::TurnInProgress => "a turn is going; wait for its end or cancel it",
            Self::NoActiveTurn => "no turn is going",
        }
    }
}

/// Decides what a request does. `None` is a message without a request, or with one that this service does not
/// know; it is ignored.
pub(super) fn on_request(state: State, request: Option<Request>) -> Action {
    use State::{Idle, InTurn, NoSession};
    let Some(request) = request else { return Action::Ignore };
    match (request, state) {
        (Request::Start(start), NoSession) => Action::Start(start),
        (Request::Start(_), Idle | InTurn) => Action::Refuse(Refusal::AlreadyStarted),
        (Request::UserMessage(_) | Request::ToolResult(_) | Request::RegisterTools(_), NoSession) => {
            Action::Refuse(Refusal::NoSession)
        }
        (Request::UserMessage(message), Idle) => Action::BeginTurn(message),
        (Request::UserMessage(_), InTurn) => Action::Refuse(Refusal::TurnInProgress),
        (Request::ToolResult(_), Idle) => Action::Refuse(Refusal::NoActiveTurn),
        (Request::ToolResult(result), InTurn) => Action::DeliverResult(result),
        (Request::PermissionDecision(decision), InTurn) => Action::Decide(decision),
        (Request::RegisterTools(register), Idle | InTurn) => Action::Register(register),
        (Request::CancelTurn(_), InTurn) => Action::CancelTurn,
        (Request::CancelSession(_), NoSession) => Action::End,
        (Request::CancelSession(_), Idle | InTurn) => Action::CancelThenEnd,
        (Request::Ping(_), _) => Action::Pong,
        (Request::Feedback(feedback), Idle | InTurn) => Action::StoreFeedback(feedback),
        (Request::PermissionDecision(_) | Request::CancelTurn(_), NoSession | Idle)
        | (Request::Feedback(_), NoSession)
        // Requests about cameras and robots, which this service does not have.
        | (Request::WebrtcAnswer(_) | Request::IceCandidate(_) | Request::CameraRequest(_), _) => Action::Ignore,
    }
}

/// Decides what happens when the client has closed its side of the stream.
pub(super) fn on_half_close(state: State) -> Action {
    match state {
        State::NoSession | State::Idle => Action::End,
        State::InTurn => Action::FinishThenEnd,
    }
}
