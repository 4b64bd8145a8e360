//! Reads the settings of a request that concern its answer. Pure.
//!
//! A setting that is not supported is refused if the answer would be different without it.

use serde::Deserialize;
use serde_json::{Map, Number, Value, value::RawValue};

use kontekst_core::{AnswerFormat, AnswerOptions, JsonSchema, Sampling, ToolChoice};

use super::{super::response::HttpError, conversation::OfferedTools};

/// The most stop sequences. Source: OpenAI's API.
const MAX_STOPS: usize = 4;

/// A whole number, which some clients write as `5.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Number")]
pub(super) struct Whole(i64);

impl TryFrom<Number> for Whole {
    type Error = String;

    fn try_from(number: Number) -> Result<Self, String> {
        let whole = |number: &Number| number.as_f64().filter(|number| number.fract() == 0.0);
        match (number.as_i64(), whole(&number)) {
            (Some(integer), _) => Ok(Self(integer)),
            (None, Some(float)) => Ok(Self(float as i64)), // the nearest that there is
            (None, None) => Err(format!("{number} is no whole number")),
        }
    }
}

impl Whole {
    pub(super) fn is_positive(self) -> bool {
        self.0 > 0
    }
}

/// The settings of a run.
pub(super) struct Settings {
    pub(super) sampling: Sampling,
    pub(super) answer: AnswerOptions,
}

/// The sampling settings that both APIs have.
#[derive(Deserialize)]
pub(super) struct SamplingSettings {
    temperature: Option<f64>,
    top_p: Option<f64>,
}

impl SamplingSettings {
    /// Checks the settings. `max_tokens` has another name in each API. A negative number is no limit.
    pub(super) fn check(&self, max_tokens: Option<Whole>) -> Result<Sampling, HttpError> {
        let max_tokens = match max_tokens {
            Some(Whole(0)) => {
                return Err(HttpError::bad_request("max_tokens must be at least 1").param("max_tokens"));
            }
            Some(Whole(limit @ 1..)) => Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            _ => None,
        };
        Ok(Sampling {
            temperature: in_range("temperature", self.temperature, 0.0, 2.0)?,
            top_p: in_range("top_p", self.top_p, 0.0, 1.0)?,
            max_tokens,
            ..Sampling::default()
        })
    }
}

/// The settings that only chat completions have.
#[derive(Deserialize)]
pub(super) struct ChatSettings {
    n: Option<Whole>,
    stop: Option<Stop>,
    seed: Option<Whole>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    logit_bias: Option<Map<String, Value>>,
    reasoning_effort: Option<String>,
    logprobs: Option<bool>,
    top_logprobs: Option<Whole>,
    verbosity: Option<String>,
    modalities: Option<Vec<String>>,
    functions: Option<Value>,
    function_call: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

impl ChatSettings {
    /// Checks the settings.
    pub(super) fn check(
        self,
        format: AnswerFormat,
        tool_choice: ToolChoice,
    ) -> Result<AnswerOptions, HttpError> {
        if self.n.is_some_and(|Whole(n)| n != 1 && n != -1) {
            return Err(HttpError::bad_request("n must be 1").param("n"));
        }
        refuse("logprobs", self.logprobs == Some(true))?;
        refuse("top_logprobs", self.top_logprobs.is_some_and(Whole::is_positive))?;
        refuse("verbosity", self.verbosity.is_some_and(|verbosity| verbosity != "medium"))?;
        refuse("modalities", self.modalities.is_some_and(|kinds| kinds.iter().any(|kind| kind != "text")))?;
        refuse("functions", self.functions.is_some())?;
        refuse("function_call", self.function_call.is_some())?;
        Ok(AnswerOptions {
            format,
            tool_choice,
            stop: stop(self.stop)?,
            seed: self.seed.map(|Whole(seed)| seed),
            presence_penalty: in_range("presence_penalty", self.presence_penalty, -2.0, 2.0)?,
            frequency_penalty: in_range("frequency_penalty", self.frequency_penalty, -2.0, 2.0)?,
            logit_bias: self.logit_bias.unwrap_or_default(),
            reasoning_effort: self.reasoning_effort,
        })
    }
}

/// Refuses a setting that is not supported, if it is `used`.
pub(super) fn refuse(name: &'static str, used: bool) -> Result<(), HttpError> {
    if used { Err(HttpError::bad_request(format!("{name} is not supported")).param(name)) } else { Ok(()) }
}

fn in_range(name: &'static str, value: Option<f64>, min: f64, max: f64) -> Result<Option<f64>, HttpError> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(HttpError::bad_request(format!("{name} must be {min} to {max}")).param(name))
        }
        value => Ok(value),
    }
}

