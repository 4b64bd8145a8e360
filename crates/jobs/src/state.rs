//! The state of a job: the time up to which its runs are done, and its last results.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The number of results of one job that are kept.
const MAX_RESULTS: usize = 20;

/// The state of a job, `jobs/ID.state.json`. Only the holder of [`super::Running`] changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobState {
    /// The moment at which the last scheduled run began. What was due before it is not made up for.
    pub handled: Option<Timestamp>,
    /// The last runs, oldest first.
    pub results: Vec<RunResult>,
}

/// The end of one run of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    pub started: Timestamp,
    pub finished: Timestamp,
    /// The exit code of `kontekst run`. `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// The first line of the answer, cut at a length.
    pub answer: String,
    /// The end of what was printed to stderr.
    pub messages: String,
    /// The session that has the whole answer.
    pub session: String,
}

impl JobState {
    /// Adds a result, and forgets the oldest ones.
    pub fn add(&mut self, result: RunResult) {
        self.results.push(result);
        let excess = self.results.len().saturating_sub(MAX_RESULTS);
        self.results.drain(..excess);
    }
}
