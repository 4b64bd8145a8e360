//! Builds a [`Turn`] from the text that a model writes piece by piece: separates thoughts, text and tool calls.

use std::time::{Duration, Instant};

use crate::{
    core::{CallId, ToolCall},
    provider::{
        Delta, FinishReason, Turn, Usage,
        chat::{ARGUMENTS_LIMIT, AnswerParser, CALL_LIMIT},
    },
};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Text that comes faster than this is sent in larger pieces, because waking threads for each token costs more than the
/// token. Text that comes alone is never held back.
const MIN_INTERVAL: Duration = Duration::from_millis(2);

/// An answer that is still being written.
pub(super) struct TurnBuilder {
    state: State,
    /// Text that may be the beginning of a tag.
    held: String,
    parser: AnswerParser,
    content: Channel,
    reasoning: Channel,
    last_sent: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space has come.
    Start,
    Thought,
    /// After a thought, whose white space is dropped.
    AfterThought,
    Content,
}

/// Text, and how much of it was sent.
#[derive(Default)]
struct Channel {
    text: String,
    sent_bytes: usize,
}

impl TurnBuilder {
    /// `begins_thought` says that the prompt ends within a thought.
    pub(super) fn new(parser: AnswerParser, begins_thought: bool) -> Self {
        Self {
            state: if begins_thought { State::Thought } else { State::Start },
            held: String::new(),
            parser,
            content: Channel::default(),
            reasoning: Channel::default(),
            last_sent: None,
        }
    }

    /// Appends a piece and sends what is certain. Returns false if the answer makes more calls than an answer may.
    pub(super) fn push(&mut self, piece: &str, sink: &mut dyn FnMut(Delta)) -> bool {
        self.held.push_str(piece);
        let shown = (self.reasoning.text.len(), self.content.text.len());
        while self.step() {}
        if self.state == State::Content && shown == (self.reasoning.text.len(), self.content.text.len()) {
            // The text before the call is shown before the report on it.
            self.flush(sink);
            sink(Delta::Call(piece.to_owned()));
        }
        if self.last_sent.is_none_or(|last| last.elapsed() >= MIN_INTERVAL) {
            self.flush(sink);
        }
        self.parser.call_count() <= CALL_LIMIT
    }

    /// Processes what is held in the current state. Returns false if more text is needed.
    fn step(&mut self) -> bool {
        match self.state {
            State::Start => {
                let begun = self.held.trim_start();
                if let Some(thought) = begun.strip_prefix(OPEN) {
                    self.held = thought.to_owned();
                    self.state = State::Thought;
                    return true;
                }
                if OPEN.starts_with(begun) {
                    return false;
                }
                self.state = State::Content;
                true
            }
            State::Thought => {
                let end = self.held.find(CLOSE);
                let known = end.unwrap_or_else(|| self.held.len() - undecided_bytes(&self.held));
                let text = &self.held[..known];
                // White space around a thought is not part of it.
                let text = if self.reasoning.text.is_empty() { text.trim_start() } else { text };
                let text = if end.is_some() { text.trim_end() } else { text };
                self.reasoning.text.push_str(text);
                match end {
                    Some(end) => {
                        self.held.drain(..end + CLOSE.len());
                        self.state = State::AfterThought;
                        true
                    }
                    None => {
                        self.held.drain(..known);
                        false
                    }
                }
            }
            State::AfterThought => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    self.state = State::Content;
                }
                !self.held.is_empty()
            }
            State::Content => {
                let held = std::mem::take(&mut self.held);
                self.parser.push(&held, &mut self.content.text);
                false
            }
        }
    }

    fn flush(&mut self, sink: &mut dyn FnMut(Delta)) {
        let sent = (self.reasoning.sent_bytes, self.content.sent_bytes);
        self.reasoning.flush(Delta::Reasoning, sink);
        self.content.flush(Delta::Text, sink);
        if sent != (self.reasoning.sent_bytes, self.content.sent_bytes) {
            self.last_sent = Some(Instant::now());
        }
    }

    /// Ends the answer, sends what was held back and turned out to be text, and returns the whole turn.
    pub(super) fn finish(mut self, finish: FinishReason, usage: Usage, sink: &mut dyn FnMut(Delta)) -> Turn {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thought => self.reasoning.text.push_str(&held),
            State::Start | State::AfterThought | State::Content => {
                self.parser.push(&held, &mut self.content.text);
            }
        }
        let mut parser = std::mem::replace(&mut self.parser, AnswerParser::without_calls());
        parser.thought_before(&self.reasoning.text);
        let found = parser.finish(finish, &mut self.content.text);
        self.flush(sink);
        let calls = found
            .into_iter()
            .filter(|call| !call.name.is_empty() && call.arguments.len() <= ARGUMENTS_LIMIT)
            .map(|call| ToolCall { id: CallId::local(), name: call.name, arguments: call.arguments })
            .collect();
        let (content, reasoning) = (self.content.text, self.reasoning.text);
        Turn { content, reasoning, calls, finish_reason: finish, usage: Some(usage), truncated_tokens: None }
    }
}

impl Channel {
    fn flush(&mut self, delta: fn(String) -> Delta, sink: &mut dyn FnMut(Delta)) {
        if self.sent_bytes < self.text.len() {
            sink(delta(self.text[self.sent_bytes..].to_owned()));
            self.sent_bytes = self.text.len();
        }
    }
}

/// Counts the bytes at the end of `text` that may be the beginning of the tag that closes a thought, or white space
/// before it.
fn undecided_bytes(text: &str) -> usize {
    let tag = (1..CLOSE.len()).rev().find(|&length| text.ends_with(&CLOSE[..length])).unwrap_or(0);
    let rest = &text[..text.len() - tag];
    tag + rest.len() - rest.trim_end().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::ToolDef;

    const CALL: &str =
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";

    fn tools() -> Vec<ToolDef> {
        let parameters = json!({"type": "object"});
        vec![ToolDef {
            create_only: false,
            name: "read_file".to_owned(),
            description: "d".to_owned(),
            parameters,
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
                Delta::Call(_) | Delta::Progress(_) => {}
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
