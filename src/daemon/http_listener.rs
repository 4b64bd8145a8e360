//! The listener of the HTTP door.

use std::{net::SocketAddr, sync::Arc};

use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::task::TaskTracker;

use crate::{
    agent::AgentCore,
    config::Bind,
    core::OwnListeners,
    doors::http::{AccessPolicy, Caller, HttpDoor},
};

use super::{
    accept::{bind_tcp, pause_after},
    http_connection::HttpConnection,
    peer::{self, Peer},
    socket_table::SocketTable,
    token,
};

/// The maximum number of connections. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 1024;

/// A bound listener.
pub(super) struct HttpListener {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    door: Arc<HttpDoor>,
}

impl HttpListener {
    /// Binds the address of `[http] listen`. Returns `None` if that is `off`.
    ///
    /// # Errors
    ///
    /// One sentence for the operator. The daemon continues without HTTP.
    pub(super) fn bind(core: &AgentCore, own_listeners: &OwnListeners) -> Result<Option<Self>, String> {
        let config = core.config();
        let Bind::Tcp(address) = config.http.listen else { return Ok(None) };
        if config.http.listen.is_remote() && !config.allow_remote {
            return Err(format!(
                "not serving HTTP on {address}, which other machines can reach: set `allow_remote = true`"
            ));
        }
        let token = token::load_or_create(core.home())
            .map_err(|error| format!("not serving HTTP: {}: {error}", core.home().token().display()))?;
        let listener = bind_tcp(address, own_listeners).map_err(|error| {
            format!("not serving HTTP on {address}: {error}; set `listen` in [http] of config.toml to another port")
        })?;
        let address = listener.local_addr().unwrap_or(address);
        let settings = &config.http;
        let policy =
            AccessPolicy::new(address.port(), &settings.hosts, &settings.origins, token, settings.cors);
        Ok(Some(Self { listener, address, door: HttpDoor::new(core.clone(), policy) }))
    }

    /// Accepts until the core stops, and returns when all connections have ended.
    pub(super) async fn serve(self, core: AgentCore, table: SocketTable) {
        let connections = TaskTracker::new();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                biased;
                () = core.stopped() => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    pause_after(error).await;
                    continue;
                }
            };
            let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                tracing::warn!("connection refused: {MAX_CONNECTIONS} are open");
                continue;
            };
            let (door, table) = (Arc::clone(&self.door), table.clone());
            connections.spawn(async move {
                serve_connection(door, stream, table).await;
                drop(permit);
            });
        }
        drop(self.listener);
        connections.close();
        connections.wait().await;
    }
}

async fn serve_connection(door: Arc<HttpDoor>, stream: TcpStream, table: SocketTable) {
    let caller = match peer::tcp(&stream, &table).await {
        Ok(Peer::ThisUser) => Caller::ThisUser,
        Ok(Peer::Remote) => Caller::Remote,
        Err(refused) => {
            tracing::warn!("connection refused: {refused}");
            return;
        }
    };
    stream.set_nodelay(true).ok();
    door.serve(TokioIo::new(HttpConnection::new(stream, table)), caller).await;
}
