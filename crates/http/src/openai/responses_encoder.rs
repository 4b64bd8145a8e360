//! Encodes a run for `POST /v1/responses`.

use serde_json::{Value, json};

use kontekst_agent::{Run, protocol::Event};
use kontekst_core::ToolCall;

use super::{
    super::{
        events::{self, EventEncoder},
        response::HttpError,
    },
    created, error_object, id,
    run_translator::{RunDelta, RunEnd, RunTranslator},
};

/// Encodes a run as one response or as events.
pub(super) struct ResponseEncoder {
    id: String,
    created: u64,
    model: String,
    translator: RunTranslator,
    sequence: u64,
    /// The items that are complete.
    output: Vec<Value>,
    /// The item that grows.
    open: Option<TextItem>,
    end: Option<Result<RunEnd, HttpError>>,
    started: bool,
}

/// An item that is made of text.
struct TextItem {
    kind: TextKind,
    id: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Message,
    Reasoning,
}

impl TextKind {
    /// Returns the beginning of the names of its events.
    fn event(self) -> &'static str {
        match self {
            Self::Message => "response.output_text",
            Self::Reasoning => "response.reasoning_text",
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Message => json!({"type": "output_text", "text": text, "annotations": []}),
            Self::Reasoning => json!({"type": "reasoning_text", "text": text}),
        }
    }
}

impl TextItem {
    fn new(kind: TextKind) -> Self {
        let prefix = match kind {
            TextKind::Message => "msg_",
            TextKind::Reasoning => "rs_",
        };
        Self { kind, id: id(prefix), text: String::new() }
    }

    fn to_json(&self, status: &str) -> Value {
        let content = if self.text.is_empty() { json!([]) } else { json!([self.kind.part(&self.text)]) };
        match self.kind {
            TextKind::Message => json!({
                "id": self.id, "type": "message", "status": status, "role": "assistant", "content": content,
            }),
            TextKind::Reasoning => json!({
                "id": self.id, "type": "reasoning", "status": status, "summary": [], "content": content,
            }),
        }
    }
}

impl ResponseEncoder {
    pub(super) fn new(model: String, translator: RunTranslator) -> Self {
        Self {
            id: id("resp_"),
            created: created(),
            model,
            translator,
            sequence: 0,
            output: Vec::new(),
            open: None,
            end: None,
            started: false,
        }
    }

    /// Returns the error with which the run ended, if it has.
    pub(super) fn error(&self) -> Option<HttpError> {
        self.end.as_ref()?.as_ref().err().cloned()
    }

    pub(super) fn into_json(mut self) -> Result<Value, HttpError> {
        match self.end.take() {
            Some(Err(error)) => Err(error),
            Some(Ok(RunEnd::Length)) => Ok(self.object("incomplete")),
            Some(Ok(RunEnd::Stop | RunEnd::ToolCalls(_))) | None => Ok(self.object("completed")),
        }
    }

