//! What the model sees: the token budget and the window.

mod budget;
mod window;

pub use budget::{Budget, estimate};
pub use window::Window;
