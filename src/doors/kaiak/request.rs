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
    pub over: Cancel,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Going,
    Cancelling,
    Over(Ending),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    Failed,
    Cancelled,
}

impl Ending {
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
            over: Cancel::new(),
            phase: Mutex::new(Phase::Going),
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
            if *phase != Phase::Going {
                let status = match *phase {
                    Phase::Over(Ending::Success) => "completed",
                    Phase::Over(ending) => ending.as_str(),
                    Phase::Going | Phase::Cancelling => "cancelled",
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
    pub(super) fn close(&self, ending: Ending) -> Ending {
        let mut phase = self.phase();
        let ending = if *phase == Phase::Cancelling { Ending::Cancelled } else { ending };
        *phase = Phase::Over(ending);
        ending
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
