//! The socket that `kontekst rpc` hands its bytes to.

use std::{fs, io, path::PathBuf, time::Duration};

use tokio::net::UnixListener;
use tokio_util::task::TaskTracker;

use crate::{config::Home, core::Cancel, doors::kaiak::KaiakDoor};

use super::{DaemonError, peer};

pub(super) struct EditorListener {
    listener: UnixListener,
    socket: PathBuf,
}

impl EditorListener {
    /// Listens. The caller holds the daemon lock, so an existing socket file is a leftover; the umask keeps
    /// other users out.
    pub(super) fn bind(home: &Home) -> Result<Self, DaemonError> {
        let socket = home.kaiak_socket();
        let listen = |source| DaemonError::Listen { path: socket.clone(), source };
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(listen(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(listen)?;
        Ok(Self { listener, socket: socket.clone() })
    }

    /// Serves until `stop`, and until the connections have ended.
    pub(super) async fn serve(self, door: KaiakDoor, stop: Cancel) {
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted.and_then(|(stream, _)| peer::unix(&stream).map(|_| stream)) {
                Ok(stream) => {
                    let (door, stop) = (door.clone(), stop.clone());
                    connections.spawn(async move { door.serve(stream, &stop).await });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    tracing::warn!("connection refused: {error}");
                }
                Err(error) => {
                    tracing::warn!("accept failed: {error}");
                    // Too few file descriptors: the next one would fail at once too.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        fs::remove_file(&self.socket).ok();
        connections.close();
        connections.wait().await;
    }
}
