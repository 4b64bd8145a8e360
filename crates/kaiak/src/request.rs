//! The state of one `kaiak/fix/generate`, from its answer to its end.

use serde_json::json;
use uuid::Uuid;

use kontekst_core::{Cancel, Mutex};

use super::error::{Code, RpcError};

pub(super) struct Request {
    pub(crate) id: String,
    /// Cancels the runs of the request. The end of the connection cancels it as well.
    pub(crate) cancel: Cancel,
    /// Cancelled when the last notification has been queued.
    pub(crate) finished: Cancel,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Cancelling,
    Finished(RequestOutcome),
}

/// The end of a request.
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

    /// Cancels the request.
    ///
    /// # Errors
    ///
    /// [`Code::RequestCompleted`] if the request is over or was cancelled before.
    pub(super) fn stop(&self) -> Result<(), RpcError> {
        {
            let mut phase = self.phase.lock();
            if *phase != Phase::Running {
                let status = match *phase {
                    Phase::Finished(RequestOutcome::Success) => "completed",
                    Phase::Finished(outcome) => outcome.as_str(),
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

    /// Ends the request and returns its outcome. A cancelled request ends as cancelled, whatever its runs did in the
    /// meantime.
    pub(super) fn finish(&self, outcome: RequestOutcome) -> RequestOutcome {
        let mut phase = self.phase.lock();
        let outcome = if *phase == Phase::Cancelling { RequestOutcome::Cancelled } else { outcome };
        *phase = Phase::Finished(outcome);
        outcome
    }
}
