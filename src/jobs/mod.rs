//! Prompts that run at set times: `jobs/ID.toml`, with their schedules, and what came of their last runs.

mod calendar;
mod runner;
mod schedule;
mod state;
mod store;
mod timer;

#[cfg(test)]
mod tests;

pub(crate) use calendar::BadSchedule;
pub(crate) use runner::{INTERVAL, Runner, UMASK};
pub(crate) use schedule::Schedule;
pub(crate) use state::{JobState, RunResult};
pub(crate) use store::{Job, JobError, Jobs, Running, named_zone};
pub(crate) use timer::JobTimer;
