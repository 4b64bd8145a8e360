//! What waits for a client to read it: ordered, bounded, text in as few frames as possible.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::SystemTime,
};

use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::Status;
use uuid::Uuid;

use crate::{config::RozEvents, pb::roz::SessionResponse};

use super::{
    convert::{EventMetadata, frame},
    server_event::ServerEvent,
};

/// Frames that may wait. A client that lets more pile up does not read.
const MAX_FRAMES: usize = 1024;
/// Bytes that may wait.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// So many frames or bytes and nothing more is read from the client until it has read some.
const CROWDED: (usize, usize) = (MAX_FRAMES / 4, MAX_BYTES / 4);

/// The session's end.
pub(super) struct BoundedOutbox {
    shared: Arc<Shared>,
}

/// The connection's end: the response stream.
pub struct FrameStream {
    shared: Arc<Shared>,
    events: RozEvents,
}

/// More waits for the client than may.
pub(super) struct Overflow;

struct Shared {
    state: Mutex<State>,
    /// Something was read, or nobody reads any more.
    changed: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<QueuedEvent>,
    bytes: usize,
    /// Nothing more will come; the status when that is no good ending.
    ended: Option<Result<(), Status>>,
    reader: Option<Waker>,
    reader_dropped: bool,
}

struct QueuedEvent {
    news: ServerEvent,
    correlation: Uuid,
    at: SystemTime,
}

pub(super) fn channel(events: RozEvents) -> (BoundedOutbox, FrameStream) {
    let shared = Arc::new(Shared { state: Mutex::default(), changed: Notify::new() });
    (BoundedOutbox { shared: Arc::clone(&shared) }, FrameStream { shared, events })
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl BoundedOutbox {
    /// Queues one thing. Text is joined to text that still waits.
    pub(super) fn send(&self, news: ServerEvent, correlation: Uuid) -> Result<(), Overflow> {
        let mut state = self.shared.state();
        let joined = state.queue.back_mut().and_then(|last| last.news.merge_text(&news));
        let grown = joined.unwrap_or_else(|| news.approximate_size());
        if joined.is_none() {
            if state.queue.len() >= MAX_FRAMES {
                return Err(Overflow);
            }
            state.queue.push_back(QueuedEvent { news, correlation, at: SystemTime::now() });
        }
        state.bytes += grown;
        state.wake();
        if state.bytes > MAX_BYTES { Err(Overflow) } else { Ok(()) }
    }

    /// Resolves when the client has little left to read.
    pub(super) async fn drained(&self) {
        self.wait_until(|state| state.queue.len() < CROWDED.0 && state.bytes < CROWDED.1).await;
    }

    /// Resolves when nobody reads any more.
    pub(super) async fn closed(&self) {
        self.wait_until(|state| state.reader_dropped).await;
    }

    async fn wait_until(&self, met: impl Fn(&State) -> bool) {
        loop {
            let moved = self.shared.changed.notified();
            tokio::pin!(moved);
            // Listens before it looks, so that nothing falls between the two.
            moved.as_mut().enable();
            if met(&self.shared.state()) {
                return;
            }
            moved.await;
        }
    }

    /// Ends the stream at once: what waits is thrown away.
    pub(super) fn abort(&self, status: Status) {
        let mut state = self.shared.state();
        state.queue.clear();
        state.bytes = 0;
        state.ended = Some(Err(status));
        state.wake();
    }
}

impl Drop for BoundedOutbox {
    /// The stream ends well once the client has read what waits.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.ended.get_or_insert(Ok(()));
        state.wake();
    }
}

impl Stream for FrameStream {
    type Item = Result<SessionResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let mut state = self.shared.state();
            let Some(QueuedEvent { news, correlation, at }) = state.queue.pop_front() else {
                return match state.ended.take() {
                    Some(Ok(())) => {
                        state.ended = Some(Ok(()));
                        Poll::Ready(None)
                    }
                    Some(Err(status)) => {
                        state.ended = Some(Ok(()));
                        Poll::Ready(Some(Err(status)))
                    }
                    None => {
                        state.reader = Some(cx.waker().clone());
                        Poll::Pending
                    }
                };
            };
            state.bytes -= news.approximate_size();
            drop(state);
            self.shared.changed.notify_waiters();
            let stamp = EventMetadata {
                event_id: Uuid::new_v4().to_string(),
                correlation_id: correlation.to_string(),
                timestamp: at.into(),
            };
            if let Some(frame) = frame(news, self.events, stamp) {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}

impl Drop for FrameStream {
    fn drop(&mut self) {
        self.shared.state().reader_dropped = true;
        self.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    fn text(content: &str) -> ServerEvent {
        ServerEvent::Text { message: "m".to_owned(), content: content.to_owned() }
    }

    #[tokio::test]
    async fn text_that_waits_is_joined_and_the_order_stays() {
        let (outbox, frames) = channel(RozEvents::First);
        for news in [text("a"), text("b"), ServerEvent::Pong, text("c")] {
            assert!(outbox.send(news, Uuid::nil()).is_ok());
        }
        drop(outbox);
        let frames: Vec<_> =
            frames.map(|frame| format!("{:?}", frame.unwrap().response.unwrap())).collect().await;
        assert_eq!(frames.len(), 3);
        assert!(frames[0].contains("\"ab\"") && frames[1].contains("Pong") && frames[2].contains("\"c\""));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_costs_a_bounded_amount() {
        let (outbox, _frames) = channel(RozEvents::Both);
        let piece = "x".repeat(1000);
        let sent = (0..1_000_000).take_while(|_| outbox.send(text(&piece), Uuid::nil()).is_ok()).count();
        assert!(sent * piece.len() < MAX_BYTES && sent > 1000, "{sent}");

        let (outbox, frames) = channel(RozEvents::Both);
        let sent = (0..1_000_000).take_while(|_| outbox.send(ServerEvent::Pong, Uuid::nil()).is_ok()).count();
        assert_eq!(sent, MAX_FRAMES);
        outbox.abort(Status::resource_exhausted("slow"));
        let last: Vec<_> = frames.collect().await;
        assert_eq!((last.len(), last[0].as_ref().unwrap_err().code()), (1, tonic::Code::ResourceExhausted));
    }

    #[tokio::test]
    async fn a_reader_that_leaves_is_noticed() {
        let (outbox, frames) = channel(RozEvents::Both);
        drop(frames);
        outbox.closed().await;
    }
}
