//! What a request tells its client: numbered, in order, and no faster than it is read.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::core::clock;

use super::{convert::StreamError, framing::encode, request::Request, session::Session};

/// Frames on their way to one client. A full queue makes who writes wait.
pub(super) type FrameSender = mpsc::Sender<Vec<u8>>;

/// The client is gone or the request was cancelled.
pub(super) struct NotDelivered;

/// The notifications of one request.
pub(super) struct Notifier {
    session: Arc<Session>,
    request: Arc<Request>,
    outbox: FrameSender,
    percentage: u8,
}

/// An id beside the content.
pub(super) enum Correlation<'a> {
    None,
    Interaction(&'a str),
    Proposal(&'a str),
}

impl Notifier {
    pub(super) fn new(session: Arc<Session>, request: Arc<Request>, outbox: FrameSender) -> Self {
        Self { session, request, outbox, percentage: 0 }
    }

    /// Sends one notification; a cancel ends the wait for a slow reader.
    pub(super) async fn notify(
        &self,
        name: &str,
        correlation: Correlation<'_>,
        content: Value,
    ) -> Result<(), NotDelivered> {
        let permit = tokio::select! {
            biased;
            () = self.request.cancel.cancelled() => return Err(NotDelivered),
            permit = self.outbox.reserve() => permit.map_err(|_| NotDelivered)?,
        };
        self.session.send_numbered(name == "error", |number| {
            permit.send(self.frame(name, &correlation, content, number));
        });
        Ok(())
    }

    /// Sends what is said even of a request that was cancelled.
    pub(super) async fn notify_final(&self, name: &str, content: Value) {
        let Ok(permit) = self.outbox.reserve().await else { return };
        self.session.send_numbered(name == "error", |number| {
            permit.send(self.frame(name, &Correlation::None, content, number));
        });
    }

    fn frame(&self, name: &str, correlation: &Correlation<'_>, content: Value, number: u64) -> Vec<u8> {
        let mut params = json!({
            "session_id": self.session.id,
            "request_id": self.request.id,
            "message_id": format!("msg-{number}"),
            "timestamp": clock::rfc3339_seconds(SystemTime::now()),
        });
        match correlation {
            Correlation::None => {}
            Correlation::Interaction(id) => params["interaction_id"] = json!(id),
            Correlation::Proposal(id) => params["proposal_id"] = json!(id),
        }
        params["content"] = content;
        let method = format!("kaiak/stream/{name}");
        encode(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().as_bytes())
    }

    /// Says how far it is; never less than before.
    pub(super) async fn progress(
        &mut self,
        percentage: u8,
        phase: &str,
        description: impl Into<String>,
    ) -> Result<(), NotDelivered> {
        self.percentage = self.percentage.max(percentage.min(100));
        let content = json!({
            "percentage": self.percentage, "phase": phase, "description": description.into(),
        });
        self.notify("progress", Correlation::None, content).await
    }

    pub(super) fn percentage(&self) -> u8 {
        self.percentage
    }

    pub(super) async fn error(&self, trouble: &StreamError) -> Result<(), NotDelivered> {
        self.notify("error", Correlation::None, trouble.content()).await
    }

    pub(super) async fn system_event(
        &self,
        event: &str,
        status: &str,
        summary: Value,
    ) -> Result<(), NotDelivered> {
        let content = json!({
            "event": event, "request_id": self.request.id, "status": status, "summary": summary,
        });
        self.notify("system", Correlation::None, content).await
    }
}
