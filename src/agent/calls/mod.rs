//! The calls of one turn: checked, proposed, decided and run.

mod approval;
mod batch;
mod check;
mod execute;
mod plan;

pub(super) use batch::run_calls;
pub(super) use check::check_calls;
