//! Recognises servers other than llama.cpp, and finds the context window of their models.

use std::time::Duration;

use serde_json::{Value, json};

use super::http::ServerClient;
use crate::core::Cancel;

/// The program that answers requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// llama-server, also in its router mode.
    LlamaCpp,
    /// Ollama cuts a prompt that is too long without reporting it.
    Ollama,
    LmStudio,
    Vllm,
    /// llama-swap starts a server for each model, and forwards requests beneath `/upstream/<model>` to it.
    LlamaSwap,
    /// Any other server or gateway.
    #[default]
    Other,
}

/// Finds out which server it is, and the context window of `model`. `list` is the server's `/v1/models`, `model` the
/// name that requests will carry.
pub(super) fn detect(
    list: &[Value],
    client: &ServerClient,
    model: &str,
    cancel: &Cancel,
    timeout: Duration,
) -> (ServerKind, Option<u32>) {
    let entry =
        list.iter().find(|entry| entry["id"] == model).or_else(|| list.first().filter(|_| list.len() == 1));
    let reported = |key: &str| tokens(&entry?[key]);
    if let Some(window) = reported("max_model_len") {
        return (ServerKind::Vllm, Some(window));
    }
    // OpenRouter and other gateways.
    if let Some(window) = reported("context_length") {
        return (ServerKind::Other, Some(window));
    }
    let ask = |path: &str, body: Option<&Value>| -> Option<Value> {
        let body = body.map(Value::to_string);
        let (status, answer) =
            client.request(path, body.as_ref().map(String::as_bytes), cancel, timeout).ok()?;
        (status == 200).then(|| serde_json::from_slice(&answer).ok())?
    };
    if ask("/api/version", None).is_some_and(|answer| answer["version"].is_string()) {
        let loaded = || {
            let running = ask("/api/ps", None)?;
            let of_model = |entry: &&Value| entry["model"] == model || entry["name"] == model;
            tokens(&running["models"].as_array()?.iter().find(of_model)?["context_length"])
        };
        let configured =
            || num_ctx(ask("/api/show", Some(&json!({"model": model})))?["parameters"].as_str()?);
        return (ServerKind::Ollama, loaded().or_else(configured));
    }
    if let Some(Value::Array(list)) = ask("/api/v0/models", None).map(|mut answer| answer["data"].take()) {
        let entry = list.iter().find(|entry| entry["id"] == model);
        let window = entry.and_then(|entry| {
            tokens(&entry["loaded_context_length"]).or_else(|| tokens(&entry["max_context_length"]))
        });
        return (ServerKind::LmStudio, window);
    }
    if ask("/running", None).is_some_and(|answer| answer["running"].is_array()) {
        return (ServerKind::LlamaSwap, None);
    }
    (ServerKind::Other, None)
}

/// Returns the path on llama-swap that leads to `path` on the server of `model`.
pub(super) fn upstream_path(model: &str, path: &str) -> String {
    let model: String = url::form_urlencoded::byte_serialize(model.as_bytes()).collect();
    format!("/upstream/{}{path}", model.replace('+', "%20"))
}

fn tokens(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|tokens| u32::try_from(tokens).ok()).filter(|&tokens| tokens > 0)
}

/// Finds `num_ctx` in Ollama's parameters, which are lines of a name and a value.
fn num_ctx(parameters: &str) -> Option<u32> {
    let mut lines = parameters.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let (_, value) = lines.find(|(name, _)| *name == "num_ctx")?;
    value.trim().parse().ok().filter(|&tokens| tokens > 0)
}
