//! What the model reads: the context window of a run and the token arithmetic behind it.

mod budget;
mod truncate;
mod window;

pub use budget::{Budget, estimate};
pub use truncate::truncate_output;
pub use window::{Dropped, Window};
