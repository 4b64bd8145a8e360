//! Responses: JSON, errors, event streams, and the headers that all of them have.

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

/// The body of any response.
pub(super) type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;
pub(super) type HttpResponse = Response<ResponseBody>;

/// An error that is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// The member of the request that is wrong. Only OpenAI's APIs send it.
    pub(super) param: Option<&'static str>,
    /// A name for the kind of error. Only OpenAI's APIs send it.
    pub(super) code: Option<&'static str>,
    /// The seconds after which the client may ask again.
    pub(super) retry_after: Option<u32>,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        Self { status, message: message.into(), param: None, code: None, retry_after }
    }

    #[must_use]
    pub(super) fn param(self, name: &'static str) -> Self {
        Self { param: Some(name), ..self }
    }

    #[must_use]
    pub(super) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Makes the error for an unknown path, with the text of the original server. Source: Kolosal seed, "Error Handling".
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    /// Makes the error for a failure inside the daemon. The client gets no details.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    }

    /// Makes a response with the body `{"error": MESSAGE}`.
    pub(super) fn to_response(&self) -> HttpResponse {
        self.with_body(&json!({"error": self.message}))
    }

    /// Makes a response with the given JSON body.
    pub(super) fn with_body(&self, body: &impl Serialize) -> HttpResponse {
        let mut response = json(self.status, body);
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Makes a response of compact JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> HttpResponse {
    let bytes = serde_json::to_vec(value).expect("answers are made of strings and numbers");
    let mut response = full(status, "application/json; charset=utf-8", bytes);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn ok(value: &impl Serialize) -> HttpResponse {
    json(StatusCode::OK, value)
}

/// Makes a response without a body.
pub(super) fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Makes a response whose body is known in full.
pub(super) fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Makes a response of server-sent events.
pub(super) fn event_stream(
    events: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> HttpResponse {
    let mut response = Response::new(events.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Adds a header with a notice for the person behind the client. The bodies of the APIs have no place for one.
pub(super) fn add_notice(response: &mut HttpResponse, notice: Option<&'static str>) {
    if let Some(notice) = notice {
        response.headers_mut().insert("kontekst-notice", HeaderValue::from_static(notice));
    }
}

/// Adds the CORS headers of the seed. They allow the origin of the request, or `*` if it has none, which is harmless,
/// because browsers always send an origin across sites.
pub(super) fn add_cors_headers(response: &mut HttpResponse, policy: &AccessPolicy, admission: &Admission) {
    if !policy.cors {
        return;
    }
    let headers = response.headers_mut();
    let origin = match &admission.origin {
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

/// A body that polls a function for one chunk after another. `None` ends the body.
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
        (self.get_mut().0)(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }
}
