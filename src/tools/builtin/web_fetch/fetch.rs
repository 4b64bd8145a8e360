//! Sends a request and follows where it leads.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use ureq::{
    Agent, Body,
    http::{self, StatusCode},
    unversioned::{resolver::Resolver, transport::DefaultConnector},
};
use url::Url;

use super::{
    gate::{Gate, NotPublic, OwnDoor},
    page::Page,
    request::{Method, Request, check_url},
};

/// Redirects that one call follows.
const MAX_HOPS: usize = 5;
/// Largest head of an answer, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// What one call may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For all hops together.
    pub time: Duration,
    /// Of a body, decoded.
    pub bytes: u64,
}

/// A client that goes through the gate, keeps no connection and no cookie, and uses no proxy, whatever
/// the environment says.
pub fn agent<R: Resolver>(gate: Gate<R>, limits: Limits) -> Agent {
    let config = Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_global(Some(limits.time))
        .max_response_header_size(MAX_HEAD)
        .max_idle_connections(0)
        .user_agent(concat!("kontekst/", env!("CARGO_PKG_VERSION")))
        .build();
    Agent::with_parts(config, DefaultConnector::default(), gate)
}

/// Fetches a page. Each redirect is checked like the first URL.
///
/// # Errors
///
/// One sentence for the model. An answer of any status is not an error.
pub fn fetch(agent: &Agent, request: &Request, limits: Limits) -> Result<Page, String> {
    let started = Instant::now();
    let mut url = request.url.clone();
    for hop in 0..=MAX_HOPS {
        let left = limits.time.saturating_sub(started.elapsed());
        let answer = send(agent, request, &url, left).map_err(|error| error_message(&error, &url, limits))?;
        let Some(next) = redirect(&answer, &url)? else {
            let moved_to = (hop > 0).then(|| url.to_string());
            let page = read_page(answer, limits).map_err(|error| error_message(&error, &url, limits))?;
            return Ok(Page { redirected_to: moved_to, note: request.note(), ..page });
        };
        url = next;
    }
    Err(format!("more than {MAX_HOPS} redirects"))
}

fn send(
    agent: &Agent,
    request: &Request,
    url: &Url,
    left: Duration,
) -> Result<http::Response<Body>, ureq::Error> {
    let call = match request.method {
        Method::Get => agent.get(url.as_str()),
        Method::Head => agent.head(url.as_str()),
    };
    let headers = [("accept", &request.accept), ("accept-language", &request.accept_language)];
    let call = headers.into_iter().fold(call, |call, (name, value)| match value {
        Some(value) => call.header(name, value),
        None => call,
    });
    call.config().timeout_global(Some(left)).build().call()
}

/// Where an answer sends us, if it does.
fn redirect(answer: &http::Response<Body>, from: &Url) -> Result<Option<Url>, String> {
    let moved = matches!(
        answer.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = answer.headers().get(http::header::LOCATION).filter(|_| moved) else {
        return Ok(None);
    };
    let location = location.to_str().map_err(|_| "the redirect is not a valid url".to_owned())?;
    let to = from.join(location).map_err(|_| "the redirect is not a valid url".to_owned())?;
    let to = check_url(to).map_err(|why| format!("redirect refused: {why}"))?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(format!("redirect refused: it leaves https for {to}"));
    }
    Ok(Some(to))
}

fn read_page(answer: http::Response<Body>, limits: Limits) -> Result<Page, ureq::Error> {
    let (head, body) = answer.into_parts();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let status = head.status.canonical_reason().unwrap_or_default();
    let status = format!("{} {status}", head.status.as_str()).trim_end().to_owned();
    let encoding =
        header(http::header::CONTENT_ENCODING).filter(|name| !name.eq_ignore_ascii_case("identity"));
    let mut bytes = Vec::new();
    // The limit is on what comes out of the decoder; one byte more tells that there was more.
    body.into_reader().take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    let truncated = bytes.len() as u64 > limits.bytes;
    bytes.truncate(usize::try_from(limits.bytes).unwrap_or(usize::MAX));
    Ok(Page {
        status,
        content_type: header(http::header::CONTENT_TYPE),
        encoding,
        body: bytes,
        truncated,
        ..Page::default()
    })
}

fn error_message(error: &ureq::Error, url: &Url, limits: Limits) -> String {
    let host = url.host_str().unwrap_or_default();
    let inner = match error {
        ureq::Error::Io(io) => io.get_ref(),
        _ => None,
    };
    if let Some(refused) = inner.and_then(|inner| inner.downcast_ref::<NotPublic>()) {
        return refused.to_string();
    }
    if let Some(refused) = inner.and_then(|inner| inner.downcast_ref::<OwnDoor>()) {
        return refused.to_string();
    }
    // An error of reading the body comes wrapped once more.
    let timed_out = |e: &ureq::Error| matches!(e, ureq::Error::Timeout(_));
    if timed_out(error) || inner.and_then(|e| e.downcast_ref::<ureq::Error>()).is_some_and(timed_out) {
        return format!("{host} did not answer in full within {} s", limits.time.as_secs());
    }
    format!("cannot fetch from {host}: {error}")
}
