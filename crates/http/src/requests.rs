//! The number of requests that are being answered on a connection.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use http_body_util::BodyExt as _;

use super::response::HttpResponse;

/// Counts the requests of one connection whose answers are not sent yet. All clones are one count.
#[derive(Clone, Default)]
pub struct RequestsInProgress(Arc<AtomicUsize>);

/// One request. It counts until this is dropped.
pub struct RequestInProgress(RequestsInProgress);

impl RequestsInProgress {
    pub fn is_zero(&self) -> bool {
        self.0.load(SeqCst) == 0
    }

    pub fn begin(&self) -> RequestInProgress {
        self.0.fetch_add(1, SeqCst);
        RequestInProgress(self.clone())
    }
}

impl RequestInProgress {
    /// Returns the response with a body that ends the request when it is dropped.
    pub(super) fn until_sent(self, response: HttpResponse) -> HttpResponse {
        response.map(|body| {
            let body = body.map_frame(move |frame| {
                // The body owns the request until it is dropped.
                let _: &_ = &self;
                frame
            });
            body.boxed_unsync()
        })
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}
