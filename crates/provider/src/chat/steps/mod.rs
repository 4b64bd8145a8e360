//! Steps: every answer of the model is one JSON object that calls one tool, or that ends the task with an answer.
//!
//! The server decodes the answer under a JSON schema with one alternative for each tool, so the model can write nothing
//! but a valid call. Small models need that: in free text they invent tools, quote calls as code, and announce actions
//! instead of calling them. The tools are described in the system text, which is the same in every turn.

mod form;
mod schema;
mod step_parser;

pub use form::REMINDER;
pub(crate) use form::{answer_as_step, call_as_step, result_as_text, system_with_steps, whole_file};
pub use schema::{DONE, MORE};
#[cfg(feature = "builtin")]
pub(crate) use schema::{STEP_START, step_schema};
pub(crate) use schema::{can_call, response_format};
pub(crate) use step_parser::StepParser;

/// Models with fewer parameters work in steps unless the agent says otherwise. From about this size on, models follow
/// the form of calls that they were trained for.
pub const SMALL_MODEL: u64 = 8_000_000_000;

/// Models with fewer parameters always work in steps.
pub const VERY_SMALL_MODEL: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
