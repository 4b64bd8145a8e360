//! Assembles the events of a stream into one [`Turn`], and enforces the limits on its size.

use std::collections::HashSet;

use kontekst_core::{CallId, ToolCall};

use super::{
    error_response::{self, single_line},
    finish_reason,
    json::{Json, Object, mended},
    pieces::Pieces,
};

use crate::{
    Delta, FinishReason, Progress, ProviderError, Turn, Usage,
    chat::{ARGUMENTS_LIMIT, Answer, AnswerParser, CALL_LIMIT, ParsedCall},
};

/// The longest id of a call in bytes. A longer one is replaced.
const ID_LIMIT: usize = 256;

/// The deepest nesting of content parts that is read.
const PART_DEPTH: usize = 4;

/// An answer that is still arriving.
pub(super) struct TurnBuilder {
    answer: Answer,
    /// The pieces of the text and of the thoughts.
    text: Pieces,
    thought: Pieces,
    /// The number of content bytes that have arrived, including calls.
    received: usize,
    calls: Vec<PartialCall>,
    /// The ids of the calls that the conversation has already.
    known_ids: HashSet<String>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    /// The counts that llama.cpp sends in the last chunk, with or without `usage`.
    timings: Option<Usage>,
    /// The number of prompt tokens that the server has processed.
    processed: u32,
    started: bool,
    /// The first thing that the server said and that is no part of an answer.
    odd: Option<String>,
}

/// The amount of an answer that has arrived. It changes with everything that counts as progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct BuilderState {
    /// Part of the answer has arrived.
    pub(crate) started: bool,
    /// The finish reason has arrived. Only token counts may follow.
    pub(crate) finished: bool,
    bytes: usize,
    processed: u32,
}

#[derive(Default)]
struct PartialCall {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    pieces: Pieces,
}

impl TurnBuilder {
    /// A call whose id is one of `known_ids` gets another one, so that ids are unique in a conversation.
    pub(super) fn new(parser: AnswerParser, known_ids: HashSet<String>) -> Self {
        Self {
            answer: Answer::new(parser, false),
            text: Pieces::default(),
            thought: Pieces::default(),
            received: 0,
            calls: Vec::new(),
            known_ids,
            finish: None,
            usage: None,
            timings: None,
            processed: 0,
            started: false,
            odd: None,
        }
    }

    /// Adds one event. Its text is passed on by [`TurnBuilder::flush`], so that everything that arrived in one read
    /// becomes one delta. Fields that are not what they should be are absent, and an event that is no object is passed over.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Protocol`] if the event is a malformed object or over a limit, or the error that the event reports.
    pub(super) fn push_event(
        &mut self,
        event: &[u8],
        sink: &mut dyn FnMut(Delta),
    ) -> Result<(), ProviderError> {
        let text = String::from_utf8_lossy(event);
        if let Some(chunk) = Object::parse(&text) {
            return self.push_chunk(&chunk, &text, sink);
        }
        let mended = mended(&text);
        if let Some(json) = Json::parse(&mended) {
            let mut chunks =
                json.elements().into_iter().filter_map(|json| Some((json.as_written(), json.object()?)));
            return chunks.try_for_each(|(text, chunk)| self.push_chunk(&chunk, text, sink));
        }
        if text.trim_start().starts_with('{') || text.trim_start().starts_with("[{") {
            return Err(ProviderError::Protocol("an event is not the JSON it should be".to_owned()));
        }
        self.odd.get_or_insert_with(|| single_line(&text));
        Ok(())
    }

