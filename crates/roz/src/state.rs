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

#[cfg(test)]
mod tests {
    use super::{Refusal::*, State::*, *};

    #[test]
    fn every_cell_of_the_table() {
        let no = |why| Action::Refuse(why);
        let start = StartSession::default;
        let message = || UserMessage { content: "go".to_owned(), ..UserMessage::default() };
        let result = || ToolResult { tool_call_id: "c".to_owned(), ..ToolResult::default() };
        let decision =
            || PermissionDecision { tool_call_id: "c".to_owned(), ..PermissionDecision::default() };
        let register = || RegisterTools { source: Some("s".to_owned()), ..RegisterTools::default() };
        let feedback = || MessageFeedback { message_id: "m".to_owned(), ..MessageFeedback::default() };
        let ignored = || [Action::Ignore, Action::Ignore, Action::Ignore];
        let table = [
            (Some(Request::Start(start())), [Action::Start(start()), no(AlreadyStarted), no(AlreadyStarted)]),
            (
                Some(Request::UserMessage(message())),
                [no(Refusal::NoSession), Action::BeginTurn(message()), no(TurnInProgress)],
            ),
            (
                Some(Request::ToolResult(result())),
                [no(Refusal::NoSession), no(NoActiveTurn), Action::DeliverResult(result())],
            ),
            (
                Some(Request::PermissionDecision(decision())),
                [Action::Ignore, Action::Ignore, Action::Decide(decision())],
            ),
            (
                Some(Request::RegisterTools(register())),
                [no(Refusal::NoSession), Action::Register(register()), Action::Register(register())],
            ),
            (
                Some(Request::CancelTurn(Default::default())),
                [Action::Ignore, Action::Ignore, Action::CancelTurn],
            ),
            (
                Some(Request::CancelSession(Default::default())),
                [Action::End, Action::CancelThenEnd, Action::CancelThenEnd],
            ),
            (Some(Request::Ping(Default::default())), [Action::Pong, Action::Pong, Action::Pong]),
            (
                Some(Request::Feedback(feedback())),
                [Action::Ignore, Action::StoreFeedback(feedback()), Action::StoreFeedback(feedback())],
            ),
            (None, ignored()),
            (Some(Request::WebrtcAnswer(Default::default())), ignored()),
            (Some(Request::IceCandidate(Default::default())), ignored()),
            (Some(Request::CameraRequest(Default::default())), ignored()),
        ];
        for (request, row) in table {
            for (state, expected) in [State::NoSession, Idle, InTurn].into_iter().zip(row) {
                assert_eq!(on_request(state, request.clone()), expected, "{request:?} in {state:?}");
            }
        }
        let half_close = [State::NoSession, Idle, InTurn].map(on_half_close);
        assert_eq!(half_close, [Action::End, Action::End, Action::FinishThenEnd]);
    }

    #[test]
    fn codes_are_the_published_ones() {
        let codes = [Refusal::NoSession, AlreadyStarted, TurnInProgress, NoActiveTurn].map(Refusal::code);
        assert_eq!(codes, ["no_session", "already_started", "turn_in_progress", "no_active_turn"]);
    }
}
