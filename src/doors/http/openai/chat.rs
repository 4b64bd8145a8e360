//! `POST /v1/chat/completions`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        HttpDoor,
        answer::{self, Answer, Fault, Pieces},
        events::{self, Script},
    },
    conversation::{Building, Conversation, Function, Text, offered},
    created, error, id,
    outcome::{Finish, Listener, Piece, chat_call},
    sampling, start_run,
};
use crate::{
    agent::{Run, protocol::Event},
    core::{CallId, ToolCall},
    tools::ClientTool,
};

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    model: String,
    messages: Vec<ChatMessage>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    tools: Option<Vec<Tool>>,
    tool_choice: Option<Value>,
    n: Option<u32>,
    response_format: Option<Value>,
    stop: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct ChatMessage {
    role: String,
    content: Option<Text>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: CallFunction,
}

#[derive(Deserialize)]
struct CallFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

pub(in super::super) async fn chat(door: &HttpDoor, body: &[u8]) -> Result<Answer, Fault> {
    let request: Request =
        serde_json::from_slice(body).map_err(|error| Fault::bad(format!("Invalid JSON body: {error}")))?;
    let conversation = read(&request)?.finish(tools(&request)?)?;
    answer_to(door, request, conversation).await
}

async fn answer_to(door: &HttpDoor, request: Request, conversation: Conversation) -> Result<Answer, Fault> {
    let limit = request.max_completion_tokens.or(request.max_tokens);
    let sampling = sampling(request.temperature, request.top_p, limit)?;
    let hands_over = !conversation.tools.is_empty();
    let start = start_run(door, &request.model, conversation, sampling).await?;
    let room = door.room()?;
    let mut chat = Chat {
        id: id("chatcmpl-"),
        created: created(),
        model: start.agent.clone(),
        listener: Listener::new(door.approver(), hands_over),
        usage: request.stream_options.as_ref().is_some_and(|options| options.include_usage),
        text: String::new(),
        reasoning: String::new(),
        end: None,
        begun: false,
    };
    let run = door.core.start(start);
    if request.stream == Some(true) {
        return Ok(answer::stream(Pieces(events::of_run(run, chat, room))));
    }
    events::whole(run, &mut chat).await;
    chat.whole().map(|value| answer::ok(&value))
}

/// What is not understood is refused where leaving it out would change the answer.
fn tools(request: &Request) -> Result<Vec<ClientTool>, Fault> {
    let text = |value: &Option<Value>| value.as_ref().map(|format| format["type"].clone());
    if request.n.is_some_and(|n| n != 1) {
        return Err(Fault::bad("n must be 1"));
    }
    if text(&request.response_format).is_some_and(|kind| kind != "text") {
        return Err(Fault::bad("response_format must be text"));
    }
    if request.stop.as_ref().is_some_and(|stop| !stop.is_null() && *stop != json!([])) {
        return Err(Fault::bad("stop is not supported"));
    }
    if !offered(request.tool_choice.as_ref())? {
        return Ok(Vec::new());
    }
    let declared = request.tools.as_deref().unwrap_or_default();
    declared
        .iter()
        .map(|tool| match &tool.function {
            Some(function) if tool.kind == "function" => Ok(function.clone().tool()),
            _ => Err(Fault::bad("tools must be of type function")),
        })
        .collect()
}

fn read(request: &Request) -> Result<Building, Fault> {
    let mut building = Building::default();
    for message in &request.messages {
        let text = message.content.clone().map_or(Ok(String::new()), Text::plain)?;
        match message.role.as_str() {
            "system" | "developer" => building.system(text),
            "user" => building.user(text)?,
            "assistant" => {
                let calls = message.tool_calls.as_deref().unwrap_or_default().iter().map(|call| ToolCall {
                    id: CallId::new(&call.id),
                    name: call.function.name.clone(),
                    arguments: call.function.arguments.clone(),
                });
                building.assistant(text, calls.collect())?;
            }
            "tool" => building.result(message.tool_call_id.as_deref().unwrap_or_default(), text)?,
            other => {
                let role: String = other.chars().take(32).collect();
                return Err(Fault::bad(format!("role {role:?} is not known")));
            }
        }
    }
    Ok(building)
}

/// One answer, whole or in chunks.
struct Chat {
    id: String,
    created: u64,
    model: String,
    listener: Listener,
    /// The last chunk counts tokens.
    usage: bool,
    text: String,
    reasoning: String,
    end: Option<Result<Finish, Fault>>,
    begun: bool,
}

impl Chat {
    fn usage(&self) -> Value {
        let Listener { prompt, cached, completion, .. } = self.listener;
        json!({
            "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt.saturating_add(completion),
            "prompt_tokens_details": {"cached_tokens": cached},
        })
    }

    fn whole(self) -> Result<Value, Fault> {
        let usage = self.usage();
        let finish = self.end.unwrap_or(Ok(Finish::Stop))?;
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if let Finish::Calls(calls) = &finish {
            message["tool_calls"] = calls.iter().map(|call| chat_call(call, None)).collect();
            if self.text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        let choice =
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish.reason()});
        Ok(json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [choice], "usage": usage,
        }))
    }

    fn chunk(&mut self, mut delta: Value, finish: Option<&str>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            delta["role"] = json!("assistant");
        }
        let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        events::unnamed(out, &self.envelope(&choices));
    }

    fn envelope(&self, choices: &Value) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": choices,
        })
    }

    fn close(&mut self, end: &Result<Finish, Fault>, out: &mut Vec<u8>) {
        match end {
            Err(fault) => events::unnamed(out, &json!({"error": error(fault)})),
            Ok(finish) => {
                if let Finish::Calls(calls) = finish {
                    let calls: Value =
                        calls.iter().enumerate().map(|(index, call)| chat_call(call, Some(index))).collect();
                    self.chunk(json!({"tool_calls": calls}), None, out);
                }
                self.chunk(json!({}), Some(finish.reason()), out);
                if self.usage {
                    let mut last = self.envelope(&json!([]));
                    last["usage"] = self.usage();
                    events::unnamed(out, &last);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
            }
        }
    }
}

impl Script for Chat {
    fn hear(&mut self, event: Event, run: &Run, out: &mut Vec<u8>) -> bool {
        match self.listener.hear(event, run) {
            None => false,
            Some(Piece::Text(text)) => {
                self.chunk(json!({"content": text}), None, out);
                self.text.push_str(&text);
                false
            }
            Some(Piece::Reasoning(text)) => {
                self.chunk(json!({"reasoning_content": text}), None, out);
                self.reasoning.push_str(&text);
                false
            }
            Some(Piece::End(end)) => {
                self.close(&end, out);
                self.end = Some(end);
                true
            }
        }
    }
}
