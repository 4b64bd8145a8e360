//! The socket to which `kontekst rpc` connects for an editor.

use std::{fs, path::PathBuf};

use tokio::net::UnixListener;
use tokio_util::task::TaskTracker;

use crate::{config::Home, core::Cancel, doors::kaiak::KaiakDoor};

use super::{
    DaemonError,
    accept::{bind_unix, pause_after},
    peer,
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

    /// Accepts until `stop` is cancelled, and returns when all connections have ended.
    pub(super) async fn serve(self, door: KaiakDoor, stop: Cancel) {
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    pause_after(error).await;
                    continue;
                }
            };
            match peer::unix(&stream) {
                Ok(_) => {
                    let (door, stop) = (door.clone(), stop.clone());
                    connections.spawn(async move { door.serve(stream, &stop).await });
                }
                Err(refused) => tracing::warn!("connection refused: {refused}"),
            }
        }
        fs::remove_file(&self.socket).ok();
        connections.close();
        connections.wait().await;
    }
}
