//! Returns freed memory to the system.

use std::time::Duration;

use tokio::time::sleep;

use kontekst_agent::AgentCore;
use kontekst_core::{Cancel, FREE_FOR, return_free_memory};

use super::open_connections::OpenConnections;

/// The time between two returns while a run is in progress.
const DURING_A_RUN: Duration = Duration::from_secs(1);

/// Returns what runs and connections have freed, a moment after one of them has begun or ended, and now and then while a run
/// is in progress. An idle daemon never wakes for it. Ends with `stop`.
pub(super) async fn return_regularly(connections: OpenConnections, core: AgentCore, stop: Cancel) {
    let mut connections = connections.changes();
    let mut runs = Box::pin(core.runs_changed());
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = connections.changed() => {}
            () = &mut runs => {}
            () = sleep(DURING_A_RUN), if core.active_runs() > 0 => {}
        }
        // A run that begins or ends during the wait below has to wake this task once more, or what it frees would stay.
        runs.set(core.runs_changed());
        sleep(FREE_FOR).await;
        return_free_memory();
    }
}
