//! The gRPC streams that are open, so that a stopping daemon waits for them and not for silent connections.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::core::{Cancel, stop_limits};

/// Counts the requests that have no complete response yet, over all connections. Cheap to clone; all clones are one count.
#[derive(Clone, Default)]
pub(super) struct OpenStreams {
    open: TaskTracker,
}

impl OpenStreams {
    /// Resolves when `stop` is cancelled, no stream is open any more, and clients have had a moment to read the end of
    /// theirs.
    pub(super) async fn ended(&self, stop: &Cancel) {
        stop.cancelled().await;
        self.open.close();
        self.open.wait().await;
        tokio::time::sleep(stop_limits::LAST_READ).await;
    }
}

impl<S> Layer<S> for OpenStreams {
    type Service = CountedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CountedService { inner, streams: self.clone() }
    }
}

/// A service whose responses count as open streams until their last byte is sent.
#[derive(Clone)]
pub(super) struct CountedService<S> {
    inner: S,
    streams: OpenStreams,
}

impl<S, B> Service<Request<B>> for CountedService<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let token = self.streams.open.token();
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    // The body owns the token until it is dropped.
                    let _: &_ = &token;
                    frame
                }))
            }))
        })
    }
}
