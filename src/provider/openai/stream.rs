//! Reads one answer from a response: a stream of events, or one document from a server that does not stream.

use std::time::{Duration, Instant};

use ureq::{Body, http::Response};

use super::{
    Timing,
    error_response::single_line,
    http::Exchange,
    sse::{LINE_LIMIT, LineReader, READ, SseLine},
    turn_builder::TurnBuilder,
};
use crate::provider::{Delta, ProviderError, Turn};

/// The largest answer in bytes: 64 MiB.
const RESPONSE_LIMIT: u64 = 64 * 1024 * 1024;

/// Reads the response to its end and passes the deltas to `sink`.
///
/// # Errors
///
/// As for [`crate::provider::Provider::generate`].
pub(super) fn read_turn(
    exchange: &Exchange<'_>,
    response: Response<Body>,
    timing: &Timing,
    mut builder: TurnBuilder,
    sink: &mut dyn FnMut(Delta),
) -> Result<Turn, ProviderError> {
    match body_kind(&response)? {
        BodyKind::Stream => read_stream(exchange, response, timing, builder, sink),
        BodyKind::Whole => {
            builder.push_event(&exchange.read_body(response, RESPONSE_LIMIT)?, sink)?;
            finish(builder, sink)
        }
    }
}

fn read_stream(
    exchange: &Exchange<'_>,
    mut response: Response<Body>,
    timing: &Timing,
    mut builder: TurnBuilder,
    sink: &mut dyn FnMut(Delta),
) -> Result<Turn, ProviderError> {
    let mut reader = response.body_mut().as_reader();
    let (mut lines, mut total, mut pace) = (LineReader::default(), 0, ReadThrottle::default());
    loop {
        let count = match lines.fill(&mut reader) {
            Ok(count) => count,
            Err(_) if builder.finished() && !exchange.is_cancelled() => return Ok(builder.into_turn(sink)),
            Err(error) => return Err(exchange.explain(error.into(), builder.started())),
        };
        total += count as u64;
        if total > RESPONSE_LIMIT {
            return Err(ProviderError::Protocol(format!("the answer is over {RESPONSE_LIMIT} bytes")));
        }
        let before = builder.state();
        let done = read_lines(&mut lines, &mut builder, count == 0, sink);
        let mut spoke = false;
        // Also what arrived before an error.
        builder.flush(&mut |delta| {
            spoke |= matches!(delta, Delta::Text(_) | Delta::Reasoning(_));
            sink(delta);
        });
        let done = done?;
        if exchange.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        if done || count == 0 && builder.finished() {
            return Ok(builder.into_turn(sink));
        }
        if count == 0 {
            exchange.check_connected(builder.started())?;
            return finish(builder, sink);
        }
        match builder.state() {
            now if now == before => {} // comments and empty events do not count as progress
            now if now.finished => exchange.watchdog.reset_shorter(timing.after_finish),
            now if !now.started => exchange.watchdog.reset(timing.first_token),
            _ if before.started => exchange.watchdog.reset(timing.between_tokens),
            _ => exchange.watchdog.reset_shorter(timing.between_tokens),
        }
        // A large read has probably left something behind. Waiting would only let the socket fill up.
        if spoke && count < READ / 2 {
            pace.wait();
        }
    }
}

/// Text that arrives at shorter intervals than this is read in larger pieces: no reader could follow it anyway.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(1);

/// Waits a moment between two reads from a fast model, so that several tokens share a message: most of the cost of a
/// token is waking threads. A token that arrives alone is never delayed.
#[derive(Default)]
struct ReadThrottle {
    spoke: Option<Instant>,
}

impl ReadThrottle {
    fn wait(&mut self) {
        let now = Instant::now();
        if self.spoke.replace(now).is_some_and(|last| now.duration_since(last) < MIN_READ_INTERVAL) {
            std::thread::sleep(MIN_READ_INTERVAL);
            self.spoke = Some(Instant::now());
        }
    }
}

/// Passes the events of all complete lines to `builder`. Returns true if the server has sent `[DONE]`.
fn read_lines(
    lines: &mut LineReader,
    builder: &mut TurnBuilder,
    ended: bool,
    sink: &mut dyn FnMut(Delta),
) -> Result<bool, ProviderError> {
    let too_long = |_| ProviderError::Protocol(format!("a line of the answer is over {LINE_LIMIT} bytes"));
    while let Some(line) = lines.next_line().map_err(too_long)? {
        match SseLine::parse(line) {
            SseLine::Data(event) => builder.push_event(event, sink)?,
            SseLine::Done => return Ok(true),
            SseLine::Other => {}
        }
    }
    if !ended {
        return Ok(false);
    }
    match SseLine::parse(lines.remainder()) {
        // A truncated last event needs no error of its own: the missing finish reason is one.
        SseLine::Data(event) if serde_json::from_slice::<serde::de::IgnoredAny>(event).is_ok() => {
            builder.push_event(event, sink)?;
            Ok(false)
        }
        SseLine::Done => Ok(true),
        SseLine::Data(_) | SseLine::Other => Ok(false),
    }
}

fn finish(builder: TurnBuilder, sink: &mut dyn FnMut(Delta)) -> Result<Turn, ProviderError> {
    if builder.finished() {
        Ok(builder.into_turn(sink))
    } else {
        Err(ProviderError::Protocol("it ended before it was finished".to_owned()))
    }
}

enum BodyKind {
    Stream,
    /// One JSON document, from a server that does not stream although it was asked to.
    Whole,
}

fn body_kind(response: &Response<Body>) -> Result<BodyKind, ProviderError> {
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let encoding = header("content-encoding");
    if !matches!(encoding, "" | "identity") {
        return Err(ProviderError::Protocol(format!(
            "it is encoded as `{}`, which was not asked for",
            single_line(encoding)
        )));
    }
    let kind = header("content-type").to_ascii_lowercase();
    match kind.split(';').next().unwrap_or("").trim() {
        "text/event-stream" | "" => Ok(BodyKind::Stream),
        "application/json" => Ok(BodyKind::Whole),
        other => {
            Err(ProviderError::Protocol(format!("it is `{}`, not a stream of events", single_line(other))))
        }
    }
}
