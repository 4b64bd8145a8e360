//! The gRPC streams that are open, so that a stopping daemon waits for them and not for silent connections. Requests whose
//! content is not gRPC are refused.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::{Layer, Service};

use kontekst_core::{Cancel, stop_limits};

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

/// A service whose responses count as open streams until their last byte is sent. Requests with another content type are
/// answered with the HTTP status 415, as the gRPC protocol wants it.
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
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !content_type.is_some_and(is_grpc) {
            return Box::pin(async {
                let mut refusal = Response::new(Body::empty());
                *refusal.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Ok(refusal)
            });
        }
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

/// Returns true for `application/grpc`, with or without the encoding of the messages (`+proto`) or parameters.
fn is_grpc(content_type: &str) -> bool {
    let rest = content_type.get(..16).filter(|start| start.eq_ignore_ascii_case("application/grpc"));
    rest.is_some() && matches!(content_type.as_bytes().get(16), None | Some(b'+' | b';' | b' '))
}

#[cfg(test)]
mod tests {
    use super::is_grpc;

    #[test]
    fn only_grpc_itself_is_served() {
        for good in
            ["application/grpc", "Application/GRPC", "application/grpc+proto", "application/grpc; a=b"]
        {
            assert!(is_grpc(good), "{good}");
        }
        for bad in ["", "application/json", "application/grpc-web", "application/grpcx", "text/html", "ä"] {
            assert!(!is_grpc(bad), "{bad}");
        }
    }
}
