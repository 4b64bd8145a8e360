//! Server-sent events: what one looks like on the wire, and a run as a body of them.

use std::task::{Context, Poll};

use hyper::body::Bytes;
use serde::Serialize;

use tokio::sync::OwnedSemaphorePermit;

use crate::agent::{Run, protocol::Event};

/// Bytes after which what is ready is sent, although more may be there.
const BATCH_BYTES: usize = 64 * 1024;

/// Appends an event whose data is plain text. Line feeds become the two characters `\n`, as the Kolosal seed
/// wants; carriage returns likewise, since they end a line too and text could forge an event with them.
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

/// Appends an event without a name, as OpenAI's chat completions are sent.
pub(super) fn unnamed(out: &mut Vec<u8>, data: &impl Serialize) {
    out.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *out, data).expect("events are made of strings and numbers");
    out.extend_from_slice(b"\n\n");
}

/// Turns a run's events into what a client reads.
pub(super) trait EventEncoder: Send + Unpin {
    /// Hears one event, answers the run where it waits, and appends what the client is told. `true` ends the
    /// answer; a run that is still going is cancelled then.
    fn handle_event(&mut self, event: Event, run: &Run, out: &mut Vec<u8>) -> bool;
}

/// The body of a streamed answer. The connection polls the run itself; when the client goes, the body is dropped
/// and the run and its `room` with it.
pub(super) fn run_body<S: EventEncoder + 'static>(
    run: Run,
    mut script: S,
    room: OwnedSemaphorePermit,
) -> impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Send + Unpin {
    let mut run = Some((run, room));
    move |cx| {
        let mut out = Vec::new();
        while let Some((going, _)) = &mut run {
            match going.poll_event(cx) {
                Poll::Ready(Some(event)) => {
                    if script.handle_event(event, going, &mut out) {
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

/// Lets a run speak to `script` until the answer is complete.
pub(super) async fn drain_run<S: EventEncoder>(mut run: Run, script: &mut S) {
    let mut out = Vec::new();
    while let Some(event) = run.next_event().await {
        if script.handle_event(event, &run, &mut out) {
            return;
        }
        out.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out_of_its_event() {
        let mut out = Vec::new();
        text(&mut out, "content", " a\nb\r\nc\revent: done\rdata: true\r\r\\n😀");
        let wire = String::from_utf8(out).unwrap();
        assert_eq!(wire, "event: content\ndata:  a\\nb\\r\\nc\\revent: done\\rdata: true\\r\\r\\n😀\n\n");
        assert!(!wire.contains('\r'));
    }
}
