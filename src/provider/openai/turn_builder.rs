//! Assembles the chunks of a stream into one [`Turn`], and enforces the limits on its size.

use std::{borrow::Cow, collections::HashSet};

use super::{error_response, wire};
use crate::{
    core::{CallId, ToolCall},
    provider::{
        Delta, FinishReason, Progress, ProviderError, Turn, Usage,
        chat::{ARGUMENTS_LIMIT, AnswerParser, CALL_LIMIT, ParsedCall},
    },
};

/// The longest id of a call in bytes. A longer one is replaced.
const ID_LIMIT: usize = 256;

/// An answer that is still arriving.
pub(super) struct TurnBuilder {
    content: TextBuffer,
    /// Finds calls in the content and removes them from it.
    parser: AnswerParser,
    /// The number of content bytes that have arrived, including calls.
    received: usize,
    reasoning: TextBuffer,
    calls: Vec<PartialCall>,
    /// The ids of the calls that the conversation has already.
    known_ids: HashSet<String>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    timings: Option<wire::Timings>,
    /// The number of prompt tokens that the server has processed.
    processed: u32,
    started: bool,
}

/// The amount of an answer that has arrived. It changes with everything that counts as progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct BuilderState {
    /// Part of the answer has arrived.
    pub started: bool,
    /// The finish reason has arrived. Only token counts may follow.
    pub finished: bool,
    bytes: usize,
    processed: u32,
}

/// Text, and how much of it has been passed to the sink.
#[derive(Default)]
struct TextBuffer {
    text: String,
    sent: usize,
}

#[derive(Default)]
struct PartialCall {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
}

impl TurnBuilder {
    /// A call whose id is one of `known_ids` gets another one, so that ids are unique in a conversation.
    pub(super) fn new(parser: AnswerParser, known_ids: HashSet<String>) -> Self {
        Self {
            content: TextBuffer::default(),
            parser,
            received: 0,
            reasoning: TextBuffer::default(),
            calls: Vec::new(),
            known_ids,
            finish: None,
            usage: None,
            timings: None,
            processed: 0,
            started: false,
        }
    }

