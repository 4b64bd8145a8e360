//! The socket to which `kontekst rpc` connects for an editor.

use std::{fs, path::PathBuf};

use tokio::net::UnixListener;
use tokio_util::task::TaskTracker;

use kontekst_core::Cancel;
use kontekst_kaiak::KaiakDoor;
use kontekst_store::config::Home;

use super::{
    DaemonError,
    accept::{accept_each, bind_unix},
    open_connections::OpenConnections,
    peer::PeerCheck,
};

pub(super) struct EditorListener {
    listener: UnixListener,
    socket: PathBuf,
}

impl EditorListener {
    /// Binds the socket. The caller holds the daemon lock.
    pub(super) fn bind(home: &Home) -> Result<Self, DaemonError> {
        let socket = home.kaiak_socket();
        let listener =
            bind_unix(&socket).map_err(|source| DaemonError::Listen { path: socket.clone(), source })?;
        Ok(Self { listener, socket })
    }

    /// Accepts until `stop` is cancelled, and returns when all connections have ended. Each counts as one of `connections`.
    pub(super) async fn serve(
        self,
        door: KaiakDoor,
        peers: PeerCheck,
        connections: OpenConnections,
        stop: Cancel,
    ) {
        let tasks = TaskTracker::new();
        accept_each(&self.listener, &stop, |stream| {
            if peers.unix(&stream).is_some()
                && let Some(open) = connections.enter()
            {
                let (door, stop) = (door.clone(), stop.clone());
                tasks.spawn(async move {
                    door.serve(stream, &stop).await;
                    drop(open);
                });
            }
            std::future::ready(())
        })
        .await;
        fs::remove_file(&self.socket).ok();
        tasks.close();
        tasks.wait().await;
    }
}
