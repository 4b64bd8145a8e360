//! The listener of the HTTP door.

use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_util::task::TaskTracker;

use kontekst_agent::AgentCore;
use kontekst_core::{Cancel, OwnListeners};
use kontekst_grpc::ListenerStatus;
use kontekst_http::{AccessPolicy, Caller, HttpDoor, RequestsInProgress};
use kontekst_store::config::Bind;

use super::{
    accept::accept_each,
    http_connection::HttpConnection,
    peer::{Peer, PeerCheck},
    tcp_socket::TcpSocket,
    token,
};

/// The size of the kernel's buffer for what a client has not read yet, in bytes. By itself the kernel would let it grow
/// to several megabytes.
const SEND_BUFFER: usize = 256 * 1024;

/// The maximum number of connections. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 1024;

/// A listener that is bound, or will be when its address is free.
pub(super) struct HttpListener {
    socket: TcpSocket,
    token: String,
}

impl HttpListener {
    /// Binds the address of `[http] listen`, and reports it in `status`. Returns `None` if that is `off`.
    ///
    /// # Errors
    ///
    /// One sentence for the operator. The daemon continues without HTTP.
    pub(super) fn bind(
        core: &AgentCore,
        own_listeners: &OwnListeners,
        status: &ListenerStatus,
    ) -> Result<Option<Self>, String> {
        let config = core.config();
        let Bind::Tcp(address) = config.http.listen else { return Ok(None) };
        if config.http.listen.is_remote() && !config.allow_remote {
            return Err(format!(
                "not serving HTTP on {address}, which other machines can reach: set `allow_remote = true`"
            ));
        }
        let token = token::load_or_create(core.home())
            .map_err(|error| format!("not serving HTTP: {}: {error}", core.home().token().display()))?;
        let socket = TcpSocket::bind(address, own_listeners, status, |error| {
            format!(
                "not serving HTTP on {address}: {error}; set `listen` in [http] of config.toml to another port"
            )
        });
        Ok(Some(Self { socket, token }))
    }

    /// Accepts until `stop` is cancelled, and returns when all connections have ended.
    pub(super) async fn serve(self, core: AgentCore, peers: PeerCheck, stop: Cancel) {
        let listener = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            listener = self.socket.listener() => listener,
        };
        let Ok(address) = listener.local_addr() else { return };
        let settings = &core.config().http;
        let policy =
            AccessPolicy::new(address.port(), &settings.hosts, &settings.origins, self.token, settings.cors);
        let door = HttpDoor::new(core.clone(), policy);
        let connections = TaskTracker::new();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        accept_each(&listener, &stop, |stream| {
            if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                let (door, peers) = (Arc::clone(&door), peers.clone());
                connections.spawn(async move {
                    serve_connection(door, stream, peers).await;
                    drop(permit);
                });
            } else {
                peers.refuse("too many HTTP connections are open");
            }
            std::future::ready(())
        })
        .await;
        drop(listener);
        connections.close();
        connections.wait().await;
    }
}

async fn serve_connection(door: Arc<HttpDoor>, stream: TcpStream, peers: PeerCheck) {
    let caller = match peers.tcp(&stream).await {
        Some(Peer::ThisUser) => Caller::ThisUser,
        Some(Peer::Remote) => Caller::Remote,
        None => return,
    };
    stream.set_nodelay(true).ok();
    set_socket_send_buffer_size(&stream, SEND_BUFFER).ok();
    let requests = RequestsInProgress::default();
    let connection = HttpConnection::new(stream, peers.table().clone(), requests.clone());
    door.serve(TokioIo::new(connection), caller, &requests).await;
}
