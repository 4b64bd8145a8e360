//! The parts of binding and accepting that all listeners of the daemon share.

use std::{fs, io, net::SocketAddr, path::Path, time::Duration};

use tokio::net::{TcpListener, UnixListener};

use crate::core::OwnListeners;

/// The pause after a failed accept. Most likely the process has too many open files, and the next accept would fail
/// at once as well.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Binds a unix socket. The caller holds the daemon lock, so a socket file that exists was left by a daemon that was
/// killed. The umask keeps other users out.
pub(super) fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => UnixListener::bind(path),
    }
}

/// Binds a TCP socket and adds its address to `own_listeners`.
pub(super) fn bind_tcp(address: SocketAddr, own_listeners: &OwnListeners) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    own_listeners.add(listener.local_addr()?);
    TcpListener::from_std(listener)
}

/// Logs a failed accept and waits a moment.
pub(super) async fn pause_after(error: io::Error) {
    tracing::warn!("accept failed: {error}");
    tokio::time::sleep(RETRY_DELAY).await;
}
