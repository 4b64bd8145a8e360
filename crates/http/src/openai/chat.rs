//! `POST /v1/chat/completions`.

use serde::Deserialize;
use serde_json::Value;

use kontekst_core::{CallId, ToolCall};
use kontekst_tools::ClientTool;

use super::{
    super::{
        HttpDoor, events,
        response::{self, HttpError, HttpResponse, PolledBody},
    },
    chat_encoder::ChatEncoder,
    content::MessageContent,
    conversation::{ConversationBuilder, Function, OfferedTools, client_tool},
    run_translator::{ClientCalls, RunTranslator},
    settings::{ChatFormat, ChatSettings, SamplingSettings, Settings, Whole, chat_format, tool_choice},
    start_run,
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
    max_tokens: Option<Whole>,
    max_completion_tokens: Option<Whole>,
    #[serde(default)]
    tools: Option<Vec<Tool>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<ChatFormat>,
    #[serde(flatten)]
    sampling: SamplingSettings,
    #[serde(flatten)]
    settings: ChatSettings,
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
    content: Option<MessageContent>,
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
    let tools =
        OfferedTools::read(request.tools.take(), request.tool_choice.as_ref(), Tool::into_client_tool)?;
    let tool_choice = tool_choice(request.tool_choice.as_ref(), &tools)?;
    let limit = request.max_completion_tokens.or(request.max_tokens);
    let conversation = read_messages(std::mem::take(&mut request.messages))?.finish(tools)?;
    let format = chat_format(request.response_format)?;
    let settings = Settings {
        sampling: request.sampling.check(limit)?,
        answer: request.settings.check(format, tool_choice)?,
    };
    let calls = ClientCalls::new(&conversation.tools, request.parallel_tool_calls);
    let start = start_run(door, &request.model, conversation, settings).await?;
    let permit = door.reserve_run()?;
    let notice = door.notice(&start);
    let include_usage = request.stream_options.as_ref().is_some_and(|options| options.include_usage);
    let translator = RunTranslator::new(door.approver(), calls);
    let mut chat = ChatEncoder::new(start.agent.clone(), translator, include_usage);
    let run = door.core.start(start);
    let mut response = if request.stream == Some(true) {
        let run = events::first_output(run, &mut chat).await;
        if let Some(error) = chat.error() {
            return Err(error);
        }
        response::event_stream(PolledBody(events::run_body(run, chat, permit)))
    } else {
        events::drain_run(run, &mut chat).await;
        response::ok(&chat.into_json()?)
    };
    response::add_notice(&mut response, notice);
    Ok(response)
}

impl Tool {
    fn into_client_tool(self) -> Result<Option<ClientTool>, HttpError> {
        client_tool(&self.kind, self.function)
    }
}

fn read_messages(messages: Vec<ChatMessage>) -> Result<ConversationBuilder, HttpError> {
    let mut builder = ConversationBuilder::default();
    for message in messages {
        let content = message.content.unwrap_or_else(|| MessageContent::Plain(String::new()));
        if message.role == "user" {
            builder.user(content.into_user_content()?)?;
            continue;
        }
        let text = content.into_plain()?;
        match message.role.as_str() {
            "system" | "developer" => builder.system(text),
            "assistant" => {
                let calls = message.tool_calls.unwrap_or_default().into_iter().map(|call| ToolCall {
                    id: CallId::new(call.id),
                    name: call.function.name,
                    arguments: call.function.arguments,
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
