//! Answers: JSON, errors, event streams, and the headers that all of them carry.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::body::Bytes;
use serde::Serialize;
use serde_json::json;

use super::access::{AccessPolicy, Admission};

/// The body of any answer.
pub(super) type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;
pub(super) type HttpResponse = Response<ResponseBody>;

/// A request that cannot be served: what the client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpError {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Source: Kolosal seed, "Error Handling"; the text is what the original sends.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    /// Work that broke off; the log has it.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    }

    /// `{"error": MESSAGE}`.
    pub(super) fn to_response(&self) -> HttpResponse {
        self.with_body(&json!({"error": self.message}))
    }

    /// The fault with a body of another shape.
    pub(super) fn with_body(&self, body: &impl Serialize) -> HttpResponse {
        let mut answer = json(self.status, body);
        match self.status {
            StatusCode::UNAUTHORIZED => {
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        answer
    }
}

/// Compact JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> HttpResponse {
    let bytes = serde_json::to_vec(value).expect("answers are made of strings and numbers");
    let mut answer = full(status, "application/json; charset=utf-8", bytes);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

pub(super) fn ok(value: &impl Serialize) -> HttpResponse {
    json(StatusCode::OK, value)
}

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> HttpResponse {
    let mut answer = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *answer.status_mut() = status;
    answer
}

/// A body that is there in full.
pub(super) fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Server-sent events, as `events` makes them.
pub(super) fn event_stream(
    events: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> HttpResponse {
    let mut answer = Response::new(events.boxed_unsync());
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Adds the seed's CORS headers. A page whose origin passed the gate is named; `*` goes to those who sent no
/// origin, which no browser reads across sites.
pub(super) fn add_cors_headers(answer: &mut HttpResponse, gate: &AccessPolicy, pass: &Admission) {
    if !gate.cors {
        return;
    }
    let headers = answer.headers_mut();
    let origin = match &pass.origin {
        Some(origin) => {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
            origin.clone()
        }
        None => HeaderValue::from_static("*"),
    };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET,POST,OPTIONS"));
    let allowed = HeaderValue::from_static("Content-Type, Authorization");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
}

/// Makes a body of a function that is polled for pieces; `None` ends it.
pub(super) struct PolledBody<F>(pub(super) F);

impl<F> Body for PolledBody<F>
where
    F: FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Unpin,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        (self.get_mut().0)(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
