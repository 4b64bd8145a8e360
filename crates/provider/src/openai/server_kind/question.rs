//! Small questions to a server.

use std::time::Duration;

use serde_json::Value;

use kontekst_core::Cancel;

use crate::{ProviderError, openai::http::ServerClient};

/// A server, and how long it may be silent.
#[derive(Clone, Copy)]
pub(in crate::openai) struct Questions<'a> {
    pub(crate) client: &'a ServerClient,
    pub(crate) cancel: &'a Cancel,
    pub(crate) timeout: Duration,
}

impl Questions<'_> {
    /// Returns the JSON of a page, or `None` if the server does not have it.
    pub(in crate::openai) fn get(&self, path: &str) -> Option<Value> {
        self.ask(path, None)
    }

    /// Returns the JSON of the answer to `body`, or `None` if the server refuses it.
    pub(in crate::openai) fn post(&self, path: &str, body: &Value) -> Option<Value> {
        self.ask(path, Some(body.to_string().as_bytes()))
    }

    fn ask(&self, path: &str, body: Option<&[u8]>) -> Option<Value> {
        let (status, answer) = self.client.request(path, body, self.cancel, self.timeout).ok()?;
        (status == 200).then(|| serde_json::from_slice(&answer).ok())?
    }

    /// Returns the status and the body of a page.
    pub(in crate::openai) fn page(&self, path: &str) -> Result<(u16, Vec<u8>), ProviderError> {
        self.client.request(path, None, self.cancel, self.timeout)
    }
}
