//! The context window of a run, and its token arithmetic.

mod budget;
mod truncate;
mod window;

pub(crate) use budget::{Budget, estimate, image_tokens};
pub(crate) use truncate::truncate_output;
pub(crate) use window::{Dropped, Window};
