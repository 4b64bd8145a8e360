//! Runs that wait on disk for a decision: each is a file, `parked/RUN.json`, with what is needed to go on.
//!
//! The conversation is in the session of the run. What has happened to a call is there, too: the mark that it has started is
//! synced before its effect, and its result after it.

mod record;
mod store;

#[cfg(test)]
mod tests;

pub use record::{ParkedCall, ParkedRun, RunSettings};
#[cfg(test)]
pub(crate) use store::KEEP_DAYS;
pub use store::{ParkedError, ParkedRuns};
