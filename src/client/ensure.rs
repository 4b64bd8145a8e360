//! One daemon for every client, started when absent.
//!
//! A client tries to connect without any lock. Only when that fails does it take the spawn lock, try
//! again (another client may have won), and start a daemon. See `ARCHITECTURE.md`, "Daemon lifecycle".

use std::{io, os::unix::net::UnixStream, path::Path, time::Duration};

use crate::{
    config::{DaemonInfo, Home, Lock},
    pb::ShutdownRequest,
};

use super::{ClientError, channel, daemon, runtime, spawn::spawn, version::is_older};

/// A daemon that leaves may take ten seconds, and the one before us in the queue may wait for it.
const SPAWN_LOCK_LIMIT: Duration = Duration::from_secs(30);

/// A connection, and what there is to say about how it came to be.
#[derive(Debug)]
pub struct Connected {
    pub stream: UnixStream,
    /// For the user, on stderr.
    pub notice: Option<String>,
}

/// Connects to the daemon if one is there.
///
/// # Errors
///
/// [`ClientError::NotRunning`], or that what listens there is not ours.
pub fn probe(home: &Home) -> Result<UnixStream, ClientError> {
    connect(&home.socket())
}

/// Connects to a socket of the daemon.
pub(super) fn connect(path: &Path) -> Result<UnixStream, ClientError> {
    let shown = || path.display().to_string();
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(ClientError::NotRunning);
        }
        Err(source) => return Err(ClientError::Connect { path: shown(), source }),
    };
    let connect = |source| ClientError::Connect { path: shown(), source };
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| connect(error.into()))?;
    if peer.uid == rustix::process::geteuid() {
        Ok(stream)
    } else {
        Err(ClientError::WrongOwner { path: shown(), uid: peer.uid.as_raw() })
    }
}

/// Connects to the daemon, starting it if it is not there and replacing it if it is older than this
/// program and idle.
///
/// # Errors
///
/// [`ClientError`] says why there is no daemon, in the daemon's own words where it had any.
pub fn ensure(home: &Home) -> Result<Connected, ClientError> {
    match probe(home) {
        Ok(stream) => match older_daemon_version(home) {
            None => return Ok(Connected { stream, notice: None }),
            Some(theirs) => {
                if !stop_if_idle(stream)? {
                    let notice = format!(
                        "using the running daemon {theirs}; it is busy and will be replaced by {} when idle",
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
    let lock = Lock::acquire(&home.spawn_lock(), SPAWN_LOCK_LIMIT)?;
    match probe(home) {
        // Somebody else started it while we waited for the lock. One that was told to leave may still
        // answer; ours then waits for its lock.
        Ok(stream) if older_daemon_version(home).is_none() => return Ok(Connected { stream, notice: None }),
        Ok(_) | Err(ClientError::NotRunning) => {}
        Err(error) => return Err(error),
    }
    spawn(home, &lock)?;
    Ok(Connected { stream: probe(home)?, notice: None })
}

/// The running daemon's version, if it is older than ours.
fn older_daemon_version(home: &Home) -> Option<String> {
    let version = DaemonInfo::load(home)?.version;
    is_older(&version, env!("CARGO_PKG_VERSION")).then_some(version)
}

/// Asks an older daemon to leave. `false` means that it has runs going.
fn stop_if_idle(stream: UnixStream) -> Result<bool, ClientError> {
    runtime()?.block_on(async {
        let mut daemon = daemon(channel(stream).await?);
        let answer = daemon.shutdown(ShutdownRequest { if_idle: true }).await?;
        Ok(!answer.into_inner().refused)
    })
}
