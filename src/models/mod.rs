//! Model files: what is on this machine, what their headers say, and how more of them get here.
//!
//! Nothing in here loads a model or talks to a model server. Headers come from strangers and are never
//! trusted; directories and addresses come in as values, since nothing below the command line reads the
//! environment.

pub mod info;
mod quantisation;
pub mod template;

pub mod memory;

pub mod catalog;
pub mod split;

pub mod pull;
pub mod selection;

pub use catalog::{Model, ModelCatalog, ModelOrigin};
pub use info::ModelInfo;
pub use kontekst_engine::gguf;
