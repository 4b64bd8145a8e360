//! `POST /v1/responses`: text and function calls. Responses are not stored, so a request cannot refer to an earlier one.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        HttpDoor,
        events::{self, EventEncoder},
        response::{self, HttpError, HttpResponse, PolledBody},
    },
    conversation::{ConversationBuilder, Function, MessageText, OfferedTools},
    created, error_object, id,
    run_translator::{RunDelta, RunEnd, RunTranslator},
    sampling, start_run,
};
use crate::{
    agent::{Run, protocol::Event},
    core::{CallId, ToolCall},
    tools::ClientTool,
};

#[derive(Deserialize)]
struct ResponsesRequest {
    #[serde(default)]
    model: String,
    input: Input,
    instructions: Option<String>,
    stream: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_output_tokens: Option<u32>,
    tools: Option<Vec<Tool>>,
    tool_choice: Option<Value>,
    previous_response_id: Option<String>,
    background: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// A message, a call or a result. `type` says which; without it, it is a message.
#[derive(Deserialize)]
struct InputItem {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    role: Option<String>,
    content: Option<MessageText>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<MessageText>,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    function: Function,
}

pub(in super::super) async fn responses(door: &HttpDoor, body: &[u8]) -> Result<HttpResponse, HttpError> {
    let request: ResponsesRequest = serde_json::from_slice(body)
        .map_err(|error| HttpError::bad_request(format!("Invalid JSON body: {error}")))?;
    if request.previous_response_id.is_some() {
        return Err(HttpError::bad_request(
            "previous_response_id is not supported: responses are not stored; send the input again",
        ));
    }
    if request.background == Some(true) {
        return Err(HttpError::bad_request("background is not supported"));
    }
    let tools = OfferedTools::read(request.tools, request.tool_choice.as_ref(), Tool::into_client_tool)?;
    let mut builder = ConversationBuilder::default();
    if let Some(instructions) = request.instructions {
        builder.system(instructions);
    }
    read_input(request.input, &mut builder)?;
    let client_runs_tools = tools.run_at_client();
    let sampling = sampling(request.temperature, request.top_p, request.max_output_tokens)?;
    let start = start_run(door, &request.model, builder.finish(tools)?, sampling).await?;
    let permit = door.reserve_run()?;
    let mut encoder = ResponseEncoder {
        id: id("resp_"),
        message_id: id("msg_"),
        created: created(),
        model: start.agent.clone(),
        translator: RunTranslator::new(door.approver(), client_runs_tools),
        sequence: 0,
        text: String::new(),
        calls: Vec::new(),
        end: None,
        started: false,
    };
    let notice = door.notice(&start);
    let run = door.core.start(start);
    let mut response = if request.stream == Some(true) {
        response::event_stream(PolledBody(events::run_body(run, encoder, permit)))
    } else {
        events::drain_run(run, &mut encoder).await;
        response::ok(&encoder.into_json()?)
    };
    response::add_notice(&mut response, notice);
    Ok(response)
}

impl Tool {
    fn into_client_tool(self) -> Result<ClientTool, HttpError> {
        match self.kind.as_str() {
            "function" => Ok(self.function.into_tool()),
            kind => Err(HttpError::bad_request(format!(
                "tools of type {kind:?} are not supported; only function is"
            ))),
        }
    }
}

fn read_input(input: Input, builder: &mut ConversationBuilder) -> Result<(), HttpError> {
    let items = match input {
        Input::Text(text) => return builder.user(text),
        Input::Items(items) => items,
    };
    for item in items {
        let text = item.content.map_or(Ok(String::new()), MessageText::into_plain)?;
        let id = item.call_id.unwrap_or_default();
        match (item.kind.as_deref().unwrap_or("message"), item.role.as_deref()) {
            ("message", Some("user")) => builder.user(text)?,
            ("message", Some("assistant")) => builder.assistant(text, Vec::new())?,
            ("message", Some("system" | "developer")) => builder.system(text),
            ("function_call", _) => builder.call(ToolCall {
                id: CallId::new(id),
                name: item.name.unwrap_or_default(),
                arguments: item.arguments.unwrap_or_default(),
            })?,
            ("function_call_output", _) => {
                builder.result(&id, item.output.map_or(Ok(String::new()), MessageText::into_plain)?)?;
            }
            // Reasoning is left out, because it may come from another model.
            ("reasoning", _) => {}
            (kind, role) => {
                return Err(HttpError::bad_request(format!(
                    "input of type {kind:?} and role {role:?} is not supported"
                )));
            }
        }
    }
    Ok(())
}

/// Encodes a run as one response or as events.
struct ResponseEncoder {
    id: String,
    message_id: String,
    created: u64,
    model: String,
    translator: RunTranslator,
    sequence: u64,
    text: String,
    calls: Vec<(String, ToolCall)>,
    end: Option<Result<RunEnd, HttpError>>,
    started: bool,
}

impl ResponseEncoder {
    fn into_json(mut self) -> Result<Value, HttpError> {
        match self.end.take() {
            Some(Err(error)) => Err(error),
            Some(Ok(RunEnd::Length)) => Ok(self.object("incomplete")),
            Some(Ok(RunEnd::Stop | RunEnd::ToolCalls(_))) | None => Ok(self.object("completed")),
        }
    }

