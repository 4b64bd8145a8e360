//! Puts the pieces that a model writes together into one [`Turn`]: thoughts, text and calls.

use std::time::{Duration, Instant};

use super::call::TAG;
use crate::{
    core::{CallId, ToolCall, ToolDef},
    provider::{
        Delta, FinishReason, Turn, Usage,
        chat::{ARGUMENTS_LIMIT, CALL_LIMIT, prompted::ToolCallParser},
    },
};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Text that comes more often than this leaves in larger pieces: what a token costs on its way is mostly the
/// waking of threads, and no eye follows it. One that comes alone is never held back.
const PACE: Duration = Duration::from_millis(2);

/// An answer that is still growing.
pub struct Answer {
    state: State,
    /// What may yet become a tag.
    held: String,
    sieve: ToolCallParser,
    content: Part,
    reasoning: Part,
    left: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is a call if it begins as one.
    Undecided,
    /// Nothing but white space has come.
    Start,
    Thought,
    /// White space behind a thought belongs to it.
    Behind,
    Said,
}

/// Text and how much of it has left.
#[derive(Default)]
struct Part {
    text: String,
    sent: usize,
}

impl Answer {
    /// `thinking` says that the prompt has begun a thought; `tools` may be called.
    pub fn new(tools: &[ToolDef], thinking: bool) -> Self {
        Self {
            state: if thinking { State::Thought } else { State::Start },
            held: String::new(),
            sieve: ToolCallParser::new(tools, true),
            content: Part::default(),
            reasoning: Part::default(),
            left: None,
        }
    }

    /// Of a model that answers with a call or with text: what does not begin as a call has none.
    pub fn by_heart(tools: &[ToolDef]) -> Self {
        Self { state: State::Undecided, ..Self::new(tools, false) }
    }

    /// Takes a piece and hands on what is certain. `false` when the answer makes more calls than one may.
    pub fn push(&mut self, piece: &str, sink: &mut dyn FnMut(Delta)) -> bool {
        self.held.push_str(piece);
        while self.step() {}
        if self.left.is_none_or(|left| left.elapsed() >= PACE) {
            self.flush(sink);
        }
        self.sieve.call_count() <= CALL_LIMIT
    }

    /// Goes on as far as one state leads. `false` when more has to come.
    fn step(&mut self) -> bool {
        match self.state {
            State::Undecided => {
                if TAG.starts_with(&self.held) {
                    return false;
                }
                if !self.held.starts_with(TAG) {
                    self.sieve = ToolCallParser::new(&[], true);
                }
                self.state = State::Said;
                true
            }
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
                self.state = State::Said;
                true
            }
            State::Thought => {
                let end = self.held.find(CLOSE);
                let known = end.unwrap_or_else(|| self.held.len() - half(&self.held));
                let text = &self.held[..known];
                // The lines around a thought are not part of it.
                let text = if self.reasoning.text.is_empty() { text.trim_start() } else { text };
                let text = if end.is_some() { text.trim_end() } else { text };
                self.reasoning.text.push_str(text);
                match end {
                    Some(end) => {
                        self.held.drain(..end + CLOSE.len());
                        self.state = State::Behind;
                        true
                    }
                    None => {
                        self.held.drain(..known);
                        false
                    }
                }
            }
            State::Behind => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    self.state = State::Said;
                }
                !self.held.is_empty()
            }
            State::Said => {
                let held = std::mem::take(&mut self.held);
                self.sieve.push(&held, &mut self.content.text);
                false
            }
        }
    }

    fn flush(&mut self, sink: &mut dyn FnMut(Delta)) {
        let sent = (self.reasoning.sent, self.content.sent);
        self.reasoning.flush(Delta::Reasoning, sink);
        self.content.flush(Delta::Text, sink);
        if sent != (self.reasoning.sent, self.content.sent) {
            self.left = Some(Instant::now());
        }
    }

    /// The whole answer. Hands on what was held back and turned out to be text.
    pub fn into_turn(mut self, finish: FinishReason, usage: Usage, sink: &mut dyn FnMut(Delta)) -> Turn {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thought => self.reasoning.text.push_str(&held),
            State::Undecided | State::Start | State::Behind | State::Said => {
                self.sieve.push(&held, &mut self.content.text);
            }
        }
        let sieve = std::mem::replace(&mut self.sieve, ToolCallParser::new(&[], true));
        let found = sieve.finish(finish, &mut self.content.text);
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

