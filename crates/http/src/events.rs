//! Server-sent events: their form on the wire, and the body that streams the events of a run.

use std::task::{Context, Poll};

use hyper::body::Bytes;
use serde::Serialize;

use tokio::sync::OwnedSemaphorePermit;

use kontekst_agent::{Run, protocol::Event};

/// A batch of events is sent when it has this many bytes, even if more events are ready.
const BATCH_BYTES: usize = 64 * 1024;

/// Appends an event whose data is plain text.
///
/// A line feed becomes the two characters `\n`, as the Kolosal seed requires. A carriage return becomes `\r`, because it
/// ends a line as well and text could forge an event with it.
pub(super) fn text(out: &mut Vec<u8>, name: &str, data: &str) {
    out.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    for byte in data.bytes() {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => out.push(byte),
        }
    }
    out.extend_from_slice(b"\n\n");
}

/// Appends an event whose data is JSON, which has no line breaks.
pub(super) fn json(out: &mut Vec<u8>, name: &str, data: &impl Serialize) {
    out.extend_from_slice(format!("event: {name}\n").as_bytes());
    unnamed(out, data);
}

/// Appends an event without a name, as in OpenAI's chat completions.
pub(super) fn unnamed(out: &mut Vec<u8>, data: &impl Serialize) {
    out.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *out, data).expect("events are made of strings and numbers");
    out.extend_from_slice(b"\n\n");
}

/// Encodes the events of a run in one API's form.
pub(super) trait EventEncoder: Send + Unpin {
    /// Handles one event: decides on proposed tool calls, and appends the bytes for the client to `out`. Returns true
    /// if the response is complete. A run that is still active is then cancelled.
    fn handle_event(&mut self, event: Event, run: &Run, out: &mut Vec<u8>) -> bool;
}

/// A run of which something may have been encoded already.
pub(super) struct BegunRun {
    /// The part that is sent first.
    first: Vec<u8>,
    /// `None` if the response is complete.
    run: Option<Run>,
}

impl From<Run> for BegunRun {
    fn from(run: Run) -> Self {
        Self { first: Vec::new(), run: Some(run) }
    }
}

/// Passes the events of a run to `encoder` until there is something to send or the response is complete.
///
/// A run that fails before that can still be answered with the status of its error.
pub(super) async fn first_output<S: EventEncoder>(mut run: Run, encoder: &mut S) -> BegunRun {
    let mut first = Vec::new();
    while let Some(event) = run.next_event().await {
        if encoder.handle_event(event, &run, &mut first) {
            return BegunRun { first, run: None };
        }
        if !first.is_empty() {
            break;
        }
    }
    BegunRun { first, run: Some(run) }
}

/// Returns a function for [`PolledBody`](super::response::PolledBody) that streams a run.
///
/// The connection polls the run itself. When the client disconnects, the body is dropped, and with it the run and its
/// `permit`.
pub(super) fn run_body<S: EventEncoder + 'static>(
    run: impl Into<BegunRun>,
    mut encoder: S,
    permit: OwnedSemaphorePermit,
) -> impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Send + Unpin {
    let BegunRun { mut first, run } = run.into();
    let mut run = run.map(|run| (run, permit));
    move |cx| {
        let mut out = std::mem::take(&mut first);
        while let Some((active, _)) = &mut run {
            match active.poll_event(cx) {
                Poll::Ready(Some(event)) => {
                    if encoder.handle_event(event, active, &mut out) {
                        run = None;
                    }
                }
                Poll::Ready(None) => run = None,
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
            if out.len() >= BATCH_BYTES {
                break;
            }
        }
        Poll::Ready((!out.is_empty()).then(|| out.into()))
    }
}

/// Passes the events of a run to `encoder` until the response is complete, and discards what it appends.
pub(super) async fn drain_run<S: EventEncoder>(mut run: Run, encoder: &mut S) {
    let mut out = Vec::new();
    while let Some(event) = run.next_event().await {
        if encoder.handle_event(event, &run, &mut out) {
            return;
        }
        out.clear();
    }
}
