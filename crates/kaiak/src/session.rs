//! One session: its workspace, its settings, its active requests and its counters.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};

use kontekst_core::{Cancel, Mutex, clock};
use kontekst_tools::WorkDir;

use super::{
    error::{Code, RpcError},
    request::Request,
    settings::Settings,
};

/// The most active requests. Source: the seed's "Maximum 10 concurrent per session".
const MAX_REQUESTS: usize = 10;

/// The most calls of `kaiak/session/status` in [`STATUS_WINDOW`]. Source: the seed's "Maximum 100 per minute per
/// session".
const STATUS_CALLS: usize = 100;
const STATUS_WINDOW: Duration = Duration::from_secs(60);

pub(super) struct Session {
    pub(crate) id: String,
    pub(crate) work_dir: Arc<WorkDir>,
    /// The path of the workspace without symbolic links.
    pub(crate) canonical_path: PathBuf,
    pub(crate) settings: Settings,
    created_at: SystemTime,
    state: Mutex<State>,
}

struct State {
    terminated: bool,
    /// True once a request was made, even if none is active.
    has_had_request: bool,
    /// The newest is the last one.
    active_requests: Vec<Arc<Request>>,
    /// Notifications that were sent.
    messages: u64,
    errors: u64,
    updated_at: SystemTime,
    /// The calls of `status` in the last [`STATUS_WINDOW`], the oldest first.
    status_calls: VecDeque<Instant>,
    /// The connection that made or used the session last. Cancelled when that client is gone.
    connection: Cancel,
    idle_since: Instant,
}

impl Session {
    pub(super) fn new(
        work_dir: Arc<WorkDir>,
        canonical_path: PathBuf,
        settings: Settings,
        connection: Cancel,
    ) -> Self {
        let now = SystemTime::now();
        let state = State {
            terminated: false,
            has_had_request: false,
            active_requests: Vec::new(),
            messages: 0,
            errors: 0,
            updated_at: now,
            status_calls: VecDeque::new(),
            connection,
            idle_since: Instant::now(),
        };
        let id = uuid::Uuid::new_v4().to_string();
        Self { id, work_dir, canonical_path, settings, created_at: now, state: Mutex::new(state) }
    }

    pub(super) fn created_at(&self) -> String {
        clock::rfc3339_seconds(self.created_at)
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.state.lock().terminated
    }

    /// Returns when the session was last used, if its client is gone and no request is active.
    pub(super) fn abandoned_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        (state.connection.is_cancelled() && state.active_requests.is_empty()).then_some(state.idle_since)
    }

    /// Adds an active request.
    ///
    /// # Errors
    ///
    /// [`Code::SessionTerminated`], or [`Code::ResourceExhausted`] if there are [`MAX_REQUESTS`].
    pub(super) fn add_request(&self, request: &Arc<Request>, connection: &Cancel) -> Result<(), RpcError> {
        let mut state = self.state.lock();
        self.check_not_terminated(&state)?;
        let active = state.active_requests.len();
        if active >= MAX_REQUESTS {
            let data = json!({"limit": "concurrent_requests", "max": MAX_REQUESTS, "active": active});
            return Err(Code::ResourceExhausted.with(data));
        }
        state.active_requests.push(Arc::clone(request));
        state.has_had_request = true;
        state.connection = connection.clone();
        state.touch();
        Ok(())
    }

    pub(super) fn remove_request(&self, request: &str) {
        let mut state = self.state.lock();
        state.active_requests.retain(|active| active.id != request);
        state.touch();
    }

    /// Terminates the session and returns its active requests, which the caller cancels.
    ///
    /// # Errors
    ///
    /// [`Code::SessionTerminated`] if that was done before.
    pub(super) fn terminate(&self) -> Result<Vec<Arc<Request>>, RpcError> {
        let mut state = self.state.lock();
        self.check_not_terminated(&state)?;
        state.terminated = true;
        state.touch();
        Ok(state.active_requests.clone())
    }

    pub(super) fn message_count(&self) -> u64 {
        self.state.lock().messages
    }

    /// Counts one notification and calls `send` with its number. The lock is held meanwhile, so that the numbers on the
    /// wire rise.
    pub(super) fn send_numbered(&self, is_error: bool, send: impl FnOnce(u64)) {
        let mut state = self.state.lock();
        state.messages += 1;
        state.errors += u64::from(is_error);
        state.touch();
        send(state.messages);
    }

    /// Returns the result of `kaiak/session/status`.
    ///
    /// # Errors
    ///
    /// [`Code::ResourceExhausted`] if it was called too often in the last minute.
    pub(super) fn status(&self) -> Result<Value, RpcError> {
        self.status_at(Instant::now())
    }

    fn status_at(&self, now: Instant) -> Result<Value, RpcError> {
        let mut state = self.state.lock();
        while state.status_calls.front().is_some_and(|call| now.duration_since(*call) >= STATUS_WINDOW) {
            state.status_calls.pop_front();
        }
        if state.status_calls.len() >= STATUS_CALLS {
            let oldest = state.status_calls.front().map_or(Duration::ZERO, |call| now.duration_since(*call));
            let wait = STATUS_WINDOW.saturating_sub(oldest).as_millis();
            return Err(Code::ResourceExhausted.with(json!({
                "limit": "status_rate", "max": STATUS_CALLS, "window_seconds": STATUS_WINDOW.as_secs(),
                "retry_after_ms": u64::try_from(wait).unwrap_or(u64::MAX),
            })));
        }
        state.status_calls.push_back(now);
        let status = match &*state {
            State { terminated: true, .. } => "terminated",
            State { active_requests: active, .. } if !active.is_empty() => "processing",
            State { has_had_request: true, .. } => "ready",
            State { .. } => "created",
        };
        Ok(json!({
            "session_id": self.id,
            "status": status,
            "active_request_id": state.active_requests.last().map(|request| request.id.clone()),
            "message_count": state.messages,
            "error_count": state.errors,
            "created_at": clock::rfc3339_seconds(self.created_at),
            "updated_at": clock::rfc3339_seconds(state.updated_at),
        }))
    }

    fn check_not_terminated(&self, state: &State) -> Result<(), RpcError> {
        if state.terminated {
            return Err(Code::SessionTerminated.with(json!({"session_id": self.id})));
        }
        Ok(())
    }
}

impl State {
    fn touch(&mut self) {
        self.updated_at = SystemTime::now();
        self.idle_since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    #[test]
    fn status_may_be_asked_a_hundred_times_a_minute() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = Arc::new(WorkDir::without_home(dir.path()).unwrap());
        let settings = settings::read(None, &Default::default(), &Default::default()).unwrap();
        let session = Session::new(work_dir, dir.path().to_owned(), settings, Cancel::new());
        let start = Instant::now();
        let status = |seconds: u64| session.status_at(start + Duration::from_secs(seconds));
        for second in 0..100 {
            status(second / 2).unwrap();
        }
        let error = status(50).unwrap_err();
        assert_eq!(error.data.unwrap()["retry_after_ms"], 10_000);
        assert!(status(59).is_err());
        // The first two calls are a minute old now.
        assert!(status(60).is_ok() && status(60).is_ok() && status(60).is_err());
    }
}
