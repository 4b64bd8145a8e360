//! Cancels a blocking command on Ctrl-C.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
    thread,
};

use tokio::signal::unix::{SignalKind, signal};

use kontekst_core::Cancel;

use crate::{
    cli::error::{CliError, ExitStatus},
    client::{self, ClientError},
};

/// Turns the first SIGINT or SIGTERM into a [`Cancel`]. The second one ends the process.
pub(super) struct Signals {
    pub cancel: Cancel,
    received: Arc<AtomicU8>,
}

impl Signals {
    /// Starts to listen for the signals, on a thread of its own.
    pub(super) fn listen() -> Result<Self, CliError> {
        let runtime = client::runtime()?;
        let entered = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ClientError::Runtime)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(ClientError::Runtime)?;
        drop(entered);
        let signals = Self { cancel: Cancel::new(), received: Arc::default() };
        let (cancel, given) = (signals.cancel.clone(), Arc::clone(&signals.received));
        let listen = async move {
            loop {
                let number = tokio::select! {
                    _ = interrupt.recv() => 2,
                    _ = terminate.recv() => 15,
                };
                if given.swap(number, SeqCst) != 0 {
                    // Whatever still blocks after the second signal is not waited for.
                    std::process::exit(128 + i32::from(number));
                }
                cancel.cancel();
            }
        };
        thread::spawn(move || runtime.block_on(listen));
        Ok(signals)
    }

    /// Returns the exit status for the signal that was received, or `None` if there was none.
    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        match self.received.load(SeqCst) {
            0 => None,
            15 => Some(ExitStatus::Terminated),
            _ => Some(ExitStatus::Interrupted),
        }
    }
}
