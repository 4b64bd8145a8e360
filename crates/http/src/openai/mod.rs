//! OpenAI-compatible endpoints, where the models are kontekst's agents.
//!
//! A request that does not mention tools runs an agent with its own tools, as `/v1/generate` does. A request with tools
//! offers only those: the model's calls go to the client, which sends the results in its next request. An empty list of
//! tools, or the `tool_choice` "none", offers no tools.

mod chat;
mod chat_encoder;
mod content;
mod conversation;
mod responses;
mod responses_encoder;
mod run_translator;
mod settings;

use http::StatusCode;
use serde_json::{Value, json};

use kontekst_agent::{AgentCore, ExtraContext, RunOverrides, StartRun, ToolOptions};
use kontekst_core::{Name, clock};
use kontekst_store::config::agents as agent_files;

use super::{
    HttpDoor,
    access::Refusal,
    approval::tool_options,
    response::{HttpError, HttpResponse},
};

pub(super) use chat::chat;
pub(super) use responses::responses;

use conversation::Conversation;
use settings::Settings;

/// Returns true if errors on this path have OpenAI's form: on every path under `/v1` but the one of Kolosal.
pub(super) fn is_openai_path(path: &str) -> bool {
    path.starts_with("/v1/") && path != "/v1/generate"
}

/// Makes the error for a path or a method that this server does not have.
pub(super) fn unknown_path(method: &str, path: &str) -> HttpError {
    let path: String = path.chars().take(128).collect();
    HttpError::new(StatusCode::NOT_FOUND, format!("Unknown request URL: {method} {path}")).code("unknown_url")
}

/// Makes the response to a request that the access policy refuses.
pub(super) fn refusal_response(status: StatusCode, refusal: Refusal) -> HttpResponse {
    let message = match refusal {
        Refusal::Token => {
            "Unauthorized: this is not the token of kontekst; `kontekst status --token` prints it".to_owned()
        }
        Refusal::MissingHost | Refusal::Host | Refusal::Origin => refusal.to_string(),
    };
    let error = HttpError::new(status, message);
    error_response(&if refusal == Refusal::Token { error.code("invalid_api_key") } else { error })
}

/// Makes the response to an error in OpenAI's form.
pub(super) fn error_response(error: &HttpError) -> HttpResponse {
    error.with_body(&json!({"error": error_object(error)}))
}

fn error_object(error: &HttpError) -> Value {
    let kind = match error.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "server_error",
    };
    json!({"message": error.message, "type": kind, "param": error.param, "code": error.code})
}

/// Returns the names of all agents, sorted.
pub(super) async fn agent_names(core: &AgentCore) -> Result<Vec<String>, HttpError> {
    let names =
        core.with_storage(|home, _| agent_files::names(home)).await.ok_or_else(HttpError::internal)?;
    Ok(names.into_iter().map(|name| name.to_string()).collect())
}

fn model_object(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "kontekst"})
}

/// `GET /v1/models`.
pub(super) async fn models(core: &AgentCore) -> Result<Value, HttpError> {
    let data: Vec<Value> = agent_names(core).await?.iter().map(|name| model_object(name)).collect();
    Ok(json!({"object": "list", "data": data}))
}

/// `GET /v1/models/NAME`.
pub(super) async fn model(core: &AgentCore, name: &str) -> Result<Value, HttpError> {
    Ok(model_object(find_agent(core, name).await?.as_str()))
}

/// Finds the agent that a request names, or the default agent if it names none.
async fn find_agent(core: &AgentCore, name: &str) -> Result<Name, HttpError> {
    let name = if name.is_empty() { "default" } else { name };
    let missing = || {
        let name: String = name.chars().take(128).collect();
        let text = format!("The model `{name}` does not exist; `kontekst agents` lists them");
        HttpError::new(StatusCode::NOT_FOUND, text).param("model").code("model_not_found")
    };
    let name: Name = name.parse().map_err(|_| missing())?;
    if agent_names(core).await?.iter().any(|known| known == name.as_str()) {
        Ok(name)
    } else {
        Err(missing())
    }
}

/// Makes the run that a request of either API starts.
async fn start_run(
    door: &HttpDoor,
    agent: &str,
    conversation: Conversation,
    settings: Settings,
) -> Result<StartRun, HttpError> {
    let agent = find_agent(&door.core, agent).await?;
    let Conversation { system, history, prompt, images, after_prompt, tools } = conversation;
    let (daemon, client) = tools.split();
    Ok(StartRun {
        prompt: kontekst_agent::Prompt::Text(prompt),
        images,
        history: kontekst_agent::History::Provided(history),
        agent: agent.to_string(),
        tools: ToolOptions { daemon, client, ..tool_options(&door.core.config().http) },
        context: ExtraContext { system, after_prompt, ..ExtraContext::default() },
        overrides: RunOverrides { sampling: settings.sampling, ..RunOverrides::default() },
        answer: settings.answer,
        ..StartRun::default()
    })
}

/// Makes an id in the form of OpenAI's: a prefix, then letters and digits.
fn id(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::new_v4().simple())
}

fn created() -> u64 {
    clock::unix_seconds()
}