impl Part {
    fn flush(&mut self, delta: fn(String) -> Delta, sink: &mut dyn FnMut(Delta)) {
        if self.sent < self.text.len() {
            sink(delta(self.text[self.sent..].to_owned()));
            self.sent = self.text.len();
        }
    }
}

/// Bytes at the end of `text` that may be the beginning of the end of a thought, or white space before it.
fn half(text: &str) -> usize {
    let tag = (1..CLOSE.len()).rev().find(|&length| text.ends_with(&CLOSE[..length])).unwrap_or(0);
    let rest = &text[..text.len() - tag];
    tag + rest.len() - rest.trim_end().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CALL: &str =
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";

    fn tools() -> Vec<ToolDef> {
        let parameters = json!({"type": "object"});
        vec![ToolDef { name: "read_file".to_owned(), description: "d".to_owned(), parameters }]
    }

    /// Thoughts, text and calls of an answer, and what was said of it on the way.
    #[track_caller]
    fn check(text: &str, thinking: bool, finish: FinishReason, wanted: (&str, &str, usize)) {
        check_all(text, || Answer::new(&tools(), thinking), finish, wanted);
    }

    #[track_caller]
    fn check_all(text: &str, new: impl Fn() -> Answer, finish: FinishReason, wanted: (&str, &str, usize)) {
        let ends: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
        let single: Vec<&str> = ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
        let halves = ends.iter().map(|&at| vec![&text[..at], &text[at..]]);
        for pieces in halves.chain([single]) {
            let (mut reasoning, mut content) = (String::new(), String::new());
            let mut sink = |delta| match delta {
                Delta::Text(text) => content.push_str(&text),
                Delta::Reasoning(text) => reasoning.push_str(&text),
                Delta::Progress(_) => {}
            };
            let mut answer = new();
            for piece in &pieces {
                assert!(answer.push(piece, &mut sink));
            }
            let turn = answer.into_turn(finish, Usage::default(), &mut sink);
            assert_eq!(
                (turn.reasoning.as_str(), turn.content.as_str(), turn.calls.len()),
                wanted,
                "{pieces:?}"
            );
            assert_eq!((reasoning, content), (turn.reasoning, turn.content), "{pieces:?}");
        }
    }

    #[test]
    fn thoughts_text_and_calls_are_told_apart_however_they_are_cut() {
        let stop = FinishReason::Stop;
        check("Hello.", false, stop, ("", "Hello.", 0));
        check("<think>\na < b\n</think>\n\nSo: <b>.", false, stop, ("a < b", "So: <b>.", 0));
        check("hm </thin\n</think>\n\nyes", true, stop, ("hm </thin", "yes", 0));
        check("<think>\n\n</think>\n\nyes", false, stop, ("", "yes", 0));
        check("a <think> b", false, stop, ("", "a <think> b", 0));
        check("<thin", false, stop, ("", "<thin", 0));
        check(CALL, false, stop, ("", "", 1));
        check(&format!("Let me see.\n{CALL}"), false, stop, ("", "Let me see.\n", 1));
        check(&format!("<think>x</think>\n\n{CALL}\n{CALL}\n"), false, stop, ("x", "", 2));
    }

    #[test]
    fn what_was_cut_is_neither_a_call_nor_lost() {
        check("<think>\nnever done ", false, FinishReason::Length, ("never done ", "", 0));
        check(&CALL[..30], false, FinishReason::Length, ("", "", 0));
        check("half a sent", false, FinishReason::Length, ("", "half a sent", 0));
    }

    #[test]
    fn who_calls_by_heart_calls_at_once_or_not_at_all() {
        let check = |text: &str, wanted| {
            check_all(text, || Answer::by_heart(&tools()), FinishReason::Stop, wanted);
        };
        check(CALL, ("", "", 1));
        check("<tool", ("", "<tool", 0));
        check("<toolbox> is", ("", "<toolbox> is", 0));
        let repeated = format!("a.txt says:\n\n{CALL}");
        check(&repeated, ("", &repeated, 0));
    }

    #[test]
    fn more_calls_than_one_answer_may_make_end_it() {
        let mut answer = Answer::new(&tools(), false);
        let counted = (0..1000).take_while(|_| answer.push(CALL, &mut |_| {})).count();
        assert_eq!(counted, CALL_LIMIT);
    }
}
