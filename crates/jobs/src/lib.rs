//! Prompts that run at set times: `jobs/ID.toml`, with their schedules, and what came of their last runs.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod calendar;
mod runner;
mod schedule;
mod state;
mod store;
pub mod systemd;
mod timer;

#[cfg(test)]
mod tests;

pub use calendar::BadSchedule;
pub use runner::{INTERVAL, Runner, UMASK};
pub use schedule::Schedule;
pub use state::{JobState, RunResult};
pub use store::{Job, JobError, Jobs, Running, named_zone};
pub use timer::JobTimer;
