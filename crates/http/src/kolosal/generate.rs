//! `POST /v1/generate`.

use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;

use kontekst_agent::{History, Prompt, StartRun};

use super::{
    super::{
        HttpDoor,
        approval::tool_options,
        events,
        response::{self, HttpError, HttpResponse, PolledBody},
    },
    content,
    transcript::{HistoryPart, Item, Transcript},
};

/// The maximum length of a `prompt_id`, in characters.
const ID_LIMIT: usize = 256;

/// A valid request. Source: Kolosal seed, "POST /v1/generate".
///
/// Other members of the JSON are ignored. In particular, clients cannot set a base URL, key, model or directory.
#[derive(Debug)]
struct GenerateRequest {
    input: String,
    stream: bool,
    prompt_id: String,
    history: Vec<Box<RawValue>>,
}

/// The body of a response that is not streamed.
#[derive(Serialize)]
struct GenerateResponse<'a> {
    output: &'a str,
    prompt_id: &'a str,
    messages: &'a [Item],
    history: Vec<HistoryPart<'a>>,
}

/// Runs the prompt of a request, and answers with a stream of events or with one JSON value.
pub(in super::super) async fn generate(door: &HttpDoor, body: &[u8]) -> Result<HttpResponse, HttpError> {
    let request = parse(body)?;
    let permit = door.reserve_run()?;
    let messages = content::messages(&request.history).map_err(HttpError::bad_request)?;
    let mut transcript = Transcript::new(door.approver(), &request.input, request.history);
    let start = StartRun {
        prompt: Prompt::Text(request.input),
        history: History::Provided(messages),
        tools: tool_options(&door.core.config().http),
        ..StartRun::default()
    };
    let notice = door.notice(&start);
    let run = door.core.start(start);
    let mut response = if request.stream {
        response::event_stream(PolledBody(events::run_body(run, transcript, permit)))
    } else {
        events::drain_run(run, &mut transcript).await;
        if let Some(Err(message)) = &transcript.ending {
            return Err(HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, message));
        }
        response::ok(&GenerateResponse {
            output: &transcript.output,
            prompt_id: &request.prompt_id,
            messages: &transcript.items,
            history: transcript.history(),
        })
    };
    response::add_notice(&mut response, notice);
    if let Ok(id) = HeaderValue::from_str(&request.prompt_id) {
        response.headers_mut().insert("x-prompt-id", id);
    }
    Ok(response)
}

fn parse(body: &[u8]) -> Result<GenerateRequest, HttpError> {
    let missing = || HttpError::bad_request("Missing required field: input");
    let invalid =
        |error: &dyn std::fmt::Display| HttpError::bad_request(format!("Invalid JSON body: {error}"));
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(missing());
    }
    let text = std::str::from_utf8(body).map_err(|error| invalid(&error))?;
    let document: &RawValue = serde_json::from_str(text).map_err(|error| invalid(&error))?;
    if !document.get().starts_with('{') {
        return Err(missing());
    }
    let members: std::collections::HashMap<String, &RawValue> =
        serde_json::from_str(document.get()).map_err(|error| invalid(&error))?;
    let member = |name: &str| members.get(name).copied().map(RawValue::get).filter(|text| *text != "null");
    let invalid_field =
        |name: &str, kind: &str| HttpError::bad_request(format!("Invalid field: {name} must be {kind}"));

    let input: String = match member("input") {
        None => return Err(missing()),
        Some(text) => serde_json::from_str(text).map_err(|_| invalid_field("input", "a string"))?,
    };
    if input.is_empty() {
        return Err(missing());
    }
    let stream = match member("stream") {
        None => false,
        Some(text) => serde_json::from_str(text).map_err(|_| invalid_field("stream", "true or false"))?,
    };
    let prompt_id: String = match member("prompt_id") {
        None => String::new(),
        Some(text) => serde_json::from_str(text).map_err(|_| invalid_field("prompt_id", "a string"))?,
    };
    if prompt_id.chars().count() > ID_LIMIT || prompt_id.chars().any(char::is_control) {
        return Err(invalid_field("prompt_id", "at most 256 characters, none of them a control character"));
    }
    let prompt_id = if prompt_id.is_empty() { uuid::Uuid::new_v4().to_string() } else { prompt_id };
    let history = match member("history") {
        None => Vec::new(),
        Some(text) => {
            serde_json::from_str(text).map_err(|_| invalid_field("history", "an array of Content"))?
        }
    };
    Ok(GenerateRequest { input, stream, prompt_id, history })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_requests_name_the_mistake() {
        let missing = "Missing required field: input";
        for body in [
            "",
            " \n",
            "{}",
            "null",
            "[]",
            "\"x\"",
            "5",
            r#"{"input":""}"#,
            r#"{"input":null,"stream":true}"#,
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap_err(), HttpError::bad_request(missing), "{body}");
        }
        for body in
            [&b"{bad"[..], b"{\"input\":\"\xff\"}", b"\xef\xbb\xbf{\"input\":\"x\"}", b"{\"input\":\"x\"} x"]
        {
            assert!(parse(body).unwrap_err().message.starts_with("Invalid JSON body: "));
        }
        for (member, value) in [
            ("input", "5"),
            ("input", "[]"),
            ("input", "{}"),
            ("input", "true"),
            ("stream", "\"yes\""),
            ("stream", "1"),
            ("prompt_id", "{}"),
            ("prompt_id", "5"),
            ("prompt_id", "\"a\\r\\nb\""),
            ("history", "{}"),
            ("history", "\"x\""),
        ] {
            let body = format!(r#"{{"input":"x","{member}":{value}}}"#);
            let error = parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.status, StatusCode::BAD_REQUEST);
            assert!(error.message.starts_with(&format!("Invalid field: {member}")), "{body}: {error:?}");
        }
        let nested = format!(r#"{{"input":"x","deep":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(parse(nested.as_bytes()).unwrap().input, "x");
    }

    #[test]
    fn unknown_members_are_ignored_and_the_last_of_two_counts() {
        let body = br#"{"input":"a","input":"b","model":"m","api_key":"k","base_url":"u","working_directory":"/x","stream":null}"#;
        let request = parse(body).unwrap();
        assert_eq!((request.input.as_str(), request.stream), ("b", false));
        assert!(!request.prompt_id.is_empty());
        assert_eq!(parse(br#"{"input":" ","prompt_id":"p1"}"#).unwrap().prompt_id, "p1");
    }
}