fn stop(stop: Option<Stop>) -> Result<Vec<String>, HttpError> {
    let texts = match stop {
        None => Vec::new(),
        Some(Stop::One(text)) => vec![text],
        Some(Stop::Several(texts)) => texts,
    };
    if texts.len() > MAX_STOPS || texts.iter().any(String::is_empty) {
        let message = format!("stop must be at most {MAX_STOPS} texts, none of them empty");
        return Err(HttpError::bad_request(message).param("stop"));
    }
    Ok(texts)
}

/// `response_format` of chat completions.
#[derive(Deserialize)]
pub(super) struct ChatFormat {
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<SchemaDefinition>,
}

/// `text` of the responses API.
#[derive(Deserialize)]
pub(super) struct ResponsesText {
    format: Option<ResponsesFormat>,
    verbosity: Option<String>,
}

#[derive(Deserialize)]
struct ResponsesFormat {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    schema: Option<Box<RawValue>>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct SchemaDefinition {
    name: Option<String>,
    schema: Option<Box<RawValue>>,
    strict: Option<bool>,
}

pub(super) fn chat_format(format: Option<ChatFormat>) -> Result<AnswerFormat, HttpError> {
    let Some(ChatFormat { kind, json_schema }) = format else { return Ok(AnswerFormat::Text) };
    answer_format("response_format", &kind, json_schema)
}

pub(super) fn responses_format(text: Option<ResponsesText>) -> Result<AnswerFormat, HttpError> {
    let Some(text) = text else { return Ok(AnswerFormat::Text) };
    refuse("text.verbosity", text.verbosity.is_some_and(|verbosity| verbosity != "medium"))?;
    let Some(ResponsesFormat { kind, name, schema, strict }) = text.format else {
        return Ok(AnswerFormat::Text);
    };
    answer_format("text.format", &kind, Some(SchemaDefinition { name, schema, strict }))
}

/// Reads the format of the setting `setting`.
fn answer_format(
    setting: &'static str,
    kind: &str,
    definition: Option<SchemaDefinition>,
) -> Result<AnswerFormat, HttpError> {
    let wrong = |message: String| Err(HttpError::bad_request(message).param(setting));
    match (kind, definition) {
        ("text", _) => Ok(AnswerFormat::Text),
        ("json_object", _) => Ok(AnswerFormat::JsonObject),
        ("json_schema", Some(SchemaDefinition { name, schema: Some(schema), strict }))
            if schema.get().starts_with('{') =>
        {
            let name = name.unwrap_or_else(|| "answer".to_owned());
            Ok(AnswerFormat::JsonSchema(JsonSchema { name, schema: schema.get().to_owned(), strict }))
        }
        ("json_schema", _) => wrong(format!("{setting} has no schema")),
        _ => wrong(format!("{setting} must be of type text, json_object or json_schema")),
    }
}

/// Reads `tool_choice`, which has the same meaning in both APIs.
///
/// # Errors
///
/// It wants a call, but the request has no such tool.
pub(super) fn tool_choice(choice: Option<&Value>, offered: &OfferedTools) -> Result<ToolChoice, HttpError> {
    let wrong = |message: String| Err(HttpError::bad_request(message).param("tool_choice"));
    let Some(choice) = choice else { return Ok(ToolChoice::Auto) };
    let function = choice["function"]["name"].as_str().or(choice["name"].as_str());
    match (choice.as_str(), choice["type"].as_str(), function) {
        (Some("auto" | "none"), ..) => Ok(ToolChoice::Auto),
        (Some("required"), ..) if offered.run_at_client() => Ok(ToolChoice::Required),
        (Some("required"), ..) => wrong("tool_choice is required, but the request has no tools".to_owned()),
        (None, Some("function"), Some(name)) if offered.has(name) => {
            Ok(ToolChoice::Function(name.to_owned()))
        }
        (None, Some("function"), Some(name)) => {
            let name: String = name.chars().take(64).collect();
            wrong(format!("tool_choice names `{name}`, which is not a tool of the request"))
        }
        _ => wrong("tool_choice must be auto, none, required or a function".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(request: Value) -> Result<AnswerOptions, HttpError> {
        let format =
            request.get("response_format").map(|format| serde_json::from_str(&format.to_string()).unwrap());
        let settings = serde_json::from_value::<ChatSettings>(request).unwrap();
        settings.check(chat_format(format)?, ToolChoice::Auto)
    }

    #[test]
    fn what_is_supported_is_passed_on() {
        let options = check(json!({
            "n": 1, "stop": "END", "seed": -7, "presence_penalty": -2, "frequency_penalty": 0.5, "logprobs": false,
            "logit_bias": {"15": -100}, "reasoning_effort": "low", "verbosity": "medium", "modalities": ["text"],
            "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": {}, "strict": true}},
        }));
        let options = options.unwrap();
        assert_eq!(options.used().count(), 7);
        assert_eq!((options.stop, options.seed), (vec!["END".to_owned()], Some(-7)));
        let schema = JsonSchema { name: "p".to_owned(), schema: "{}".to_owned(), strict: Some(true) };
        assert_eq!(options.format, AnswerFormat::JsonSchema(schema));
        assert_eq!(
            check(json!({"stop": [], "logit_bias": {}, "response_format": {"type": "text"}})).unwrap(),
            AnswerOptions::default()
        );
    }

    #[test]
    fn whole_numbers_are_read_as_clients_write_them() {
        let limit = |value: Value| {
            let limit = serde_json::from_value::<Option<Whole>>(value).map_err(|error| error.to_string())?;
            let none = SamplingSettings { temperature: None, top_p: None };
            none.check(limit).map(|sampling| sampling.max_tokens).map_err(|error| error.message)
        };
        for (written, read) in [
            (json!(null), None),
            (json!(-1), None),
            (json!(-1.0), None),
            (json!(50), Some(50)),
            (json!(50.0), Some(50)),
            (json!(1e30), Some(u32::MAX)),
            (json!(u64::MAX), Some(u32::MAX)),
        ] {
            assert_eq!(limit(written.clone()), Ok(read), "{written}");
        }
        for wrong in [json!(50.5), json!("50"), json!(0), json!(0.0), json!([]), json!(true)] {
            assert!(limit(wrong.clone()).is_err(), "{wrong}");
        }
        let options = check(json!({"n": 1.0, "seed": 7.0, "top_logprobs": -1})).unwrap();
        assert_eq!(options.seed, Some(7));
        assert!(check(json!({"n": null, "seed": null, "top_logprobs": null})).is_ok());
    }

    #[test]
    fn a_refusal_names_the_setting() {
        for (request, param) in [
            (json!({"n": 2}), "n"),
            (json!({"stop": ["a", "b", "c", "d", "e"]}), "stop"),
            (json!({"stop": ""}), "stop"),
            (json!({"presence_penalty": 3}), "presence_penalty"),
            (json!({"frequency_penalty": -3}), "frequency_penalty"),
            (json!({"logprobs": true}), "logprobs"),
            (json!({"top_logprobs": 2}), "top_logprobs"),
            (json!({"verbosity": "low"}), "verbosity"),
            (json!({"modalities": ["audio"]}), "modalities"),
            (json!({"functions": []}), "functions"),
            (json!({"response_format": {"type": "grammar"}}), "response_format"),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "p"}}}),
                "response_format",
            ),
        ] {
            let error = check(request).unwrap_err();
            assert_eq!((error.status.as_u16(), error.param), (400, Some(param)), "{error:?}");
            assert!(error.message.contains(param), "{error:?}");
        }
        let text = serde_json::from_str(r#"{"verbosity": "high"}"#).unwrap();
        assert_eq!(responses_format(Some(text)).unwrap_err().param, Some("text.verbosity"));
    }

    #[test]
    fn a_forced_call_needs_its_tool() {
        let none = OfferedTools::default();
        assert_eq!(tool_choice(Some(&json!("auto")), &none), Ok(ToolChoice::Auto));
        for choice in [
            json!("required"),
            json!({"type": "function", "function": {"name": "f"}}),
            json!({"type": "function", "name": "f"}),
            json!({"type": "allowed_tools"}),
            json!("any"),
            json!(5),
        ] {
            assert_eq!(tool_choice(Some(&choice), &none).unwrap_err().param, Some("tool_choice"), "{choice}");
        }
    }
}