    /// Adds one event. Its text is passed on by [`TurnBuilder::flush`], so that everything that arrived in one read
    /// becomes one delta.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Protocol`] if the event is malformed or over a limit, or the error that the event reports.
    pub(super) fn push_event(
        &mut self,
        event: &[u8],
        sink: &mut dyn FnMut(Delta),
    ) -> Result<(), ProviderError> {
        let chunk: wire::Chunk<'_> = serde_json::from_slice(event).map_err(|error| {
            ProviderError::Protocol(format!("an event is not the JSON it should be: {error}"))
        })?;
        if let Some(error) = chunk.error {
            return Err(error_response::from_stream(error.get()));
        }
        if let Some(progress) = chunk.prompt_progress {
            self.processed = self.processed.max(progress.processed.or_zero());
            sink(Delta::Progress(Progress::Prefill {
                processed: progress.processed.or_zero(),
                total: progress.total.or_zero(),
                cached: progress.cache.or_zero(),
            }));
        }
        for choice in chunk.choices.unwrap_or_default() {
            // Only one answer was requested. A second one would be mixed into the first.
            if choice.index.or_zero() == 0 {
                self.push_choice(choice, sink)?;
            }
        }
        self.usage = chunk.usage.and_then(usage_from_counts).or(self.usage);
        self.timings = chunk.timings.or(self.timings);
        Ok(())
    }

    fn push_choice(
        &mut self,
        choice: wire::Choice<'_>,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<(), ProviderError> {
        if let Some(delta) = choice.delta {
            if let Some(wire::Text(text)) = delta.reasoning_content.or(delta.reasoning)
                && !text.is_empty()
            {
                self.content.flush(Delta::Text, sink);
                self.reasoning.text.push_str(&text);
                self.started = true;
            }
            if let Some(wire::Text(text)) = delta.content
                && !text.is_empty()
            {
                self.reasoning.flush(Delta::Reasoning, sink);
                self.received += text.len();
                let shown = self.content.text.len();
                self.parser.push(&text, &mut self.content.text);
                if self.content.text.len() == shown {
                    self.flush(sink);
                    sink(Delta::Call(text.into_owned()));
                }
                if self.parser.call_count() > CALL_LIMIT {
                    return Err(too_many_calls());
                }
                self.started = true;
            }
            for call in delta.tool_calls.unwrap_or_default() {
                self.push_call(call, sink)?;
                self.started = true;
            }
        }
        if let Some(wire::Text(reason)) = choice.finish_reason {
            self.finish = Some(match &*reason {
                "length" => FinishReason::Length,
                "error" | "abort" => {
                    return Err(ProviderError::Protocol(format!("the server gave up (`{reason}`)")));
                }
                _ => FinishReason::Stop,
            });
        }
        Ok(())
    }

    fn push_call(
        &mut self,
        delta: wire::CallDelta<'_>,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<(), ProviderError> {
        let id = text(delta.id);
        let (name, arguments) = match delta.function {
            None => (Cow::default(), String::new()),
            Some(function) => {
                let arguments = function.argument_text().map(Cow::into_owned).map_err(|error| {
                    ProviderError::Protocol(format!("the arguments of a call are not text: {error}"))
                })?;
                (text(function.name), arguments)
            }
        };
        let at = match self.find_call(delta.index.0, &id, &name) {
            Some(at) => at,
            None if self.calls.len() == CALL_LIMIT => {
                return Err(too_many_calls());
            }
            None => {
                self.calls.push(PartialCall { index: delta.index.0, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() && id.len() <= ID_LIMIT {
            call.id.push_str(&id);
        }
        if call.name.is_empty() {
            call.name.push_str(&name);
        }
        if call.arguments.len() + arguments.len() > ARGUMENTS_LIMIT {
            return Err(ProviderError::Protocol(format!(
                "the arguments of a tool call are over {ARGUMENTS_LIMIT} bytes"
            )));
        }
        call.arguments.push_str(&arguments);
        // The text before the call is shown before the report on it.
        self.flush(sink);
        sink(Delta::Call(arguments));
        Ok(())
    }

    /// Finds the call that a delta continues. Returns `None` if it begins a new one.
    ///
    /// Servers disagree: llama.cpp counts indices and sends the id once, some repeat the id, Ollama sends whole calls
    /// with the same index, and others leave the index out.
    fn find_call(&self, index: Option<u32>, id: &str, name: &str) -> Option<usize> {
        let same_id = |call: &PartialCall| id.is_empty() || call.id.is_empty() || call.id == id;
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index && same_id(call)),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if !name.is_empty() => None,
            None => self.calls.len().checked_sub(1),
        }
    }

    /// Passes the text that has arrived since the last flush to `sink`.
    pub(super) fn flush(&mut self, sink: &mut dyn FnMut(Delta)) {
        self.reasoning.flush(Delta::Reasoning, sink);
        self.content.flush(Delta::Text, sink);
    }

    pub(super) fn state(&self) -> BuilderState {
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len()).sum();
        BuilderState {
            started: self.started,
            finished: self.finish.is_some(),
            bytes: self.received + self.reasoning.text.len() + arguments + self.calls.len(),
            processed: self.processed,
        }
    }

    pub(super) fn started(&self) -> bool {
        self.started
    }

    pub(super) fn finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Returns the answer as far as it has arrived. Passes to `sink` what looked like a call and turned out to be text.
    pub(super) fn into_turn(mut self, sink: &mut dyn FnMut(Delta)) -> Turn {
        let finish = self.finish.unwrap_or_default();
        self.parser.thought_before(&self.reasoning.text);
        let found = self.parser.finish(finish, &mut self.content.text);
        self.reasoning.flush(Delta::Reasoning, sink);
        self.content.flush(Delta::Text, sink);
        let mut ids = self.known_ids;
        // A server that parses calls may leave them in the text as well. They count once.
        let found = if self.calls.is_empty() { found } else { Vec::new() };
        let found = found.into_iter().map(PartialCall::from);
        let calls = self
            .calls
            .into_iter()
            .chain(found)
            .filter(|call| !call.name.is_empty())
            .map(|call| {
                let id = Some(call.id).filter(|id| !id.is_empty() && ids.insert(id.clone()));
                let id = id.map_or_else(CallId::local, CallId::new);
                ToolCall { id, name: call.name, arguments: call.arguments }
            })
            // The arguments of a call that was cut are not what the model meant.
            .filter(|call| finish != FinishReason::Length || is_json_object(&call.arguments));
        Turn {
            calls: calls.collect(),
            content: self.content.text,
            reasoning: self.reasoning.text,
            finish_reason: finish,
            usage: self.usage.or_else(|| self.timings.and_then(usage_from_timings)),
            truncated_tokens: None,
        }
    }
}