    fn push_chunk(
        &mut self,
        chunk: &Object<'_>,
        text: &str,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<(), ProviderError> {
        let member = |name: &str| chunk.get(name).and_then(Json::object);
        if let Some(progress) = member("prompt_progress") {
            let [processed, total, cached] =
                ["processed", "total", "cache"].map(|name| progress.count(name).unwrap_or(0));
            self.processed = self.processed.max(processed);
            sink(Delta::Progress(Progress::Prefill { processed, total, cached }));
        }
        let choices = chunk.get("choices").map(Json::elements).unwrap_or_default();
        // Only one answer was requested. A second one would be mixed into the first.
        let mut first = choices
            .into_iter()
            .filter_map(Json::object)
            .filter(|choice| choice.count("index").unwrap_or(0) == 0);
        let pushed = first.try_for_each(|choice| self.push_choice(&choice, sink));
        self.usage = member("usage").and_then(|usage| usage_from_counts(&usage)).or(self.usage);
        self.timings = member("timings").and_then(|timings| usage_from_timings(&timings)).or(self.timings);
        if is_error(chunk) {
            return Err(error_response::from_stream(text));
        }
        if chunk.get("choices").is_none() && chunk.text("message").is_some() {
            self.odd = self.odd.take().or_else(|| chunk.text("message").as_deref().map(single_line));
        }
        pushed
    }

    fn push_choice(&mut self, choice: &Object<'_>, sink: &mut dyn FnMut(Delta)) -> Result<(), ProviderError> {
        let member = |name: &str| choice.get(name).and_then(Json::object);
        // Some servers send the whole text so far as `message` beside each piece.
        let delta = member("delta").filter(|delta| self.started || !delta.is_empty());
        match delta.or_else(|| member("message")) {
            Some(delta) => self.push_delta(&delta, sink)?,
            None => {
                if let Some(text) = choice.get("text") {
                    self.push_part(text, false, 0, sink)?;
                }
            }
        }
        if let Some(error) = choice.get("error") {
            return Err(error_response::from_stream(error.as_written()));
        }
        let reason = choice.text("finish_reason").filter(|reason| !reason.is_empty() && reason != "null");
        if let Some(reason) = reason {
            self.finish = Some(finish_reason::read(&reason, sink)?);
        }
        Ok(())
    }

    fn push_delta(&mut self, delta: &Object<'_>, sink: &mut dyn FnMut(Delta)) -> Result<(), ProviderError> {
        // Ollama and newer versions of vLLM name it `reasoning`. Some servers send both.
        for name in ["reasoning_content", "reasoning", "thinking"] {
            if let Some(thought) = delta.get(name)
                && self.push_part(thought, true, 0, sink)?
            {
                break;
            }
        }
        for name in ["content", "refusal"] {
            if let Some(text) = delta.get(name) {
                self.push_part(text, false, 0, sink)?;
            }
        }
        let calls = delta.get("tool_calls").map(Json::elements).unwrap_or_default();
        for call in calls.into_iter().chain(delta.get("function_call")).filter_map(Json::object) {
            self.push_call(&call, sink)?;
            self.started = true;
        }
        Ok(())
    }

    /// Adds text, or the parts of a content. Returns true if there was some.
    fn push_part(
        &mut self,
        part: Json<'_>,
        is_thought: bool,
        depth: usize,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<bool, ProviderError> {
        if let Some(piece) = part.bytes() {
            self.started |= !piece.is_empty();
            if is_thought {
                let piece = self.thought.push(&piece);
                self.answer.push_thought(&piece, sink);
            } else {
                let piece = self.text.push(&piece);
                self.received += piece.len();
                self.answer.push(&piece, sink);
            }
            return match self.answer.call_count() {
                ..=CALL_LIMIT => Ok(!piece.is_empty()),
                _ => Err(too_many_calls()),
            };
        }
        let mut found = false;
        if depth == PART_DEPTH {
            return Ok(found);
        }
        let Some(object) = part.object() else {
            for part in
                part.elements().into_iter().filter(|element| element.as_written() != part.as_written())
            {
                found |= self.push_part(part, is_thought, depth + 1, sink)?;
            }
            return Ok(found);
        };
        let kind = object.text("type").unwrap_or_default();
        let thinks = is_thought || kind.starts_with("thinking") || kind.starts_with("reasoning");
        for (name, thinks) in [("thinking", true), ("reasoning", true), ("text", thinks), ("content", thinks)]
        {
            if let Some(part) = object.get(name) {
                found |= self.push_part(part, thinks, depth + 1, sink)?;
            }
        }
        Ok(found)
    }

    fn push_call(&mut self, delta: &Object<'_>, sink: &mut dyn FnMut(Delta)) -> Result<(), ProviderError> {
        let (index, id) = (delta.count("index"), delta.text("id").unwrap_or_default());
        let function = delta.get("function").and_then(Json::object);
        let function = function.as_ref().unwrap_or(delta);
        let name = function.text("name").unwrap_or_default();
        let at = match self.find_call(index, &id, &name) {
            Some(at) => at,
            None if self.calls.len() == CALL_LIMIT => return Err(too_many_calls()),
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() && id.len() <= ID_LIMIT {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        // The next part of a text, or a whole object.
        let arguments = function.get("arguments").map_or_else(String::new, |json| match json.bytes() {
            Some(piece) => call.pieces.push(&piece).into_owned(),
            None => json.as_written().to_owned(),
        });
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
        self.answer.flush(sink);
    }

    pub(super) fn state(&self) -> BuilderState {
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len()).sum();
        BuilderState {
            started: self.started,
            finished: self.finish.is_some(),
            bytes: self.received + self.answer.thought_bytes() + arguments + self.calls.len(),
            processed: self.processed,
        }
    }

    pub(super) fn started(&self) -> bool {
        self.started
    }

    pub(super) fn finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Returns the answer after the end of the stream. `done` says that the server said so with `[DONE]`.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Protocol`] if the answer is not finished.
    pub(super) fn end(self, done: bool, sink: &mut dyn FnMut(Delta)) -> Result<Turn, ProviderError> {
        let unfinished = (self.finish.is_none() && !(done && self.odd.is_none()))
            .then(|| self.odd.as_ref().map(|odd| format!(", and the server said: {odd}")));
        let turn = self.into_turn(sink);
        match unfinished {
            None => Ok(turn),
            Some(said) => Err(ProviderError::Protocol(format!(
                "it ended before it was finished{}",
                said.unwrap_or_default()
            ))),
        }
    }

    /// Returns the answer as far as it has arrived. Passes to `sink` what looked like a call and turned out to be text.
    pub(super) fn into_turn(mut self, sink: &mut dyn FnMut(Delta)) -> Turn {
        let finish = self.finish.unwrap_or_default();
        self.answer.push_thought(self.thought.end(), sink);
        self.answer.push(self.text.end(), sink);
        let (content, reasoning, found) = self.answer.finish(finish, sink);
        let mut ids = self.known_ids;
        // A server that parses calls may leave them in the text as well. They count once.
        let found = if self.calls.is_empty() { found } else { Vec::new() };
        let found = found.into_iter().map(PartialCall::from);
        let calls = self
            .calls
            .into_iter()
            .chain(found)
            .filter(|call| !call.name.is_empty())
            .map(|mut call| {
                let id = Some(call.id).filter(|id| !id.is_empty() && ids.insert(id.clone()));
                let id = id.map_or_else(CallId::local, CallId::new);
                call.arguments.push_str(call.pieces.end());
                ToolCall { id, name: call.name, arguments: call.arguments }
            })
            // The arguments of a call that was cut are not what the model meant.
            .filter(|call| finish != FinishReason::Length || is_json_object(&call.arguments))
            .collect();
        let usage = self.usage.or(self.timings);
        Turn { content, reasoning, calls, finish_reason: finish, usage, truncated_tokens: None }
    }
}

impl From<ParsedCall> for PartialCall {
    fn from(ParsedCall { name, arguments }: ParsedCall) -> Self {
        Self { name, arguments, ..Self::default() }
    }
}

/// Returns true if an event reports an error, in any of the forms that servers have for that.
fn is_error(chunk: &Object<'_>) -> bool {
    let is = |name: &str, value: &str| chunk.text(name).is_some_and(|text| text == value);
    let has = |names: &[&str]| names.iter().any(|name| chunk.get(name).is_some());
    let said = chunk.get("error").is_some_and(|error| !matches!(error.as_written(), "false" | "\"\"" | "{}"));
    said || is("object", "error")
        || is("type", "error")
        || !has(&["choices", "usage", "timings", "prompt_progress"])
            && (has(&["detail", "error_code", "error_message"])
                || has(&["message", "text", "msg"]) && has(&["code", "status"]))
}

fn too_many_calls() -> ProviderError {
    ProviderError::Protocol(format!("more than {CALL_LIMIT} tool calls in one answer"))
}

fn is_json_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok()
}

fn usage_from_counts(usage: &Object<'_>) -> Option<Usage> {
    let prompt = usage.count("prompt_tokens")?;
    let details = usage.get("prompt_tokens_details").and_then(Json::object);
    let cached = details.and_then(|details| details.count("cached_tokens")).unwrap_or(0).min(prompt);
    Some(Usage { prompt, completion: usage.count("completion_tokens")?, cached })
}

fn usage_from_timings(timings: &Object<'_>) -> Option<Usage> {
    let cached = timings.count("cache_n").unwrap_or(0);
    Some(Usage {
        prompt: cached.saturating_add(timings.count("prompt_n")?),
        completion: timings.count("predicted_n")?,
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
        let tool = kontekst_core::ToolDef {
            name: "f".to_owned(),
            description: "d".to_owned(),
            parameters: serde_json::json!({"type": "object"}),
            ..kontekst_core::ToolDef::default()
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
