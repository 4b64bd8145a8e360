//! Connects to the daemon, and starts it if there is none.
//!
//! A client first tries to connect without any lock. If that fails, it takes the spawn lock, tries again, because
//! another client may have started the daemon meanwhile, and then starts it. See `ARCHITECTURE.md`, "Daemon lifecycle".

use std::{io, os::unix::net::UnixStream, path::Path, time::Duration};

use crate::{
    config::{DaemonInfo, Home, Lock},
    pb::ShutdownRequest,
};

use super::{ClientError, channel, daemon, runtime, spawn::spawn, version::is_older};

/// The time that a client waits for the spawn lock. Its holder may be waiting for a daemon to stop, which takes up to ten
/// seconds, and other clients may get the lock before this one.
const SPAWN_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to the daemon.
#[derive(Debug)]
pub struct Connected {
    pub stream: UnixStream,
    /// A message about the daemon that the user should see on stderr.
    pub notice: Option<String>,
}

/// Connects to the daemon if it is running.
///
/// # Errors
///
/// [`ClientError::NotRunning`], or [`ClientError::WrongOwner`] if another user's process listens there.
pub fn probe(home: &Home) -> Result<UnixStream, ClientError> {
    connect(&home.socket())
}

/// Connects to a socket of the daemon.
pub(super) fn connect(path: &Path) -> Result<UnixStream, ClientError> {
    let path_text = || path.display().to_string();
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(ClientError::NotRunning);
        }
        Err(source) => return Err(ClientError::Connect { path: path_text(), source }),
    };
    let connect = |source| ClientError::Connect { path: path_text(), source };
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| connect(error.into()))?;
    if peer.uid == rustix::process::geteuid() {
        Ok(stream)
    } else {
        Err(ClientError::WrongOwner { path: path_text(), uid: peer.uid.as_raw() })
    }
}

/// Connects to the daemon. Starts it if it is not running, and replaces it if it is idle and older than this program.
///
/// # Errors
///
/// [`ClientError`] says why there is no daemon, with the daemon's own message if it wrote one.
pub fn ensure(home: &Home) -> Result<Connected, ClientError> {
    match probe(home) {
        Ok(stream) => match older_daemon_version(home) {
            None => return Ok(Connected { stream, notice: None }),
            Some(daemon_version) => {
                if !stop_if_idle(stream)? {
                    let notice = format!(
                        "using the running daemon {daemon_version}; it is busy and will be replaced by {} when idle",
                        env!("CARGO_PKG_VERSION")
                    );
                    return Ok(Connected { stream: probe(home)?, notice: Some(notice) });
                }
            }
        },
        Err(ClientError::NotRunning) => {}
        Err(error) => return Err(error),
    }
    home.create()?;
    let lock = Lock::acquire(&home.spawn_lock(), SPAWN_LOCK_TIMEOUT)?;
    match probe(home) {
        // Another client started it while we waited for the lock. An older daemon that was told to stop may still
        // answer; the new one then waits for its lock.
        Ok(stream) if older_daemon_version(home).is_none() => return Ok(Connected { stream, notice: None }),
        Ok(_) | Err(ClientError::NotRunning) => {}
        Err(error) => return Err(error),
    }
    spawn(home, &lock)?;
    Ok(Connected { stream: probe(home)?, notice: None })
}

/// Returns the version of the running daemon if it is older than this program.
fn older_daemon_version(home: &Home) -> Option<String> {
    let version = DaemonInfo::load(home)?.version;
    is_older(&version, env!("CARGO_PKG_VERSION")).then_some(version)
}

/// Asks the daemon to stop if no run is active. Returns false if it refused.
fn stop_if_idle(stream: UnixStream) -> Result<bool, ClientError> {
    runtime()?.block_on(async {
        let mut daemon = daemon(channel(stream).await?);
        let response = daemon.shutdown(ShutdownRequest { if_idle: true }).await?;
        Ok(!response.into_inner().refused)
    })
}
