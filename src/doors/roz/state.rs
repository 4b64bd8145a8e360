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
pub(super) enum Said {
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
    Nothing,
    /// It has closed its side.
    HalfClose,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    BeginTurn,
    TakeResult,
    Decide,
    Register,
    CancelTurn,
    /// Cancel what is going, then end.
    Leave,
    /// Let the turn finish without the client's tools, then end.
    Finish,
    /// End at once.
    End,
    Pong,
    KeepFeedback,
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
pub(super) fn step(state: State, said: Said) -> Step {
    use State::{Idle, InTurn, NoSession};
    match (said, state) {
        (Said::Start, NoSession) => Step::Start,
        (Said::Start, Idle | InTurn) => Step::Refuse(Refusal::AlreadyStarted),
        (Said::UserMessage | Said::ToolResult | Said::RegisterTools, NoSession) => {
            Step::Refuse(Refusal::NoSession)
        }
        (Said::UserMessage, Idle) => Step::BeginTurn,
        (Said::UserMessage, InTurn) => Step::Refuse(Refusal::TurnInProgress),
        (Said::ToolResult, Idle) => Step::Refuse(Refusal::NoActiveTurn),
        (Said::ToolResult, InTurn) => Step::TakeResult,
        (Said::PermissionDecision, InTurn) => Step::Decide,
        (Said::RegisterTools, Idle | InTurn) => Step::Register,
        (Said::CancelTurn, InTurn) => Step::CancelTurn,
        (Said::CancelSession, NoSession) => Step::End,
        (Said::CancelSession, Idle | InTurn) => Step::Leave,
        (Said::Ping, _) => Step::Pong,
        (Said::Feedback, Idle | InTurn) => Step::KeepFeedback,
        (Said::HalfClose, NoSession | Idle) => Step::End,
        (Said::HalfClose, InTurn) => Step::Finish,
        (Said::PermissionDecision | Said::CancelTurn, NoSession | Idle)
        | (Said::Feedback, NoSession)
        | (Said::Nothing, _) => Step::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal::*, *};

    #[test]
    fn every_cell_of_the_table() {
        let no = |why| Step::Refuse(why);
        let table = [
            (Said::Start, [Step::Start, no(AlreadyStarted), no(AlreadyStarted)]),
            (Said::UserMessage, [no(NoSession), Step::BeginTurn, no(TurnInProgress)]),
            (Said::ToolResult, [no(NoSession), no(NoActiveTurn), Step::TakeResult]),
            (Said::PermissionDecision, [Step::Ignore, Step::Ignore, Step::Decide]),
            (Said::RegisterTools, [no(NoSession), Step::Register, Step::Register]),
            (Said::CancelTurn, [Step::Ignore, Step::Ignore, Step::CancelTurn]),
            (Said::CancelSession, [Step::End, Step::Leave, Step::Leave]),
            (Said::Ping, [Step::Pong, Step::Pong, Step::Pong]),
            (Said::Feedback, [Step::Ignore, Step::KeepFeedback, Step::KeepFeedback]),
            (Said::Nothing, [Step::Ignore, Step::Ignore, Step::Ignore]),
            (Said::HalfClose, [Step::End, Step::End, Step::Finish]),
        ];
        for (said, row) in table {
            for (state, expected) in [State::NoSession, State::Idle, State::InTurn].into_iter().zip(row) {
                assert_eq!(step(state, said), expected, "{said:?} in {state:?}");
            }
        }
    }

    #[test]
    fn codes_are_the_published_ones() {
        let codes = [NoSession, AlreadyStarted, TurnInProgress, NoActiveTurn].map(Refusal::code);
        assert_eq!(codes, ["no_session", "already_started", "turn_in_progress", "no_active_turn"]);
    }
}
