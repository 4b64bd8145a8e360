//! What a server is and can do, asked once: llama.cpp by its `/props`, others by `/v1/models`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    engine::{self, Engine},
    http::Link,
    refusal,
};
use crate::{core::Cancel, provider::ProviderError};

/// Requests at once that a server is trusted with when it does not say how many it can take: such
/// servers (vLLM, gateways) have queues of their own.
const OPEN_SLOTS: usize = 256;

/// What llama-server runs at once unless told otherwise; a router does not tell for its children.
const ROUTER_SLOTS: usize = 4;

/// What a server is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// It is llama.cpp: takes its request fields, counts tokens, reports progress.
    pub llama: bool,
    pub engine: Engine,
    /// Tokens that one request may have, where known.
    pub window: Option<u32>,
    /// Requests it runs at once.
    pub slots: usize,
    /// The file it was started with, where known.
    pub model_path: Option<String>,
    /// The template knows tools. Others drop definitions, calls and results silently.
    pub tool_role: bool,
    /// The template knows role `system`. Others refuse it.
    pub system_role: bool,
    /// The template refuses call ids that are not nine letters and digits.
    pub short_ids: bool,
}

/// What a probe found.
#[derive(Debug)]
pub enum Probe {
    Ready(Capabilities),
    /// A server that is still reading its model.
    Loading,
    /// A router that has not loaded this model. [`wake`] has it loaded.
    Asleep,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Props {
    default_generation_settings: Option<Settings>,
    total_slots: Option<usize>,
    model_path: Option<String>,
    chat_template: Option<String>,
    chat_template_caps: Option<Value>,
    role: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Settings {
    n_ctx: Option<u32>,
}

/// Asks who is there. `model` is the name that requests will carry.
///
/// # Errors
///
/// [`ProviderError::Unreachable`] when nothing answers within `patience`, [`ProviderError::Status`] when
/// the key is refused or what answers is no model server.
pub fn probe(link: &Link, model: &str, cancel: &Cancel, patience: Duration) -> Result<Probe, ProviderError> {
    let (status, body) = link.ask("/props", None, cancel, patience)?;
    if refusal::is_loading(status, &body) {
        return Ok(Probe::Loading);
    }
    if matches!(status, 401 | 403) {
        return Err(refusal::of_status(status, &body));
    }
    match serde_json::from_slice::<Props>(&body) {
        Ok(props) if status == 200 && props.role.as_deref() == Some("router") => {
            return routed(link, model, cancel, patience);
        }
        Ok(props) if status == 200 && props.default_generation_settings.is_some() => {
            return Ok(Probe::Ready(llama(props)));
        }
        _ => {}
    }
    let (status, body) = link.ask("/v1/models", None, cancel, patience)?;
    if refusal::is_loading(status, &body) {
        return Ok(Probe::Loading);
    }
    let models = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    match models["data"].as_array() {
        Some(list) if status == 200 => Ok(Probe::Ready(other(list, link, model, cancel, patience))),
        _ if status == 200 => Err(ProviderError::Protocol("it is no model server".to_owned())),
        _ => Err(refusal::of_status(status, &body)),
    }
}

/// Has a router load a model. Asking its server for anything would do so too, but says nothing until it is
/// done.
///
/// # Errors
///
/// [`ProviderError::Unreachable`] when it does not answer. Whether it loads the model is the next probe's matter.
pub fn wake(link: &Link, model: &str, cancel: &Cancel, patience: Duration) -> Result<(), ProviderError> {
    let body = json!({ "model": model }).to_string();
    let (status, answer) = link.ask("/models/load", Some(body.as_bytes()), cancel, patience)?;
    tracing::debug!(model, status, answer = %String::from_utf8_lossy(&answer), "asked a router to load a model");
    Ok(())
}

/// Why a router could not load a model, if it says so.
pub fn broken(link: &Link, model: &str, cancel: &Cancel, patience: Duration) -> Option<ProviderError> {
    let (_, models) = link.ask("/models", None, cancel, patience).ok()?;
    let models = serde_json::from_slice::<Value>(&models).ok()?;
    let status = &models["data"].as_array()?.iter().find(|entry| entry["id"] == model)?["status"];
    let code = status["exit_code"].as_i64().filter(|_| status["failed"] == true)?;
    let message = format!("the router could not load {model}: its server ended with exit code {code}");
    Some(ProviderError::Status { status: 500, message: refusal::shown(&message) })
}

fn llama(props: Props) -> Capabilities {
    let settings = props.default_generation_settings.unwrap_or_default();
    let caps = props.chat_template_caps.unwrap_or_default();
    let can = |key: &str| caps[key].as_bool().unwrap_or(true);
    let template = props.chat_template.unwrap_or_default();
    Capabilities {
        llama: true,
        engine: Engine::LlamaCpp,
        window: settings.n_ctx.filter(|&tokens| tokens > 0),
        slots: props.total_slots.unwrap_or(ROUTER_SLOTS).clamp(1, OPEN_SLOTS),
        model_path: props.model_path,
        tool_role: can("supports_tools") && can("supports_tool_calls"),
        system_role: can("supports_system_role"),
        short_ids: template.contains("length 9") || template.contains("length != 9"),
    }
}

/// What a router says about one model, without making it load that model.
fn routed(link: &Link, model: &str, cancel: &Cancel, patience: Duration) -> Result<Probe, ProviderError> {
    if model.is_empty() {
        return Ok(Probe::Ready(llama(Props::default()))); // no model in particular: the router is there
    }
    let query: String = url::form_urlencoded::byte_serialize(model.as_bytes()).collect();
    let path = format!("/props?model={query}&autoload=false");
    let (status, body) = link.ask(&path, None, cancel, patience)?;
    if refusal::is_loading(status, &body) {
        return Ok(Probe::Loading);
    }
    match refusal::of_status(status, &body) {
        _ if status == 200 => Ok(Probe::Ready(llama(serde_json::from_slice(&body).unwrap_or_default()))),
        // The last is about an earlier time: the file may be a better one by now.
        ProviderError::Status { message, .. }
            if ["not loaded", "not running", "failed to load"].iter().any(|why| message.contains(why)) =>
        {
            Ok(Probe::Asleep)
        }
        // The model's own server is on its way up or down.
        ProviderError::Status { status: 500..=599, .. } => Ok(Probe::Loading),
        error => Err(error),
    }
}

fn other(list: &[Value], link: &Link, model: &str, cancel: &Cancel, patience: Duration) -> Capabilities {
    let (engine, window) = engine::find(list, link, model, cancel, patience);
    if engine == Engine::LlamaSwap
        && let Some(props) = upstream(link, model, cancel, patience)
    {
        return Capabilities { engine, ..llama(props) };
    }
    Capabilities {
        llama: false,
        engine,
        window,
        slots: OPEN_SLOTS,
        model_path: None,
        tool_role: true,
        system_role: true,
        short_ids: false,
    }
}

/// What llama-swap's server for a model says, if it runs: asking would start it, and stop another.
fn upstream(link: &Link, model: &str, cancel: &Cancel, patience: Duration) -> Option<Props> {
    let (_, running) = link.ask("/running", None, cancel, patience).ok()?;
    let running = serde_json::from_slice::<Value>(&running).ok()?;
    let ready = |entry: &Value| entry["model"] == model && entry["state"] == "ready";
    running["running"].as_array()?.iter().find(|entry| ready(entry))?;
    let (status, body) = link.ask(&engine::upstream(model, "/props"), None, cancel, patience).ok()?;
    (status == 200).then(|| serde_json::from_slice(&body).ok())?
}
