//! One `kaiak/fix/generate` from its answer to its ending.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use uuid::Uuid;

use crate::core::Cancel;

use super::error::{Code, RpcError};

pub(super) struct Request {
    pub id: String,
    /// Stops its runs; the connection's end does, too.
    pub cancel: Cancel,
    /// Given when its last notification is on its way.
    pub finished: Cancel,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Cancelling,
    Finished(RequestOutcome),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    Success,
    Failed,
    Cancelled,
}

impl RequestOutcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Request {
    pub(super) fn new(connection: &Cancel) -> Self {
        Self {
            id: format!("req-{}", Uuid::new_v4()),
            cancel: connection.child(),
            finished: Cancel::new(),
            phase: Mutex::new(Phase::Running),
        }
    }

    /// Stops it.
    ///
    /// # Errors
    ///
    /// [`Code::RequestCompleted`] when it is over or somebody else has stopped it.
    pub(super) fn stop(&self) -> Result<(), RpcError> {
        {
            let mut phase = self.phase();
            if *phase != Phase::Running {
                let status = match *phase {
                    Phase::Finished(RequestOutcome::Success) => "completed",
                    Phase::Finished(ending) => ending.as_str(),
                    Phase::Running | Phase::Cancelling => "cancelled",
                };
                let data = json!({"request_id": self.id, "status": status});
                return Err(Code::RequestCompleted.with(data));
            }
            *phase = Phase::Cancelling;
        }
        self.cancel.cancel();
        Ok(())
    }

    /// Ends it; one that was stopped ends as cancelled, whatever its runs did meanwhile.
    pub(super) fn finish(&self, ending: RequestOutcome) -> RequestOutcome {
        let mut phase = self.phase();
        let ending = if *phase == Phase::Cancelling { RequestOutcome::Cancelled } else { ending };
        *phase = Phase::Finished(ending);
        ending
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
