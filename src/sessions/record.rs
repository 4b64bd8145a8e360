//! One line of a session file.

use serde::{Deserialize, Serialize};

use super::SessionError;
use crate::core::{CallId, Message, RunId, clock};

/// What can be appended to a session.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    Message(&'a Message),
    /// Intent before effect: a call is about to run. A reader that finds this without a result knows
    /// that the call may have run.
    ToolStarted {
        call: &'a CallId,
        run: &'a RunId,
    },
    /// Everything before this is also said by `summary`, `tokens` long: a run that continues the session
    /// starts here. The original stays where it is.
    Compacted {
        summary: &'a str,
        tokens: u32,
        run: &'a RunId,
    },
}

/// Longest line in bytes that is read or written. Longer ones are damage: no tool gives as much.
pub(super) const MAX_LINE: usize = 64 << 20;

/// What a line turned out to be.
pub(super) enum SessionLine {
    Message(Message),
    ToolStarted(CallId),
    Compacted {
        summary: String,
        tokens: u32,
    },
    /// Blank, or a mark that a later version writes.
    Nothing,
    Damaged,
}

#[derive(Serialize)]
struct ToolStartedMark<'a> {
    mark: &'static str,
    call_id: &'a CallId,
    run: &'a RunId,
    at: u64,
}

#[derive(Serialize)]
struct CompactedMark<'a> {
    mark: &'static str,
    summary: &'a str,
    tokens: u32,
    run: &'a RunId,
    at: u64,
}

#[derive(Deserialize)]
struct AnyMark {
    mark: String,
    call_id: Option<CallId>,
    summary: Option<String>,
    #[serde(default)]
    tokens: u32,
}

const TOOL_STARTED: &str = "tool_started";
const COMPACTED: &str = "compacted";

impl Record<'_> {
    /// Appends the record's line, newline included.
    pub(super) fn write(self, line: &mut Vec<u8>) -> Result<(), SessionError> {
        if let Self::Message(message) = self {
            // JSON is never shorter than the text in it, so this costs no memory to know.
            let result = message.tool_result.as_ref().map_or(0, |result| result.output.len());
            let calls: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
            let bytes = message.content.len() + result + calls;
            if bytes > MAX_LINE {
                return Err(SessionError::TooLong { bytes });
            }
        }
        let start = line.len();
        let written = match self {
            Self::Message(message) => serde_json::to_writer(&mut *line, message),
            Self::ToolStarted { call, run } => {
                let mark =
                    ToolStartedMark { mark: TOOL_STARTED, call_id: call, run, at: clock::unix_millis() };
                serde_json::to_writer(&mut *line, &mark)
            }
            Self::Compacted { summary, tokens, run } => {
                let mark = CompactedMark { mark: COMPACTED, summary, tokens, run, at: clock::unix_millis() };
                serde_json::to_writer(&mut *line, &mark)
            }
        };
        written.expect("strings and numbers into a Vec cannot fail");
        let bytes = line.len() - start;
        if bytes > MAX_LINE {
            return Err(SessionError::TooLong { bytes });
        }
        line.push(b'\n');
        Ok(())
    }
}

impl SessionLine {
    /// Reads one line without its newline.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return Self::Nothing;
        }
        if bytes.len() > MAX_LINE {
            return Self::Damaged;
        }
        if let Ok(message) = serde_json::from_slice(bytes) {
            return Self::Message(message);
        }
        let Ok(AnyMark { mark, call_id, summary, tokens }) = serde_json::from_slice(bytes) else {
            return Self::Damaged;
        };
        match (mark.as_str(), call_id, summary) {
            (TOOL_STARTED, Some(call), _) => Self::ToolStarted(call),
            (COMPACTED, _, Some(summary)) => Self::Compacted { summary, tokens },
            (TOOL_STARTED | COMPACTED, ..) => Self::Damaged,
            _ => Self::Nothing,
        }
    }
}
