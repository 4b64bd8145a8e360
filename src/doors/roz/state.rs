//! What may be said when. Pure.
//!
//! Source: the published service's table of states and messages; nothing that is refused ends a stream.

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    NoSession,
    Idle,
    InTurn,
}

/// What a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Start,
    UserMessage,
    ToolResult,
    PermissionDecision,
    RegisterTools,
    CancelTurn,
    CancelSession,
    Ping,
    Feedback,
    /// Nothing, or something that means nothing here.
    Unknown,
    /// It has closed its side.
    HalfClose,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Start,
    BeginTurn,
    DeliverResult,
    Decide,
    Register,
    CancelTurn,
    /// Cancel what is going, then end.
    CancelThenEnd,
    /// Let the turn finish without the client's tools, then end.
    FinishThenEnd,
    /// End at once.
    End,
    Pong,
    StoreFeedback,
    Ignore,
    Refuse(Refusal),
}

/// Why not.
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

/// The table.
pub(super) fn transition(state: State, said: Input) -> Action {
    use State::{Idle, InTurn, NoSession};
    match (said, state) {
        (Input::Start, NoSession) => Action::Start,
        (Input::Start, Idle | InTurn) => Action::Refuse(Refusal::AlreadyStarted),
        (Input::UserMessage | Input::ToolResult | Input::RegisterTools, NoSession) => {
            Action::Refuse(Refusal::NoSession)
        }
        (Input::UserMessage, Idle) => Action::BeginTurn,
        (Input::UserMessage, InTurn) => Action::Refuse(Refusal::TurnInProgress),
        (Input::ToolResult, Idle) => Action::Refuse(Refusal::NoActiveTurn),
        (Input::ToolResult, InTurn) => Action::DeliverResult,
        (Input::PermissionDecision, InTurn) => Action::Decide,
        (Input::RegisterTools, Idle | InTurn) => Action::Register,
        (Input::CancelTurn, InTurn) => Action::CancelTurn,
        (Input::CancelSession, NoSession) => Action::End,
        (Input::CancelSession, Idle | InTurn) => Action::CancelThenEnd,
        (Input::Ping, _) => Action::Pong,
        (Input::Feedback, Idle | InTurn) => Action::StoreFeedback,
        (Input::HalfClose, NoSession | Idle) => Action::End,
        (Input::HalfClose, InTurn) => Action::FinishThenEnd,
        (Input::PermissionDecision | Input::CancelTurn, NoSession | Idle)
        | (Input::Feedback, NoSession)
        | (Input::Unknown, _) => Action::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal::*, *};

    #[test]
    fn every_cell_of_the_table() {
        let no = |why| Action::Refuse(why);
        let table = [
            (Input::Start, [Action::Start, no(AlreadyStarted), no(AlreadyStarted)]),
            (Input::UserMessage, [no(NoSession), Action::BeginTurn, no(TurnInProgress)]),
            (Input::ToolResult, [no(NoSession), no(NoActiveTurn), Action::DeliverResult]),
            (Input::PermissionDecision, [Action::Ignore, Action::Ignore, Action::Decide]),
            (Input::RegisterTools, [no(NoSession), Action::Register, Action::Register]),
            (Input::CancelTurn, [Action::Ignore, Action::Ignore, Action::CancelTurn]),
            (Input::CancelSession, [Action::End, Action::CancelThenEnd, Action::CancelThenEnd]),
            (Input::Ping, [Action::Pong, Action::Pong, Action::Pong]),
            (Input::Feedback, [Action::Ignore, Action::StoreFeedback, Action::StoreFeedback]),
            (Input::Unknown, [Action::Ignore, Action::Ignore, Action::Ignore]),
            (Input::HalfClose, [Action::End, Action::End, Action::FinishThenEnd]),
        ];
        for (said, row) in table {
            for (state, expected) in [State::NoSession, State::Idle, State::InTurn].into_iter().zip(row) {
                assert_eq!(transition(state, said), expected, "{said:?} in {state:?}");
            }
        }
    }

    #[test]
    fn codes_are_the_published_ones() {
        let codes = [NoSession, AlreadyStarted, TurnInProgress, NoActiveTurn].map(Refusal::code);
        assert_eq!(codes, ["no_session", "already_started", "turn_in_progress", "no_active_turn"]);
    }
}
