//! What a request tells its client: numbered, in order, and no faster than it is read.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{clock, convert::Trouble, framing::encode, request::Request, session::Session};

/// Frames on their way to one client. A full queue makes who writes wait.
pub(super) type Outbox = mpsc::Sender<Vec<u8>>;

/// The client is gone or the request was cancelled.
pub(super) struct Gone;

/// The notifications of one request.
pub(super) struct Voice {
    session: Arc<Session>,
    request: Arc<Request>,
    outbox: Outbox,
    percentage: u8,
}

/// An id beside the content.
pub(super) enum Beside<'a> {
    Nothing,
    Interaction(&'a str),
    Proposal(&'a str),
}

impl Voice {
    pub(super) fn new(session: Arc<Session>, request: Arc<Request>, outbox: Outbox) -> Self {
        Self { session, request, outbox, percentage: 0 }
    }

    /// Sends one notification; a cancel ends the wait for a slow reader.
    pub(super) async fn say(&self, name: &str, beside: Beside<'_>, content: Value) -> Result<(), Gone> {
        let permit = tokio::select! {
            biased;
            () = self.request.cancel.cancelled() => return Err(Gone),
            permit = self.outbox.reserve() => permit.map_err(|_| Gone)?,
        };
        self.session.speak(name == "error", |number| {
            permit.send(self.frame(name, &beside, content, number));
        });
        Ok(())
    }

    /// Sends what is said even of a request that was cancelled.
    pub(super) async fn say_last(&self, name: &str, content: Value) {
        let Ok(permit) = self.outbox.reserve().await else { return };
        self.session.speak(name == "error", |number| {
            permit.send(self.frame(name, &Beside::Nothing, content, number));
        });
    }

    fn frame(&self, name: &str, beside: &Beside<'_>, content: Value, number: u64) -> Vec<u8> {
        let mut params = json!({
            "session_id": self.session.id,
            "request_id": self.request.id,
            "message_id": format!("msg-{number}"),
            "timestamp": clock::now(),
        });
        match beside {
            Beside::Nothing => {}
            Beside::Interaction(id) => params["interaction_id"] = json!(id),
            Beside::Proposal(id) => params["proposal_id"] = json!(id),
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
    ) -> Result<(), Gone> {
        self.percentage = self.percentage.max(percentage.min(100));
        let content = json!({
            "percentage": self.percentage, "phase": phase, "description": description.into(),
        });
        self.say("progress", Beside::Nothing, content).await
    }

    pub(super) fn percentage(&self) -> u8 {
        self.percentage
    }

    pub(super) async fn trouble(&self, trouble: &Trouble) -> Result<(), Gone> {
        self.say("error", Beside::Nothing, trouble.content()).await
    }

    pub(super) async fn system(&self, event: &str, status: &str, summary: Value) -> Result<(), Gone> {
        let content = json!({
            "event": event, "request_id": self.request.id, "status": status, "summary": summary,
        });
        self.say("system", Beside::Nothing, content).await
    }
}
