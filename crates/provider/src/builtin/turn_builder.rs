//! Builds a [`Turn`] from the text that a model writes piece by piece.

use std::time::{Duration, Instant};

use kontekst_core::{CallId, ToolCall};

use crate::{
    Delta, FinishReason, Turn, Usage,
    chat::{ARGUMENTS_LIMIT, Answer, AnswerParser, CALL_LIMIT},
};

/// Text that comes faster than this is sent in larger pieces, because waking threads for each token costs more than the
/// token. Text that comes alone is never held back.
const MIN_INTERVAL: Duration = Duration::from_millis(2);

/// An answer that is still being written.
pub(super) struct TurnBuilder {
    answer: Answer,
    last_sent: Option<Instant>,
}

impl TurnBuilder {
    /// `begins_thought` says that the prompt ends within a thought.
    pub(super) fn new(parser: AnswerParser, begins_thought: bool) -> Self {
        Self { answer: Answer::new(parser, begins_thought), last_sent: None }
    }

    /// Appends a piece and sends what is certain. Returns false if the answer makes more calls than an answer may.
    pub(super) fn push(&mut self, piece: &str, sink: &mut dyn FnMut(Delta)) -> bool {
        self.answer.push(piece, sink);
        if self.last_sent.is_none_or(|last| last.elapsed() >= MIN_INTERVAL) && self.answer.flush(sink) {
            self.last_sent = Some(Instant::now());
        }
        self.answer.call_count() <= CALL_LIMIT
    }

    /// Ends the answer, sends what was held back and turned out to be text, and returns the whole turn.
    pub(super) fn finish(self, finish: FinishReason, usage: Usage, sink: &mut dyn FnMut(Delta)) -> Turn {
        let (content, reasoning, found) = self.answer.finish(finish, sink);
        let calls = found
            .into_iter()
            .filter(|call| !call.name.is_empty() && call.arguments.len() <= ARGUMENTS_LIMIT)
            .map(|call| ToolCall { id: CallId::local(), name: call.name, arguments: call.arguments })
            .collect();
        Turn { content, reasoning, calls, finish_reason: finish, usage: Some(usage), truncated_tokens: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use kontekst_core::ToolDef;

    use super::*;

    const CALL: &str =
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";

    fn tools() -> Vec<ToolDef> {
        let parameters = json!({"type": "object"});
        vec![ToolDef {
            name: "read_file".to_owned(),
            description: "d".to_owned(),
            parameters,
            ..ToolDef::default()
        }]
    }

    /// Thoughts, text and calls of an answer, and what was said of it on the way.
    #[track_caller]
    fn check(text: &str, thinking: bool, finish: FinishReason, wanted: (&str, &str, usize)) {
        let ends: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
        let single: Vec<&str> = ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
        let halves = ends.iter().map(|&at| vec![&text[..at], &text[at..]]);
        for pieces in halves.chain([single]) {
            let (mut reasoning, mut content) = (String::new(), String::new());
            let mut sink = |delta| match delta {
                Delta::Text(text) => content.push_str(&text),
                Delta::Reasoning(text) => reasoning.push_str(&text),
                Delta::Call(_) | Delta::Progress(_) | Delta::Notice(_) | Delta::WasThought => {}
            };
            let mut answer = TurnBuilder::new(AnswerParser::text(&tools(), true), thinking);
            for piece in &pieces {
                assert!(answer.push(piece, &mut sink));
            }
            let turn = answer.finish(finish, Usage::default(), &mut sink);
            assert_eq!(
                (turn.reasoning.as_str(), turn.content.as_str(), turn.calls.len()),
                wanted,
                "{pieces:?}"
            );
            assert_eq!((reasoning, content), (turn.reasoning, turn.content), "{pieces:?}");
        }
    }

    #[test]
    fn thoughts_text_and_calls_are_separated_however_they_are_cut() {
        let stop = FinishReason::Stop;
        check("Hello.", false, stop, ("", "Hello.", 0));
        check("<think>\na < b\n</think>\n\nSo: <b>.", false, stop, ("a < b", "So: <b>.", 0));
        check("hm </thin\n</think>\n\nyes", true, stop, ("hm </thin", "yes", 0));
        check("<think>\n\n</think>\n\nyes", false, stop, ("", "yes", 0));
        check("a <think> b", false, stop, ("", "a <think> b", 0));
        check("<thin", false, stop, ("", "<thin", 0));
        check(CALL, false, stop, ("", "", 1));
        check(&format!("Let me see.\n{CALL}"), false, stop, ("", "Let me see.\n", 1));
        // LFM2 writes calls as in Python.
        let python = "<|tool_call_start|>[read_file(path=\"a\")]<|tool_call_end|>";
        check(&format!("I look.{python}"), false, stop, ("", "I look.", 1));
        check(&format!("<think>x</think>\n\n{CALL}\n{CALL}\n"), false, stop, ("x", "", 2));
    }

    #[test]
    fn what_was_cut_is_neither_a_call_nor_lost() {
        check("<think>\nnever done ", false, FinishReason::Length, ("never done ", "", 0));
        check(&CALL[..30], false, FinishReason::Length, ("", "", 0));
        check("half a sent", false, FinishReason::Length, ("", "half a sent", 0));
    }

    #[test]
    fn more_calls_than_one_answer_may_make_end_it() {
        let mut answer = TurnBuilder::new(AnswerParser::text(&tools(), true), false);
        let counted = (0..1000).take_while(|_| answer.push(CALL, &mut |_| {})).count();
        assert_eq!(counted, CALL_LIMIT);
    }
}
