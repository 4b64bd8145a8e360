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
    convert::{Stamp, frame},
    news::News,
};

/// Frames that may wait. A client that lets more pile up does not read.
const FRAMES: usize = 1024;
/// Bytes that may wait.
const BYTES: usize = 8 * 1024 * 1024;
/// So many frames or bytes and nothing more is read from the client until it has read some.
const CROWDED: (usize, usize) = (FRAMES / 4, BYTES / 4);

/// The session's end.
pub(super) struct Outbox {
    shared: Arc<Shared>,
}

/// The connection's end: the response stream.
pub struct Frames {
    shared: Arc<Shared>,
    events: RozEvents,
}

/// More waits for the client than may.
pub(super) struct Overflow;

struct Shared {
    state: Mutex<State>,
    /// Something was read, or nobody reads any more.
    moved: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Nothing more will come; the status when that is no good ending.
    ended: Option<Result<(), Status>>,
    reader: Option<Waker>,
    gone: bool,
}

struct Waiting {
    news: News,
    correlation: Uuid,
    at: SystemTime,
}

pub(super) fn channel(events: RozEvents) -> (Outbox, Frames) {
    let shared = Arc::new(Shared { state: Mutex::default(), moved: Notify::new() });
    (Outbox { shared: Arc::clone(&shared) }, Frames { shared, events })
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

impl Outbox {
    /// Queues one thing. Text is joined to text that still waits.
    pub(super) fn send(&self, news: News, correlation: Uuid) -> Result<(), Overflow> {
        let mut state = self.shared.state();
        let joined = state.waiting.back_mut().and_then(|last| last.news.absorb(&news));
        let grown = joined.unwrap_or_else(|| news.size());
        if joined.is_none() {
            if state.waiting.len() >= FRAMES {
                return Err(Overflow);
            }
            state.waiting.push_back(Waiting { news, correlation, at: SystemTime::now() });
        }
        state.bytes += grown;
        state.wake();
        if state.bytes > BYTES { Err(Overflow) } else { Ok(()) }
    }

    /// Resolves when the client has little left to read.
    pub(super) async fn room(&self) {
        self.until(|state| state.waiting.len() < CROWDED.0 && state.bytes < CROWDED.1).await;
    }

    /// Resolves when nobody reads any more.
    pub(super) async fn gone(&self) {
        self.until(|state| state.gone).await;
    }

    async fn until(&self, met: impl Fn(&State) -> bool) {
        loop {
            let moved = self.shared.moved.notified();
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
    pub(super) fn cut(&self, status: Status) {
        let mut state = self.shared.state();
        state.waiting.clear();
        state.bytes = 0;
        state.ended = Some(Err(status));
        state.wake();
    }
}

impl Drop for Outbox {
    /// The stream ends well once the client has read what waits.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.ended.get_or_insert(Ok(()));
        state.wake();
    }
}

impl Stream for Frames {
    type Item = Result<SessionResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let mut state = self.shared.state();
            let Some(Waiting { news, correlation, at }) = state.waiting.pop_front() else {
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
            state.bytes -= news.size();
            drop(state);
            self.shared.moved.notify_waiters();
            let stamp = Stamp {
                event: Uuid::new_v4().to_string(),
                correlation: correlation.to_string(),
                at: at.into(),
            };
            if let Some(frame) = frame(news, self.events, stamp) {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.shared.state().gone = true;
        self.shared.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    fn text(content: &str) -> News {
        News::Text { message: "m".to_owned(), content: content.to_owned() }
    }

    #[tokio::test]
    async fn text_that_waits_is_joined_and_the_order_stays() {
        let (outbox, frames) = channel(RozEvents::First);
        for news in [text("a"), text("b"), News::Pong, text("c")] {
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
        assert!(sent * piece.len() < BYTES && sent > 1000, "{sent}");

        let (outbox, frames) = channel(RozEvents::Both);
        let sent = (0..1_000_000).take_while(|_| outbox.send(News::Pong, Uuid::nil()).is_ok()).count();
        assert_eq!(sent, FRAMES);
        outbox.cut(Status::resource_exhausted("slow"));
        let last: Vec<_> = frames.collect().await;
        assert_eq!((last.len(), last[0].as_ref().unwrap_err().code()), (1, tonic::Code::ResourceExhausted));
    }

    #[tokio::test]
    async fn a_reader_that_leaves_is_noticed() {
        let (outbox, frames) = channel(RozEvents::Both);
        drop(frames);
        outbox.gone().await;
    }
}
