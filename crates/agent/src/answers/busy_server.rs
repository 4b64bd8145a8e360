//! Waits for a model server that tells its clients to ask again later.

use std::time::Duration;

use tokio::time::sleep;

use kontekst_provider::{Progress, ProviderError};

use crate::{
    run::{Event, Stop},
    state::RunState,
};

/// The longest wait that a server may ask for, in seconds. A limit for each minute ends within it; after a limit for each
/// day, a person would wait in vain.
const MAX_SECONDS: u32 = 60;

/// The number of times that one answer is waited for.
pub(crate) const MAX_WAITS: usize = 3;

/// Returns the seconds after which the server is asked again after so many waits: what it wants, if that is worth waiting for,
/// or else a time that doubles.
pub(crate) fn wait_after(error: &ProviderError, waits: usize) -> Option<u32> {
    let ProviderError::Status { status: 429 | 503 | 529, retry_after, .. } = error else { return None };
    retry_after.or(Some(1 << waits)).filter(|seconds| *seconds <= MAX_SECONDS)
}

/// Tells the client about the wait, and waits. Holds no slot at the model meanwhile.
pub(crate) async fn wait(run: &mut RunState, seconds: u32) -> Result<(), Stop> {
    run.io.send(Event::Progress(Progress::Postponed { seconds })).await?;
    run.io.wait_for(sleep(Duration::from_secs(seconds.into()))).await
}
