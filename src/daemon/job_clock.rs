//! The clock of the daemon: starts the jobs whose time has come.

use std::{
    collections::HashSet,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{Timestamp, tz::TimeZone};

use crate::{
    config::Home,
    core::{Cancel, Name, blocking, blocking_apart},
    jobs::Jobs,
};

/// The time between two looks at the jobs. The wall clock may be set and the machine may sleep, so no longer time would be
/// certain to end when a job is due. A look without jobs is one system call.
const INTERVAL: Duration = Duration::from_secs(30);

/// The most jobs that run at a time. Most models answer one prompt after another anyway.
const MAX_AT_ONCE: usize = 2;

/// Runs jobs, each as a process of its own: `kontekst jobs run`.
pub(super) struct JobClock {
    home: Home,
    program: PathBuf,
    running: Arc<Mutex<HashSet<Name>>>,
}

impl JobClock {
    /// Makes a clock. `program` is kontekst itself.
    pub(super) fn new(home: Home, program: PathBuf) -> Self {
        Self { home, program, running: Arc::default() }
    }

    /// Starts what is due, again and again, until `stop` is cancelled.
    pub(super) async fn run(self, stop: Cancel) {
        loop {
            let jobs = Jobs::new(&self.home);
            let due = blocking(move || due_now(&jobs)).join().await;
            due.unwrap_or_default().into_iter().for_each(|id| self.start(id));
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    fn start(&self, id: Name) {
        {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            if running.len() >= MAX_AT_ONCE || !running.insert(id.clone()) {
                return;
            }
        }
        tracing::info!(job = %id, "starting a job");
        let mut command = Command::new(&self.program);
        command.args(["jobs", "run", id.as_str(), "--due"]).env("KONTEKST_HOME", self.home.root());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Arc::clone(&self.running);
        blocking_apart("job", move || {
            match command.status() {
                Ok(status) => tracing::info!(job = %id, %status, "a job has ended"),
                Err(error) => tracing::warn!(job = %id, %error, "a job could not be started"),
            }
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
    }
}

/// Returns the jobs whose time has come. The time zone is looked up only if there are any.
fn due_now(jobs: &Jobs) -> Vec<Name> {
    match jobs.ids() {
        Ok(ids) if !ids.is_empty() => jobs.due(Timestamp::now(), &TimeZone::system()),
        _ => Vec::new(),
    }
}