    fn object(&self, status: &str) -> Value {
        let RunTranslator { prompt_tokens, cached_tokens, completion_tokens, .. } = self.translator;
        let in_progress = status == "in_progress";
        let usage = json!({
            "input_tokens": prompt_tokens, "input_tokens_details": {"cached_tokens": cached_tokens},
            "output_tokens": completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt_tokens.saturating_add(completion_tokens),
        });
        let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        let output: Vec<Value> = if in_progress { Vec::new() } else { self.output() };
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.model,
            "output": output, "error": null, "incomplete_details": incomplete, "instructions": null, "metadata": {},
            "parallel_tool_calls": true, "temperature": null, "top_p": null, "tool_choice": "auto", "tools": [],
            "usage": if in_progress { Value::Null } else { usage },
        })
    }

    fn output(&self) -> Vec<Value> {
        let message = (!self.text.is_empty()).then(|| self.item("completed", &[self.part()]));
        message
            .into_iter()
            .chain(self.calls.iter().map(|(id, call)| function_call(id, call, "completed")))
            .collect()
    }

    fn item(&self, status: &str, content: &[Value]) -> Value {
        json!({"id": self.message_id, "type": "message", "status": status, "role": "assistant", "content": content})
    }

    fn part(&self) -> Value {
        json!({"type": "output_text", "text": self.text, "annotations": []})
    }

    fn send(&mut self, kind: &str, mut data: Value, out: &mut Vec<u8>) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        events::json(out, kind, &data);
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for kind in ["response.created", "response.in_progress"] {
            let response = self.object("in_progress");
            self.send(kind, json!({"response": response}), out);
        }
    }

    fn push_text(&mut self, delta: &str, out: &mut Vec<u8>) {
        if self.text.is_empty() {
            let item = self.item("in_progress", &[]);
            self.send("response.output_item.added", json!({"output_index": 0, "item": item}), out);
            let part = json!({"type": "output_text", "text": "", "annotations": []});
            let added =
                json!({"item_id": self.message_id, "output_index": 0, "content_index": 0, "part": part});
            self.send("response.content_part.added", added, out);
        }
        self.text.push_str(delta);
        let delta = json!({"item_id": self.message_id, "output_index": 0, "content_index": 0, "delta": delta, "logprobs": []});
        self.send("response.output_text.delta", delta, out);
    }

    fn finish_text(&mut self, out: &mut Vec<u8>) {
        if self.text.is_empty() {
            return;
        }
        let position = json!({"item_id": self.message_id, "output_index": 0, "content_index": 0});
        let mut done = position.clone();
        done["text"] = json!(self.text);
        done["logprobs"] = json!([]);
        self.send("response.output_text.done", done, out);
        let mut done = position;
        done["part"] = self.part();
        self.send("response.content_part.done", done, out);
        let item = self.item("completed", &[self.part()]);
        self.send("response.output_item.done", json!({"output_index": 0, "item": item}), out);
    }

    fn push_calls(&mut self, calls: Vec<ToolCall>, out: &mut Vec<u8>) {
        for call in calls {
            let index = usize::from(!self.text.is_empty()) + self.calls.len();
            let item_id = id("fc_");
            let mut opening = call.clone();
            opening.arguments.clear();
            let item = function_call(&item_id, &opening, "in_progress");
            self.send("response.output_item.added", json!({"output_index": index, "item": item}), out);
            let position = json!({"item_id": item_id, "output_index": index});
            for (kind, field) in [
                ("response.function_call_arguments.delta", "delta"),
                ("response.function_call_arguments.done", "arguments"),
            ] {
                let mut data = position.clone();
                data[field] = json!(call.arguments);
                data["name"] = json!(call.name);
                self.send(kind, data, out);
            }
            let item = function_call(&item_id, &call, "completed");
            self.send("response.output_item.done", json!({"output_index": index, "item": item}), out);
            self.calls.push((item_id, call));
        }
    }

    fn push_end(&mut self, end: Result<RunEnd, HttpError>, out: &mut Vec<u8>) {
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
                self.push_calls(calls, out);
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
        self.start(out);
        match self.translator.translate(event, run) {
            Some(RunDelta::Text(text)) => self.push_text(&text, out),
            Some(RunDelta::End(end)) => {
                self.push_end(end, out);
                return true;
            }
            Some(RunDelta::Reasoning(_)) | None => {}
        }
        false
    }
}