    fn object(&self, status: &str) -> Value {
        let RunTranslator { prompt_tokens, cached_tokens, completion_tokens, .. } = self.translator;
        let usage = json!({
            "input_tokens": prompt_tokens, "input_tokens_details": {"cached_tokens": cached_tokens},
            "output_tokens": completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt_tokens.saturating_add(completion_tokens),
        });
        let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.model,
            "output": self.output, "error": null, "incomplete_details": incomplete, "instructions": null,
            "metadata": {}, "parallel_tool_calls": true, "temperature": null, "top_p": null, "tool_choice": "auto",
            "tools": [], "usage": if status == "in_progress" { Value::Null } else { usage },
        })
    }

    fn send(&mut self, kind: &str, mut data: Value, out: &mut Vec<u8>) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        events::json(out, kind, &data);
    }

    /// Sends the first events, before any other.
    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for kind in ["response.created", "response.in_progress"] {
            let response = self.object("in_progress");
            self.send(kind, json!({"response": response}), out);
        }
    }

    /// Adds a piece of text. It begins a new item if the one before it is of another kind.
    fn push_text(&mut self, kind: TextKind, piece: &str, out: &mut Vec<u8>) {
        self.start(out);
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.finish_text(out);
        }
        let item = match self.open.take() {
            Some(item) => item,
            None => self.open_text(kind, out),
        };
        let mut delta = self.position(&item.id);
        delta["delta"] = json!(piece);
        if kind == TextKind::Message {
            delta["logprobs"] = json!([]);
        }
        self.send(&format!("{}.delta", kind.event()), delta, out);
        self.open = Some(TextItem { text: item.text + piece, ..item });
    }

    fn open_text(&mut self, kind: TextKind, out: &mut Vec<u8>) -> TextItem {
        let item = TextItem::new(kind);
        let added = json!({"output_index": self.output.len(), "item": item.to_json("in_progress")});
        self.send("response.output_item.added", added, out);
        let mut added = self.position(&item.id);
        added["part"] = kind.part("");
        self.send("response.content_part.added", added, out);
        item
    }

    fn finish_text(&mut self, out: &mut Vec<u8>) {
        let Some(item) = self.open.take() else { return };
        let mut done = self.position(&item.id);
        done["text"] = json!(item.text);
        if item.kind == TextKind::Message {
            done["logprobs"] = json!([]);
        }
        self.send(&format!("{}.done", item.kind.event()), done, out);
        let mut done = self.position(&item.id);
        done["part"] = item.kind.part(&item.text);
        self.send("response.content_part.done", done, out);
        self.finish_item(item.to_json("completed"), out);
    }

    fn finish_item(&mut self, item: Value, out: &mut Vec<u8>) {
        let index = self.output.len();
        self.send("response.output_item.done", json!({"output_index": index, "item": item}), out);
        self.output.push(item);
    }

    /// Returns the members that say where the text of the open item is.
    fn position(&self, item: &str) -> Value {
        json!({"item_id": item, "output_index": self.output.len(), "content_index": 0})
    }

    fn push_call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        let (item_id, index) = (id("fc_"), self.output.len());
        let mut opening = call.clone();
        opening.arguments.clear();
        let item = function_call(&item_id, &opening, "in_progress");
        self.send("response.output_item.added", json!({"output_index": index, "item": item}), out);
        for (kind, field) in [
            ("response.function_call_arguments.delta", "delta"),
            ("response.function_call_arguments.done", "arguments"),
        ] {
            let mut data = json!({"item_id": item_id, "output_index": index, "name": call.name});
            data[field] = json!(call.arguments);
            self.send(kind, data, out);
        }
        self.finish_item(function_call(&item_id, call, "completed"), out);
    }

    fn push_end(&mut self, end: Result<RunEnd, HttpError>, out: &mut Vec<u8>) {
        self.start(out);
        self.finish_text(out);
        let (kind, status, end) = match end {
            Err(error) => {
                let mut response = self.object("failed");
                response["error"] = error_object(&error);
                response["error"]["code"] = json!("server_error");
                self.send("response.failed", json!({"response": response}), out);
                self.end = Some(Err(error));
                return;
            }
            Ok(RunEnd::ToolCalls(calls)) => {
                for call in &calls {
                    self.push_call(call, out);
                }
                ("response.completed", "completed", RunEnd::Stop)
            }
            Ok(RunEnd::Length) => ("response.incomplete", "incomplete", RunEnd::Length),
            Ok(RunEnd::Stop) => ("response.completed", "completed", RunEnd::Stop),
        };
        let response = self.object(status);
        self.send(kind, json!({"response": response}), out);
        self.end = Some(Ok(end));
    }
}

fn function_call(id: &str, call: &ToolCall, status: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": status, "call_id": call.id.to_string(), "name": call.name,
        "arguments": call.arguments,
    })
}

impl EventEncoder for ResponseEncoder {
    fn handle_event(&mut self, event: Event, run: &Run, out: &mut Vec<u8>) -> bool {
        match self.translator.translate(event, run) {
            Some(RunDelta::Text(text)) => self.push_text(TextKind::Message, &text, out),
            Some(RunDelta::Reasoning(text)) => self.push_text(TextKind::Reasoning, &text, out),
            Some(RunDelta::End(end)) => {
                self.push_end(end, out);
                return true;
            }
            Some(RunDelta::TurnedBack) | None => {}
        }
        false
    }
}
