//! Waits for a model server that tells its clients to ask again later.

use std::time::Duration;

use tokio::time::sleep;

use crate::provider::{Progress, ProviderError};

use super::{protocol::Event, run::Stop, run_state::RunState};

/// The longest wait that a server may ask for, in seconds. A limit for each minute ends within it; after a limit for each
/// day, a person would wait in vain.
const MAX_SECONDS: u32 = 60;

/// The number of times that one answer is waited for.
pub(super) const MAX_WAITS: usize = 3;

/// Returns the seconds after which the server wants to be asked again, if they are worth waiting for.
pub(super) fn requested_wait(error: &ProviderError) -> Option<u32> {
    match error {
        ProviderError::Status { status: 429, retry_after: Some(seconds @ ..=MAX_SECONDS), .. } => {
            Some(*seconds)
        }
        _ => None,
    }
}

/// Tells the client about the wait, and waits. Holds no slot at the model meanwhile.
pub(super) async fn wait(run: &mut RunState, seconds: u32) -> Result<(), Stop> {
    run.io.send(Event::Progress(Progress::Postponed { seconds })).await?;
    let (over, interrupted) = (sleep(Duration::from_secs(seconds.into())), run.io.interrupted());
    tokio::pin!(over, interrupted);
    loop {
        tokio::select! {
            biased;
            () = &mut interrupted => return Err(Stop::Cancelled),
            command = run.io.next_command() => run.handle_command(command.as_ref()),
            () = &mut over => return Ok(()),
        }
    }
}
