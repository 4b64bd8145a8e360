//! The Kaiak door: migration fixes for editors, as JSON-RPC over the framing of the language server protocol.
//!
//! `kontekst rpc` carries the bytes between an editor and a connection here. Sessions belong to the daemon
//! and not to a connection; the runs of a request end with the connection that asked for them.

mod connection;
mod convert;
mod error;
mod fix;
mod framing;
mod incident;
mod interaction;
mod jsonrpc;
mod methods;
mod notifier;
mod params;
mod prompt;
mod proposal;
mod registry;
mod request;
mod session;
mod settings;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use tokio::{net::UnixStream, sync::Semaphore};

use crate::{agent::AgentCore, core::Cancel};
use interaction::Interaction;
use registry::Registry;
use request::Request;
use session::Session;

/// Connections at a time; one more is closed at once.
const MAX_CONNECTIONS: usize = 32;

/// Serves connections on an [`AgentCore`]. Cheap to clone.
#[derive(Clone)]
pub struct KaiakDoor {
    shared: Arc<Shared>,
}

/// What all connections have in common.
struct Shared {
    core: AgentCore,
    /// Providers of the configuration whose key is not there.
    providers_without_key: HashSet<String>,
    sessions: Registry<Session>,
    requests: Registry<Request>,
    interactions: Registry<Interaction>,
    connections: Semaphore,
    /// Held by who takes a place for a session.
    session_creation: Mutex<()>,
}

impl KaiakDoor {
    /// `keyless` are the configured providers that cannot be used because their key is missing.
    pub fn new(core: AgentCore, keyless: impl IntoIterator<Item = String>) -> Self {
        let shared = Shared {
            core,
            providers_without_key: keyless.into_iter().collect(),
            sessions: Registry::new(1000),
            requests: Registry::new(10_000),
            interactions: Registry::new(10_000),
            connections: Semaphore::new(MAX_CONNECTIONS),
            session_creation: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Serves one connection to its end. The caller has seen to it that the peer is this user.
    ///
    /// Behind the last frame comes one more byte if the client said `exit`: the exit code of `kontekst rpc`.
    pub async fn serve(&self, stream: UnixStream, stop: &Cancel) {
        let Ok(_permit) = self.shared.connections.try_acquire() else {
            tracing::warn!("more than {MAX_CONNECTIONS} editor connections; one was closed");
            return;
        };
        connection::serve(&self.shared, stream, stop.child()).await;
    }
}
