//! What signals mean to the daemon.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::core::Cancel;

/// SIGTERM, SIGINT and SIGHUP stop the daemon; a second one stops it at once.
///
/// SIGXFSZ, which would kill the process, becomes an ordinary write error.
///
/// # Errors
///
/// The handlers could not be installed.
pub(super) fn stop_on_signals(stop: &Cancel) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut too_large = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {}
                _ = too_large.recv() => continue,
            }
            if stop.is_cancelled() {
                leave_now();
            }
            tracing::info!("stopping on a signal");
            stop.cancel();
        }
    });
    Ok(())
}

#[expect(clippy::exit, reason = "the second signal means now")]
fn leave_now() -> ! {
    std::process::exit(1)
}
