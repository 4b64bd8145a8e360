//! The right to go on with a parked run, which one client has at a time.

use std::{collections::HashSet, sync::Arc};

use kontekst_core::{Mutex, RunId};
use kontekst_store::{config::Home, parked::ParkedRuns};

use crate::run::{FailureKind, RunError};

/// The parked runs, and those of them that somebody goes on with now.
pub(crate) struct ParkedAccess {
    pub(crate) runs: ParkedRuns,
    claimed: Mutex<HashSet<RunId>>,
}

/// The right to go on with a parked run, or to remove it, until this is dropped.
pub(crate) struct Claim {
    access: Arc<ParkedAccess>,
    id: RunId,
}

impl ParkedAccess {
    pub(crate) fn new(home: &Home) -> Arc<Self> {
        Arc::new(Self { runs: ParkedRuns::new(home), claimed: Mutex::default() })
    }

    /// Takes the right to a parked run. It need not exist.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Request`] if somebody has it.
    pub(crate) fn claim(self: &Arc<Self>, id: &RunId) -> Result<Claim, RunError> {
        if self.claimed.lock().insert(id.clone()) {
            return Ok(Claim { access: Arc::clone(self), id: id.clone() });
        }
        let message = format!("another client goes on with the parked run `{id}` already");
        Err(RunError::new(FailureKind::Request, message).hint("its session shows what comes of it"))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.access.claimed.lock().remove(&self.id);
    }
}
