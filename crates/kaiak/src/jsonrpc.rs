//! Parses JSON-RPC messages and encodes responses. Pure.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::{
    error::{Code, RpcError},
    framing::encode,
};

/// The deepest nesting. Source: the limit of serde_json, which parses the inner parts.
const MAX_DEPTH: usize = 128;

/// The longest id, in bytes. It is repeated in the response.
const MAX_ID: usize = 1024;

/// The id of a request, as the JSON text that the client sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(String);

impl Id {
    pub(super) fn null() -> Self {
        Self("null".to_owned())
    }
}

/// A message of the client. `params` is the JSON text of an object or an array.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Request {
        id: Id,
        method: String,
        params: Option<&'a str>,
    },
    Notification {
        method: String,
        params: Option<&'a str>,
    },
    /// A response. The server makes no requests, so it is ignored.
    Response,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Deserializes `null` as a value, so that it differs from an absent field.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Parses one message body. Takes no more memory than the body, whatever it contains.
///
/// # Errors
///
/// The error, and the id of the response that reports it.
pub(super) fn parse(body: &[u8]) -> Result<Message<'_>, (Id, RpcError)> {
    let unreadable = || (Id::null(), Code::Parse.into());
    if nesting_depth(body) > MAX_DEPTH {
        return Err(unreadable());
    }
    let whole: &RawValue = serde_json::from_slice(body).map_err(|_| unreadable())?;
    let invalid = |id: &Option<Id>, why: &str| {
        let id = id.clone().unwrap_or_else(Id::null);
        (id, Code::InvalidRequest.with(serde_json::json!({"reason": why})))
    };
    if !whole.get().starts_with('{') {
        return Err(invalid(&None, "a message is one object"));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(whole.get()).map_err(|_| invalid(&None, "a field is given twice"))?;
    let id = match envelope.id.map(RawValue::get) {
        None => None,
        Some(id) if id.starts_with(['{', '[', 't', 'f']) || id.len() > MAX_ID => {
            return Err(invalid(&None, "an id is a string or a number"));
        }
        Some(id) => Some(Id(id.to_owned())),
    };
    if envelope.jsonrpc.and_then(text).as_deref() != Some("2.0") {
        return Err(invalid(&id, "jsonrpc is \"2.0\""));
    }
    if envelope.method.is_none() && (envelope.result.is_some() || envelope.error.is_some()) {
        return Ok(Message::Response);
    }
    let Some(method) = envelope.method.and_then(text).filter(|method| !method.is_empty()) else {
        return Err(invalid(&id, "method is a string"));
    };
    let params = match envelope.params.map(RawValue::get) {
        // Some editors send this with `shutdown` and `exit`.
        Some("null") if !method.starts_with("kaiak/") => None,
        Some(params) if !params.starts_with(['{', '[']) => {
            return Err(invalid(&id, "params is an object"));
        }
        params => params,
    };
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Returns how deeply brackets are nested. Brackets in strings do not count.
fn nesting_depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Encodes the frame of a response.
pub(super) fn encode_response(id: &Id, outcome: &Result<Value, RpcError>) -> Vec<u8> {
    let (name, value) = match outcome {
        Ok(result) => ("result", result.to_string()),
        Err(error) => ("error", error.json().to_string()),
    };
    encode(format!("{{\"jsonrpc\":\"2.0\",\"{name}\":{value},\"id\":{}}}", id.0).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> (String, i32) {
        let (id, error) = parse(body.as_bytes()).unwrap_err();
        (id.0, error.code as i32)
    }

    #[test]
    fn each_kind_of_invalid_message_has_its_code() {
        let deep = "[".repeat(100_000);
        let closed = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let long = format!(r#"{{"jsonrpc":"2.0","method":"a","id":"{}"}}"#, "x".repeat(2000));
        for (body, id, code) in [
            (r#"{"jsonrpc":"2.0","id":1,"#, "null", -32700),
            ("", "null", -32700),
            (&deep, "null", -32700),
            (&closed, "null", -32700),
            ("42", "null", -32600),
            ("\"x\"", "null", -32600),
            ("null", "null", -32600),
            ("{}", "null", -32600),
            ("[]", "null", -32600),
            (r#"[{"jsonrpc":"2.0","method":"a","id":1}]"#, "null", -32600),
            (r#"{"jsonrpc":"1.0","method":"a","id":7}"#, "7", -32600),
            (r#"{"method":"a","id":7}"#, "7", -32600),
            (r#"{"jsonrpc":"2.0","id":8}"#, "8", -32600),
            (r#"{"jsonrpc":"2.0","method":5,"id":9}"#, "9", -32600),
            (r#"{"jsonrpc":"2.0","method":"","id":"é"}"#, "\"é\"", -32600),
            (r#"{"jsonrpc":"2.0","method":"a","id":{}}"#, "null", -32600),
            (r#"{"jsonrpc":"2.0","method":"a","id":[1]}"#, "null", -32600),
            (r#"{"jsonrpc":"2.0","method":"a","id":true}"#, "null", -32600),
            (r#"{"jsonrpc":"2.0","method":"a","id":1,"params":5}"#, "1", -32600),
            (r#"{"jsonrpc":"2.0","method":"kaiak/session/status","id":1,"params":null}"#, "1", -32600),
            (r#"{"jsonrpc":"2.0","method":"a","id":1,"id":2}"#, "null", -32600),
            (&long, "null", -32600),
        ] {
            let start: String = body.chars().take(80).collect();
            assert_eq!(refused(body), (id.to_owned(), code), "{start}");
        }
        let (id, error) = parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\",\"id\":1}").unwrap_err();
        assert_eq!((id, error.code), (Id::null(), Code::Parse));
    }

    #[test]
    fn requests_keep_their_id_and_notifications_have_none() {
        for id in ["0", "-1", "9007199254740993", "\"\"", "\"é\"", "null", "1.5"] {
            let body =
                format!(r#"{{"id":{id},"params":{{"a":[1]}},"method":"m","extra":1,"jsonrpc":"2.0"}}"#);
            let Ok(Message::Request { id: read, method, params }) = parse(body.as_bytes()) else {
                panic!("{id}");
            };
            assert_eq!((read.0.as_str(), method.as_str(), params), (id, "m", Some(r#"{"a":[1]}"#)));
            let sent = encode_response(&read, &Ok(Value::Null));
            assert!(String::from_utf8(sent).unwrap().ends_with(&format!("\"id\":{id}}}")));
        }
        let notification = parse(br#"{"jsonrpc":"2.0","method":"exit","params":null}"#);
        assert_eq!(notification, Ok(Message::Notification { method: "exit".to_owned(), params: None }));
        assert_eq!(parse(br#"{"jsonrpc":"2.0","id":1,"result":null}"#), Ok(Message::Response));
    }

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        assert_eq!(nesting_depth(br#"{"a": "[[[\"[[", "b": [[]]}"#), 3);
    }
}
