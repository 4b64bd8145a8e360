//! Ollama. Its own API tells the context window of a model that is loaded, and what the model's definition sets.
//!
//! The window is 4,096 tokens on most machines, and `OLLAMA_CONTEXT_LENGTH` or `num_ctx` set another one. The length that
//! a model was trained for says nothing about it. Source: Ollama's documentation on context length.

use serde_json::{Value, json};

use super::{Detected, ServerKind, is_embedding, question::Questions, tokens};

/// Finds the window of `model`, or of the model that the server would choose: a loaded one, else the first in `list`.
pub(super) fn detect(questions: Questions<'_>, list: &[Value], model: &str) -> Detected {
    let running = questions.get("/api/ps").map(|mut answer| answer["models"].take());
    let running: &[Value] = running.as_ref().and_then(Value::as_array).map_or(&[], Vec::as_slice);
    let answers = |name: &&str| !is_embedding(name);
    let name = Some(model)
        .filter(|name| !name.is_empty())
        .or_else(|| running.iter().filter_map(|entry| entry["model"].as_str()).find(answers))
        .or_else(|| list.iter().filter_map(|entry| entry["id"].as_str()).find(answers));
    let Some(name) = name else {
        return Detected { server_kind: ServerKind::Ollama, ..Detected::default() };
    };
    let is_named = |entry: &&Value| ["model", "name"].iter().any(|key| is_same(&entry[*key], name));
    let loaded = running.iter().find(is_named).and_then(|entry| tokens(&entry["context_length"]));
    let window = loaded
        .or_else(|| num_ctx(questions.post("/api/show", &json!({"model": name}))?["parameters"].as_str()?));
    Detected {
        server_kind: ServerKind::Ollama,
        model: Some(name.to_owned()),
        window,
        is_unloaded: window.is_none(),
    }
}

/// Loads a model: a request without a prompt does only that.
pub(super) fn load(questions: Questions<'_>, model: &str) {
    questions.post("/api/generate", &json!({"model": model, "stream": false}));
}

/// Returns true if an entry has this name. A name without a tag means the tag `latest`.
fn is_same(entry: &Value, name: &str) -> bool {
    entry.as_str().is_some_and(|entry| entry == name || entry.strip_suffix(":latest") == Some(name))
}

/// Finds `num_ctx` in Ollama's parameters, which are lines of a name and a value.
fn num_ctx(parameters: &str) -> Option<u32> {
    let mut lines = parameters.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let (_, value) = lines.find(|(name, _)| *name == "num_ctx")?;
    value.trim().parse().ok().filter(|&tokens| tokens > 0)
}
