//! Ctrl-C for commands that block.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
    thread,
};

use tokio::signal::unix::{SignalKind, signal};

use crate::{
    cli::error::{CliError, ExitStatus},
    client::{self, ClientError},
    core::Cancel,
};

/// SIGINT and SIGTERM give a [`Cancel`]. A second one ends the process.
pub struct Signals {
    pub cancel: Cancel,
    received: Arc<AtomicU8>,
}

impl Signals {
    /// Listens from now on, on a thread of its own.
    pub fn listen() -> Result<Self, CliError> {
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
                    // Asked twice: whatever still blocks is not waited for.
                    std::process::exit(128 + i32::from(number));
                }
                cancel.cancel();
            }
        };
        thread::spawn(move || runtime.block_on(listen));
        Ok(signals)
    }

    /// How a command ends that a signal stopped; `None` without one.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        match self.received.load(SeqCst) {
            0 => None,
            15 => Some(ExitStatus::Terminated),
            _ => Some(ExitStatus::Interrupted),
        }
    }
}