impl From<ParsedCall> for PartialCall {
    fn from(ParsedCall { name, arguments }: ParsedCall) -> Self {
        Self { name, arguments, ..Self::default() }
    }
}

impl TextBuffer {
    fn flush(&mut self, delta: fn(String) -> Delta, sink: &mut dyn FnMut(Delta)) {
        if self.sent < self.text.len() {
            sink(delta(self.text[self.sent..].to_owned()));
            self.sent = self.text.len();
        }
    }
}

fn too_many_calls() -> ProviderError {
    ProviderError::Protocol(format!("more than {CALL_LIMIT} tool calls in one answer"))
}

fn text(text: Option<wire::Text<'_>>) -> Cow<'_, str> {
    text.map(|text| text.0).unwrap_or_default()
}

fn is_json_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok()
}

fn usage_from_counts(usage: wire::Usage) -> Option<Usage> {
    let prompt = usage.prompt_tokens.0?;
    let cached = usage.prompt_tokens_details.unwrap_or_default().cached_tokens.or_zero().min(prompt);
    Some(Usage { prompt, completion: usage.completion_tokens.0?, cached })
}

fn usage_from_timings(timings: wire::Timings) -> Option<Usage> {
    let cached = timings.cache_n.or_zero();
    Some(Usage {
        prompt: cached.saturating_add(timings.prompt_n.0?),
        completion: timings.predicted_n.0?,
        cached,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(events: &[&str]) -> Result<Turn, ProviderError> {
        let mut answer = TurnBuilder::new(AnswerParser::without_calls(), HashSet::new());
        for event in events {
            answer.push_event(event.as_bytes(), &mut |_| {})?;
        }
        Ok(answer.into_turn(&mut |_| {}))
    }

    /// Returns `name(arguments)` of each call.
    fn calls(deltas: &[&str]) -> Vec<String> {
        let events: Vec<_> = deltas
            .iter()
            .map(|delta| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{delta}]}}}}]}}"#))
            .collect();
        let events: Vec<_> = events.iter().map(String::as_str).collect();
        turn(&events).unwrap().calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect()
    }

    #[test]
    fn calls_are_put_together_however_a_server_cuts_them() {
        let llama = [
            r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
        ];
        assert_eq!(calls(&llama), ["f({})", "g({})"]);
        let whole_with_one_index = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ];
        assert_eq!(calls(&whole_with_one_index), ["f({})", "f({})"]);
        let no_index_and_objects = [
            r#"{"function":{"name":"f","arguments":{"x": 1}}}, {"function":{"name":"g","arguments":null}}"#,
            r#"{"function":{"arguments":""}}"#,
        ];
        assert_eq!(calls(&no_index_and_objects), [r#"f({"x": 1})"#, "g()"]);
        let id_repeated = [
            r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"id":"a","function":{"name":"f","arguments":"}"}}"#,
        ];
        assert_eq!(calls(&id_repeated), ["f({})"]);
        assert!(calls(&[r#"{"index":0,"id":"a","function":{"name":"","arguments":"{}"}}"#]).is_empty());
    }

    #[test]
    fn a_call_at_the_end_of_the_reasoning_counts_if_there_is_no_answer() {
        let tool = crate::core::ToolDef {
            create_only: false,
            name: "f".to_owned(),
            description: "d".to_owned(),
            parameters: serde_json::json!({"type": "object"}),
        };
        let count = |reasoning: &str, content: &str| {
            let mut answer =
                TurnBuilder::new(AnswerParser::text(std::slice::from_ref(&tool), false), HashSet::new());
            let delta = serde_json::json!({"reasoning_content": reasoning, "content": content});
            let event = serde_json::json!({"choices": [{"delta": delta}]}).to_string();
            answer.push_event(event.as_bytes(), &mut |_| {}).unwrap();
            answer.into_turn(&mut |_| {}).calls.len()
        };
        let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
        assert_eq!(count(&format!("I call it.\n{call}\n"), "\n"), 1);
        assert_eq!(count(&format!("I call it.\n{call}"), "Done."), 0);
        assert_eq!(count(&format!("I could use {call}"), ""), 0);
        assert_eq!(count(&format!("{call}\nwould do."), ""), 0);
    }

    #[test]
    fn ids_become_unique() {
        let event = r#"{"choices":[{"delta":{"tool_calls":[
            {"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"a","function":{"name":"g"}},
            {"index":2,"function":{"name":"h"}}]}}]}"#;
        let calls = turn(&[event]).unwrap().calls;
        assert_eq!(calls[0].id.as_str(), "a");
        assert!(calls[1..].iter().all(|call| call.id.as_str().len() == 9));
    }

    #[test]
    fn an_id_of_an_earlier_answer_is_replaced() {
        let known = HashSet::from(["call_0".to_owned()]);
        let mut answer = TurnBuilder::new(AnswerParser::without_calls(), known);
        let event = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"f"}},
            {"index":1,"id":"call_1","function":{"name":"f"}}]}}]}"#;
        answer.push_event(event.as_bytes(), &mut |_| {}).unwrap();
        let calls = answer.into_turn(&mut |_| {}).calls;
        assert_ne!(calls[0].id.as_str(), "call_0");
        assert_eq!(calls[1].id.as_str(), "call_1");
    }

    #[test]
    fn a_cut_call_is_left_out_and_a_whole_one_is_kept() {
        let call = |arguments: &str| {
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"id":"a","function":{{"name":"f","arguments":{arguments}}}}}]}},"finish_reason":"length"}}]}}"#
            )
        };
        let cut = turn(&[&call(r#""{\"path""#)]).unwrap();
        assert_eq!((cut.calls.len(), cut.finish_reason), (0, FinishReason::Length));
        assert_eq!(turn(&[&call(r#""{}""#)]).unwrap().calls.len(), 1);
    }

    #[test]
    fn counts_come_from_usage_or_else_from_timings() {
        let timings = r#"{"choices":[],"timings":{"cache_n":3,"prompt_n":4,"predicted_n":5}}"#;
        let usage = r#"{"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":null}}"#;
        let broken = r#"{"usage":{"prompt_tokens":-10,"completion_tokens":2}}"#;
        assert_eq!(turn(&[timings]).unwrap().usage, Some(Usage { prompt: 7, completion: 5, cached: 3 }));
        assert_eq!(
            turn(&[usage, timings]).unwrap().usage,
            Some(Usage { prompt: 10, completion: 2, cached: 0 })
        );
        assert_eq!(turn(&[broken]).unwrap().usage, None);
    }

    #[test]
    fn text_of_one_read_is_one_delta_and_in_order() {
        let mut answer = TurnBuilder::new(AnswerParser::without_calls(), HashSet::new());
        let mut seen = Vec::new();
        for delta in
            [r#""reasoning":"r""#, r#""reasoning_content":"s""#, r#""content":"a""#, r#""content":"b""#]
        {
            let event = format!(r#"{{"choices":[{{"delta":{{{delta}}}}}]}}"#);
            answer.push_event(event.as_bytes(), &mut |delta| seen.push(delta)).unwrap();
        }
        answer.flush(&mut |delta| seen.push(delta));
        assert_eq!(seen, [Delta::Reasoning("rs".to_owned()), Delta::Text("ab".to_owned())]);
    }
}
