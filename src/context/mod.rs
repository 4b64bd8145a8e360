//! What the model reads: the context window of a run and the token arithmetic behind it.

mod budget;
mod truncate;
mod window;

pub(crate) use budget::{Budget, estimate};
pub(crate) use truncate::truncate_output;
pub(crate) use window::{Dropped, Window};
