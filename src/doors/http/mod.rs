//! The HTTP door: the Kolosal API with its events, OpenAI-compatible endpoints, and a page for people.
//!
//! One listener for all three. `access.rs` decides on the head of each request, before its body is read.

mod access;
mod approval;
mod body;
mod events;
mod kolosal;
mod openai;
mod response;
mod web;

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, StatusCode, header, request::Parts};
use hyper::{
    body::Incoming,
    rt::{Read, Write},
    service::service_fn,
};
use hyper_util::rt::TokioTimer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::agent::AgentCore;

pub use access::{AccessPolicy, Caller};
use access::{Admission, Refusal};
use approval::Approver;
use response::{HttpError, HttpResponse};

/// Runs of this door that may go on at once; more are told to come back.
const MAX_RUNS: usize = 256;

/// Time for the head of a request, also the longest rest of a connection between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes; a longer one is answered with 431.
const HEAD_LIMIT: usize = 16 * 1024;

/// Serves HTTP/1.1 on connections that the listener has accepted and checked.
pub struct HttpDoor {
    core: AgentCore,
    gate: AccessPolicy,
    runs: Arc<Semaphore>,
}

impl HttpDoor {
    pub fn new(core: AgentCore, gate: AccessPolicy) -> Arc<Self> {
        Arc::new(Self { core, gate, runs: Arc::new(Semaphore::new(MAX_RUNS)) })
    }

    /// Serves one connection until its client or this process ends it.
    pub async fn serve(self: Arc<Self>, io: impl Read + Write + Unpin, caller: Caller) {
        let service = service_fn(|request: Request<Incoming>| {
            let door = Arc::clone(&self);
            async move { Ok::<_, Infallible>(door.respond(caller, request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_LIMIT)
            .serve_connection(io, service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            biased;
            () = self.core.stopped() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            ended = &mut connection => ended,
        };
        if let Err(error) = ended {
            tracing::debug!("http connection ended: {error}");
        }
    }

    async fn respond(&self, caller: Caller, request: Request<Incoming>) -> HttpResponse {
        let (head, body) = request.into_parts();
        let pass = match self.gate.check(caller, &head.method, &head.uri, &head.headers) {
            Ok(pass) => pass,
            Err(refusal) => return refused(refusal),
        };
        let mut answer = match self.route(&head, &pass, body).await {
            Ok(answer) => answer,
            Err(fault) if openai::is_openai_path(head.uri.path()) => openai::error_response(&fault),
            Err(fault) => fault.to_response(),
        };
        response::add_cors_headers(&mut answer, &self.gate, &pass);
        answer
    }

    /// Exact paths and methods; everything else is not found, as in the original.
    async fn route(&self, head: &Parts, pass: &Admission, body: Incoming) -> Result<HttpResponse, HttpError> {
        if head.method == Method::OPTIONS {
            return Ok(response::empty(StatusCode::NO_CONTENT));
        }
        let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
        let path = head.uri.path();
        match (method.as_str(), path) {
            ("GET", "/healthz") => Ok(response::ok(&kolosal::health())),
            ("GET", "/status") => Ok(response::ok(&kolosal::status())),
            ("POST", "/v1/generate") => {
                kolosal::generate(self, &body::read_json(&head.headers, body).await?).await
            }
            ("GET", "/v1/models") => Ok(response::ok(&openai::models(&self.core).await?)),
            ("POST", "/v1/chat/completions") => {
                openai::chat(self, &body::read_json(&head.headers, body).await?).await
            }
            ("POST", "/v1/responses") => {
                openai::responses(self, &body::read_json(&head.headers, body).await?).await
            }
            ("GET", _) if path.strip_prefix("/v1/models/").is_some() => {
                Ok(response::ok(&openai::model(&self.core, &path["/v1/models/".len()..]).await?))
            }
            (method, _) if path.starts_with("/api/") => {
                if !pass.token {
                    return Err(HttpError::new(StatusCode::UNAUTHORIZED, "Unauthorized"));
                }
                web::api(self, method, path, &head.headers, body).await
            }
            ("GET", _) => web::page_file(path).ok_or_else(HttpError::not_found),
            _ => Err(HttpError::not_found()),
        }
    }

    fn approver(&self) -> Approver {
        Approver::new(&self.core)
    }

    /// The right to start one more run.
    fn reserve_run(&self) -> Result<OwnedSemaphorePermit, HttpError> {
        Arc::clone(&self.runs)
            .try_acquire_owned()
            .map_err(|_| HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "Server busy"))
    }
}

/// No CORS headers: a page that was refused may not even read that.
fn refused(refusal: Refusal) -> HttpResponse {
    let status = match refusal {
        Refusal::MissingHost => StatusCode::BAD_REQUEST,
        Refusal::Host | Refusal::Origin => StatusCode::FORBIDDEN,
        Refusal::Token => StatusCode::UNAUTHORIZED,
    };
    let mut answer = HttpError::new(status, refusal.to_string()).to_response();
    // The body was not read, so what follows on this connection could be anything.
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}
