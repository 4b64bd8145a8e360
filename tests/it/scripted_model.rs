//! A model server whose model does what a test decides, in the form in which it is asked.

use serde_json::{Map, Value, json};

use crate::fake_llama::{FakeLlama, Reply, Setup};

/// A model as its server describes it: its name, and its number of parameters if the server says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model(&'static str, Option<u64>);

pub(crate) const LARGE: Model = Model("gpt-oss-20b", Some(20_900_000_000));
pub(crate) const UNKNOWN: Model = Model("Qwen3-Coder-30B-A3B-Instruct", None);
pub(crate) const SMALL: Model = Model("qwen2.5-coder-1.5b-instruct", Some(1_540_000_000));

/// One turn of the model.
pub(crate) enum Act {
    /// A call of a tool, which only a model with native calls makes.
    Call(String, Value),
    Say(String),
}

/// Starts a server that asks `act` for the model's turn, given the body of each chat request.
pub(crate) fn start(model: Model, mut act: impl FnMut(&Value) -> Act + Send + 'static) -> FakeLlama {
    let Model(name, parameters) = model;
    let setup = Setup { window: 32_768, slots: 4, model_path: name.to_owned(), ..Setup::default() };
    let meta = json!({"n_ctx_train": 32_768, "n_params": parameters});
    let models = json!({"object": "list", "data": [{"id": name, "object": "model", "meta": meta}]});
    FakeLlama::with(setup, [])
        .replay(move |request| (request.path == "/v1/models").then(|| Reply::json(200, &models)))
        .always(move |request| reply(&request.body, act(&request.body)))
}

fn reply(body: &Value, act: Act) -> Reply {
    match (act, &body["response_format"]["json_schema"]["schema"]) {
        (Act::Call(name, arguments), _) => Reply::calls([(name.as_str(), arguments)]),
        (Act::Say(text), Value::Null) => Reply::text(&text),
        (Act::Say(text), schema) => Reply::text(&said(schema, &text).to_string()),
    }
}

/// Returns the value under a schema that says `text`: where there is a choice, that of `answer` or else the first one.
fn said(schema: &Value, text: &str) -> Value {
    if let Some(alternatives) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let is_answer = |one: &&Value| {
            one["properties"]
                .as_object()
                .is_some_and(|members| members.values().any(|member| member["const"] == "answer"))
        };
        let chosen = alternatives.iter().find(is_answer).or(alternatives.first());
        return said(chosen.unwrap_or(&Value::Null), text);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(choices) = schema["enum"].as_array() {
        let chosen = choices.iter().find(|choice| *choice == "answer").or(choices.first());
        return chosen.cloned().unwrap_or_default();
    }
    match schema["properties"].as_object() {
        Some(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), said(member, text)))
            .collect::<Map<_, _>>()
            .into(),
        None if schema["type"] == "boolean" => false.into(),
        None => text.into(),
    }
}
