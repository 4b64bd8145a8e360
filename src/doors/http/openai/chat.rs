//! `POST /v1/chat/completions`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        HttpDoor,
        events::{self, EventEncoder},
        response::{self, HttpError, HttpResponse, PolledBody},
    },
    conversation::{Conversation, ConversationBuilder, Function, MessageText, OfferedTools},
    created, error_object, id,
    run_translator::{RunDelta, RunEnd, RunTranslator, chat_call},
    sampling, start_run,
};
use crate::{
    agent::{Run, protocol::Event},
    core::{CallId, ToolCall},
    tools::ClientTool,
};

#[derive(Deserialize)]
struct ChatCompletionRequest {
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
    content: Option<MessageText>,
    #[serde(default)]
    tool_calls: Option<Vec<MessageCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct MessageCall {
    id: String,
    function: CallFunction,
}

#[derive(Deserialize)]
struct CallFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

pub(in super::super) async fn chat(door: &HttpDoor, body: &[u8]) -> Result<HttpResponse, HttpError> {
    let mut request: ChatCompletionRequest = serde_json::from_slice(body)
        .map_err(|error| HttpError::bad_request(format!("Invalid JSON body: {error}")))?;
    check_supported(&request)?;
    let tools =
        OfferedTools::read(request.tools.take(), request.tool_choice.as_ref(), Tool::into_client_tool)?;
    let conversation = read_messages(&request)?.finish(tools)?;
    respond(door, request, conversation).await
}

async fn respond(
    door: &HttpDoor,
    request: ChatCompletionRequest,
    conversation: Conversation,
) -> Result<HttpResponse, HttpError> {
    let limit = request.max_completion_tokens.or(request.max_tokens);
    let sampling = sampling(request.temperature, request.top_p, limit)?;
    let client_runs_tools = conversation.tools.run_at_client();
    let start = start_run(door, &request.model, conversation, sampling).await?;
    let permit = door.reserve_run()?;
    let mut chat = ChatCompletion {
        id: id("chatcmpl-"),
        created: created(),
        model: start.agent.clone(),
        translator: RunTranslator::new(door.approver(), client_runs_tools),
        include_usage: request.stream_options.as_ref().is_some_and(|options| options.include_usage),
        text: String::new(),
        reasoning: String::new(),
        end: None,
        started: false,
    };
    let notice = door.notice(&start);
    let run = door.core.start(start);
    let mut response = if request.stream == Some(true) {
        response::event_stream(PolledBody(events::run_body(run, chat, permit)))
    } else {
        events::drain_run(run, &mut chat).await;
        response::ok(&chat.into_json()?)
    };
    response::add_notice(&mut response, notice);
    Ok(response)
}

/// Refuses settings that are not supported and that would change the answer.
fn check_supported(request: &ChatCompletionRequest) -> Result<(), HttpError> {
    let format_type = request.response_format.as_ref().map(|format| &format["type"]);
    if request.n.is_some_and(|n| n != 1) {
        return Err(HttpError::bad_request("n must be 1"));
    }
    if format_type.is_some_and(|kind| kind != "text") {
        return Err(HttpError::bad_request("response_format must be text"));
    }
    if request.stop.as_ref().is_some_and(|stop| !stop.is_null() && *stop != json!([])) {
        return Err(HttpError::bad_request("stop is not supported"));
    }
    Ok(())
}

impl Tool {
    fn into_client_tool(self) -> Result<ClientTool, HttpError> {
        match self.function {
            Some(function) if self.kind == "function" => Ok(function.into_tool()),
            _ => Err(HttpError::bad_request("tools must be of type function")),
        }
    }
}

fn read_messages(request: &ChatCompletionRequest) -> Result<ConversationBuilder, HttpError> {
    let mut builder = ConversationBuilder::default();
    for message in &request.messages {
        let text = message.content.clone().map_or(Ok(String::new()), MessageText::into_plain)?;
        match message.role.as_str() {
            "system" | "developer" => builder.system(text),
            "user" => builder.user(text)?,
            "assistant" => {
                let calls = message.tool_calls.as_deref().unwrap_or_default().iter().map(|call| ToolCall {
                    id: CallId::new(&call.id),
                    name: call.function.name.clone(),
                    arguments: call.function.arguments.clone(),
                });
                builder.assistant(text, calls.collect())?;
            }
            "tool" => builder.result(message.tool_call_id.as_deref().unwrap_or_default(), text)?,
            other => {
                let role: String = other.chars().take(32).collect();
                return Err(HttpError::bad_request(format!("role {role:?} is not known")));
            }
        }
    }
    Ok(builder)
}

/// Encodes a run as one completion or as chunks.
struct ChatCompletion {
    id: String,
    created: u64,
    model: String,
    translator: RunTranslator,
    /// True if the stream ends with a chunk that has the token counts.
    include_usage: bool,
    text: String,
    reasoning: String,
    end: Option<Result<RunEnd, HttpError>>,
    started: bool,
}

impl ChatCompletion {
    fn usage(&self) -> Value {
        let RunTranslator { prompt_tokens, cached_tokens, completion_tokens, .. } = self.translator;
        json!({
            "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens.saturating_add(completion_tokens),
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        })
    }

    fn into_json(self) -> Result<Value, HttpError> {
        let usage = self.usage();
        let finish = self.end.unwrap_or(Ok(RunEnd::Stop))?;
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if let RunEnd::ToolCalls(calls) = &finish {
            message["tool_calls"] = calls.iter().map(|call| chat_call(call, None)).collect();
            if self.text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish.finish_reason()});
        Ok(json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [choice], "usage": usage,
        }))
    }

    fn chunk(&mut self, mut delta: Value, finish: Option<&str>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.started, true) {
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

    fn push_end(&mut self, end: &Result<RunEnd, HttpError>, out: &mut Vec<u8>) {
        match end {
            Err(error) => events::unnamed(out, &json!({"error": error_object(error)})),
            Ok(finish) => {
                if let RunEnd::ToolCalls(calls) = finish {
                    let calls: Value =
                        calls.iter().enumerate().map(|(index, call)| chat_call(call, Some(index))).collect();
                    self.chunk(json!({"tool_calls": calls}), None, out);
                }
                self.chunk(json!({}), Some(finish.finish_reason()), out);
                if self.include_usage {
                    let mut last = self.envelope(&json!([]));
                    last["usage"] = self.usage();
                    events::unnamed(out, &last);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
            }
        }
    }
}

impl EventEncoder for ChatCompletion {
    fn handle_event(&mut self, event: Event, run: &Run, out: &mut Vec<u8>) -> bool {
        match self.translator.translate(event, run) {
            None => false,
            Some(RunDelta::Text(text)) => {
                self.chunk(json!({"content": text}), None, out);
                self.text.push_str(&text);
                false
            }
            Some(RunDelta::Reasoning(text)) => {
                self.chunk(json!({"reasoning_content": text}), None, out);
                self.reasoning.push_str(&text);
                false
            }
            Some(RunDelta::End(end)) => {
                self.push_end(&end, out);
                self.end = Some(end);
                true
            }
        }
    }
}
