//! Model files: finds those on this machine, reads their headers, and downloads others.
//!
//! Nothing here loads a model or talks to a model server. File headers are untrusted input. Directories and addresses
//! are parameters, because nothing below the command line reads the environment.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod info;
mod quantisation;
pub mod template;

pub mod memory;

pub mod digest;
pub mod families;
pub mod profile;

mod best;
mod catalog;
mod offer;
mod split;

pub mod pull;
pub mod selection;

pub use best::candidates;
pub use catalog::{Model, ModelCatalog, ModelOrigin};
pub use info::ModelInfo;
pub use kontekst_engine::gguf;
pub use offer::{Offer, Room};
