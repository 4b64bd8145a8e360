//! The part of a conversation that belongs to one run, for going on with it.

use std::collections::HashSet;

use kontekst_core::{CallId, Message, Role, RunId, SessionId, ToolCall};

use super::{
    SessionError, Sessions, history_repair::repair_history, images::SessionImages, record::SessionLine,
};

/// The messages of a run that others may have been added to since.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPart {
    /// The messages, with the prompt first. Every call has its result, but those of the last answer.
    pub messages: Vec<Message>,
    /// The calls of the last answer that have no result.
    pub open_calls: Vec<ToolCall>,
    /// Those of them that were about to run, so that they may have run.
    pub started: HashSet<CallId>,
    /// The number of messages of the session up to the last one of the run.
    pub end: u64,
    /// Messages of other runs follow.
    pub has_later: bool,
}

impl Sessions {
    /// Reads the messages of these runs, which went on with each other, and their images. It takes no lock, and reads the whole file.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`], or an error of the disk. Lines that cannot be parsed are skipped.
    pub fn run_part(&self, id: &SessionId, runs: &[RunId]) -> Result<RunPart, SessionError> {
        let is_own = |run: Option<&RunId>| run.is_some_and(|run| runs.contains(run));
        let mut entries = self.entries(id)?;
        let (mut part, mut started, mut number) = (RunPart::default(), HashSet::new(), 0);
        while let Some(line) = entries.next_line() {
            match line? {
                SessionLine::Message(message) => {
                    number += 1;
                    if !is_own(message.run.as_ref()) {
                        part.has_later |= part.end > 0;
                        continue;
                    }
                    (part.end, part.has_later) = (number, false);
                    part.messages.push(message);
                }
                SessionLine::ToolStarted { call, run } if is_own(run.as_ref()) => {
                    started.insert((part.messages.len(), call));
                }
                SessionLine::Unanswered(_) => number += 1,
                SessionLine::ToolStarted { .. }
                | SessionLine::Compacted { .. }
                | SessionLine::Nothing
                | SessionLine::Damaged => {}
            }
        }
        part.close(&started);
        SessionImages { dir: &self.dir, id }.load(&mut part.messages);
        Ok(part)
    }
}

impl RunPart {
    /// Finds the open calls of the last answer, and completes what is before it. `started` are the calls that were about to
    /// run, each with the number of messages before its mark.
    fn close(&mut self, started: &HashSet<(usize, CallId)>) {
        let Some(answer) = self.messages.iter().rposition(|message| message.role == Role::Assistant) else {
            return;
        };
        let last = self.messages.split_off(answer);
        let all_started: HashSet<CallId> = started.iter().map(|(_, call)| call.clone()).collect();
        self.messages = repair_history(std::mem::take(&mut self.messages), &all_started);
        let has_result = |call: &&ToolCall| {
            last.iter()
                .filter_map(|message| message.tool_result.as_ref())
                .any(|result| result.call_id == call.id)
        };
        self.open_calls = last[0].tool_calls.iter().filter(|call| !has_result(call)).cloned().collect();
        let since = started.iter().filter(|(messages, _)| *messages > answer).map(|(_, call)| call.clone());
        self.started = since.filter(|call| self.open_calls.iter().any(|open| open.id == *call)).collect();
        self.messages.extend(last);
    }
}
