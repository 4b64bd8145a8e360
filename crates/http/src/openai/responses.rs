//! `POST /v1/responses`: text and function calls. Responses are not stored, so a request cannot refer to an earlier one.

use serde::Deserialize;
use serde_json::Value;

use kontekst_core::{AnswerOptions, CallId, ToolCall};
use kontekst_tools::ClientTool;

use super::{
    super::{
        HttpDoor, events,
        response::{self, HttpError, HttpResponse, PolledBody},
    },
    content::MessageContent,
    conversation::{ConversationBuilder, Function, OfferedTools, client_tool},
    responses_encoder::ResponseEncoder,
    run_translator::{ClientCalls, RunTranslator},
    settings::{ResponsesText, SamplingSettings, Settings, Whole, refuse, responses_format, tool_choice},
    start_run,
};

#[derive(Deserialize)]
struct ResponsesRequest {
    #[serde(default)]
    model: String,
    input: Input,
    instructions: Option<String>,
    stream: Option<bool>,
    max_output_tokens: Option<Whole>,
    tools: Option<Vec<Tool>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    text: Option<ResponsesText>,
    reasoning: Option<Reasoning>,
    top_logprobs: Option<Whole>,
    previous_response_id: Option<String>,
    conversation: Option<Value>,
    prompt: Option<Value>,
    background: Option<bool>,
    #[serde(flatten)]
    sampling: SamplingSettings,
}

#[derive(Deserialize)]
struct Reasoning {
    effort: Option<String>,
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
    content: Option<MessageContent>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<MessageContent>,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: String,
    /// `None` if it is not a function.
    #[serde(flatten)]
    function: Option<Function>,
}

pub(in super::super) async fn responses(door: &HttpDoor, body: &[u8]) -> Result<HttpResponse, HttpError> {
    let mut request: ResponsesRequest = serde_json::from_slice(body)
        .map_err(|error| HttpError::bad_request(format!("Invalid JSON body: {error}")))?;
    check_supported(&request)?;
    let tools =
        OfferedTools::read(request.tools.take(), request.tool_choice.as_ref(), Tool::into_client_tool)?;
    let settings = settings(&mut request, &tools)?;
    let mut builder = ConversationBuilder::default();
    if let Some(instructions) = request.instructions {
        builder.system(instructions);
    }
    read_input(request.input, &mut builder)?;
    let calls = ClientCalls::new(&tools, request.parallel_tool_calls);
    let start = start_run(door, &request.model, builder.finish(tools)?, settings).await?;
    let permit = door.reserve_run()?;
    let notice = door.notice(&start);
    let mut encoder = ResponseEncoder::new(start.agent.clone(), RunTranslator::new(door.approver(), calls));
    let run = door.core.start(start);
    let mut response = if request.stream == Some(true) {
        let run = events::first_output(run, &mut encoder).await;
        if let Some(error) = encoder.error() {
            return Err(error);
        }
        response::event_stream(PolledBody(events::run_body(run, encoder, permit)))
    } else {
        events::drain_run(run, &mut encoder).await;
        response::ok(&encoder.into_json()?)
    };
    response::add_notice(&mut response, notice);
    Ok(response)
}

/// Refuses what is not supported and would change the answer.
fn check_supported(request: &ResponsesRequest) -> Result<(), HttpError> {
    if request.previous_response_id.is_some() {
        let message = "previous_response_id is not supported: responses are not stored; send the input again";
        return Err(HttpError::bad_request(message).param("previous_response_id"));
    }
    refuse("conversation", request.conversation.is_some())?;
    refuse("prompt", request.prompt.is_some())?;
    refuse("background", request.background == Some(true))?;
    refuse("top_logprobs", request.top_logprobs.is_some_and(Whole::is_positive))
}

fn settings(request: &mut ResponsesRequest, tools: &OfferedTools) -> Result<Settings, HttpError> {
    Ok(Settings {
        sampling: request.sampling.check(request.max_output_tokens)?,
        answer: AnswerOptions {
            format: responses_format(request.text.take())?,
            tool_choice: tool_choice(request.tool_choice.as_ref(), tools)?,
            reasoning_effort: request.reasoning.take().and_then(|reasoning| reasoning.effort),
            ..AnswerOptions::default()
        },
    })
}

impl Tool {
    fn into_client_tool(self) -> Result<Option<ClientTool>, HttpError> {
        client_tool(&self.kind, self.function)
    }
}

fn read_input(input: Input, builder: &mut ConversationBuilder) -> Result<(), HttpError> {
    let items = match input {
        Input::Text(text) => return builder.user(text),
        Input::Items(items) => items,
    };
    for item in items {
        let content = item.content.unwrap_or_else(|| MessageContent::Plain(String::new()));
        let kind = item.kind.as_deref().unwrap_or("message");
        if (kind, item.role.as_deref()) == ("message", Some("user")) {
            builder.user(content.into_user_content()?)?;
            continue;
        }
        let text = content.into_plain()?;
        let id = item.call_id.unwrap_or_default();
        match (kind, item.role.as_deref()) {
            ("message", Some("assistant")) => builder.assistant(text, Vec::new())?,
            ("message", Some("system" | "developer")) => builder.system(text),
            ("function_call", _) => builder.call(ToolCall {
                id: CallId::new(id),
                name: item.name.unwrap_or_default(),
                arguments: item.arguments.unwrap_or_default(),
            })?,
            ("function_call_output", _) => {
                builder.result(&id, item.output.map_or(Ok(String::new()), MessageContent::into_plain)?)?;
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
