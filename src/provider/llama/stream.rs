//! Reads one answer from a response: a stream of events, or a whole document where a server cannot stream.

use std::time::{Duration, Instant};

use ureq::{Body, http::Response};

use super::{
    Timing,
    answer::Answer,
    http::Exchange,
    refusal::shown,
    sse::{LINE_LIMIT, Line, Lines},
};
use crate::provider::{Delta, ProviderError, Turn};

/// Bytes that one answer may have: 64 MiB.
const RESPONSE_LIMIT: u64 = 64 * 1024 * 1024;

/// Reads to the end and hands on the pieces.
///
/// # Errors
///
/// As for [`crate::provider::Provider::generate`].
pub fn answer(
    exchange: &Exchange<'_>,
    response: Response<Body>,
    timing: &Timing,
    mut answer: Answer,
    sink: &mut dyn FnMut(Delta),
) -> Result<Turn, ProviderError> {
    match content(&response)? {
        Content::Stream => stream(exchange, response, timing, answer, sink),
        Content::Whole => {
            answer.take(&exchange.whole(response, RESPONSE_LIMIT)?, sink)?;
            finished(answer, sink)
        }
    }
}

fn stream(
    exchange: &Exchange<'_>,
    mut response: Response<Body>,
    timing: &Timing,
    mut answer: Answer,
    sink: &mut dyn FnMut(Delta),
) -> Result<Turn, ProviderError> {
    let mut reader = response.body_mut().as_reader();
    let (mut lines, mut total, mut pace) = (Lines::default(), 0, Pace::default());
    loop {
        let count = match lines.fill(&mut reader) {
            Ok(count) => count,
            Err(_) if answer.finished() && !exchange.is_cancelled() => return Ok(answer.into_turn(sink)),
            Err(error) => return Err(exchange.broken(error.into(), answer.started())),
        };
        total += count as u64;
        if total > RESPONSE_LIMIT {
            return Err(ProviderError::Protocol(format!("the answer is over {RESPONSE_LIMIT} bytes")));
        }
        let before = answer.state();
        let done = read(&mut lines, &mut answer, count == 0, sink);
        let mut spoke = false;
        // What came before an error, too.
        answer.flush(&mut |delta| {
            spoke |= matches!(delta, Delta::Text(_) | Delta::Reasoning(_));
            sink(delta);
        });
        let done = done?;
        if exchange.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        if done || count == 0 && answer.finished() {
            return Ok(answer.into_turn(sink));
        }
        if count == 0 {
            exchange.still_there(answer.started())?;
            return finished(answer, sink);
        }
        match answer.state() {
            now if now == before => {} // comments and empty events keep nobody waiting for ever
            now if now.finished => exchange.patience.shorten(timing.last),
            now if !now.started => exchange.patience.renew(timing.first),
            _ if before.started => exchange.patience.renew(timing.between),
            _ => exchange.patience.shorten(timing.between),
        }
        if spoke {
            pace.wait();
        }
    }
}

/// Text that comes more often than this is a stream no eye can follow; it is read in larger pieces.
const PACE: Duration = Duration::from_millis(1);

/// Leaves a fast model a moment before the next read, so that its tokens share a message: what a token costs
/// on its way is mostly the waking of threads. One that comes alone is never held back.
#[derive(Default)]
struct Pace {
    spoke: Option<Instant>,
}

impl Pace {
    fn wait(&mut self) {
        let now = Instant::now();
        if self.spoke.replace(now).is_some_and(|last| now.duration_since(last) < PACE) {
            std::thread::sleep(PACE);
            self.spoke = Some(Instant::now());
        }
    }
}

/// Takes the complete lines. Says whether the server has said that it is done.
fn read(
    lines: &mut Lines,
    answer: &mut Answer,
    ended: bool,
    sink: &mut dyn FnMut(Delta),
) -> Result<bool, ProviderError> {
    let too_long = |_| ProviderError::Protocol(format!("a line of the answer is over {LINE_LIMIT} bytes"));
    while let Some(line) = lines.next_line().map_err(too_long)? {
        match Line::parse(line) {
            Line::Data(event) => answer.take(event, sink)?,
            Line::Done => return Ok(true),
            Line::Other => {}
        }
    }
    if !ended {
        return Ok(false);
    }
    match Line::parse(lines.rest()) {
        // A torn last event is not worth an error of its own: the missing ending is one.
        Line::Data(event) if serde_json::from_slice::<serde::de::IgnoredAny>(event).is_ok() => {
            answer.take(event, sink)?;
            Ok(false)
        }
        Line::Done => Ok(true),
        Line::Data(_) | Line::Other => Ok(false),
    }
}

fn finished(answer: Answer, sink: &mut dyn FnMut(Delta)) -> Result<Turn, ProviderError> {
    if answer.finished() {
        Ok(answer.into_turn(sink))
    } else {
        Err(ProviderError::Protocol("it ended before it was finished".to_owned()))
    }
}

enum Content {
    Stream,
    /// A server that does not stream although it was asked to.
    Whole,
}

fn content(response: &Response<Body>) -> Result<Content, ProviderError> {
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let encoding = header("content-encoding");
    if !matches!(encoding, "" | "identity") {
        return Err(ProviderError::Protocol(format!(
            "it is encoded as `{}`, which was not asked for",
            shown(encoding)
        )));
    }
    let kind = header("content-type").to_ascii_lowercase();
    match kind.split(';').next().unwrap_or("").trim() {
        "text/event-stream" | "" => Ok(Content::Stream),
        "application/json" => Ok(Content::Whole),
        other => Err(ProviderError::Protocol(format!("it is `{}`, not a stream of events", shown(other)))),
    }
}
