//! LM Studio. Its own API tells which models are loaded, and with which context window.

use serde_json::{Value, json};

use kontekst_store::config::FALLBACK_CONTEXT_SIZE;

use super::{Detected, ServerKind, is_embedding, question::Questions, tokens};

/// Finds the window of `model`, or of the model that the server would choose: a loaded one, else the first in `list`,
/// which is its own list of models.
pub(super) fn detect(list: &[Value], model: &str) -> Detected {
    let is_loaded =
        |entry: &Value| entry["state"] == "loaded" || tokens(&entry["loaded_context_length"]).is_some();
    let can_answer =
        |entry: &&Value| entry["type"] != "embeddings" && !entry["id"].as_str().is_none_or(is_embedding);
    let entry = match model {
        "" => {
            let mut able = list.iter().filter(can_answer);
            able.clone().find(|entry| is_loaded(entry)).or_else(|| able.next())
        }
        // Several entries may have one name, and only one of them is loaded.
        name => {
            let mut named = list.iter().filter(|entry| entry["id"] == name);
            named.clone().find(|entry| is_loaded(entry)).or_else(|| named.next())
        }
    };
    let name = entry.and_then(|entry| entry["id"].as_str()).or(Some(model)).filter(|name| !name.is_empty());
    let most = entry.and_then(|entry| tokens(&entry["max_context_length"]));
    let loaded = entry.and_then(|entry| tokens(&entry["loaded_context_length"]));
    // A model that is not loaded will hardly get its largest window: the usual one is small.
    let is_unloaded = entry.is_some_and(|entry| !is_loaded(entry));
    let most = if is_unloaded { most.map(|most| most.min(FALLBACK_CONTEXT_SIZE)) } else { most };
    Detected {
        server_kind: ServerKind::LmStudio,
        model: name.map(str::to_owned),
        window: loaded.or(most),
        is_unloaded,
    }
}

/// Loads a model, with a window of `context_size` tokens if that is given. Versions before 0.4 load it with its first
/// request and in no other way, with the window that is set in their settings.
pub(super) fn load(questions: Questions<'_>, model: &str, context_size: Option<u32>) {
    let load = |body: Value| questions.post("/api/v1/models/load", &body);
    let loaded = context_size
        .and_then(|tokens| load(json!({"model": model, "context_length": tokens})))
        // A window that is too large for the model or the memory is refused.
        .or_else(|| load(json!({"model": model})));
    if loaded.is_none() {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let body = json!({"model": model, "messages": messages, "max_tokens": 1, "stream": false});
        questions.post("/v1/chat/completions", &body);
    }
}
