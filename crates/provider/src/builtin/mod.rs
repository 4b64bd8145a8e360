//! Models that run in this process: any GGUF file that the engine can run, and the starter model.

mod chat_model;
mod inline_references;
mod loaded_model;
mod open_models;
mod prompt;
pub mod template_process;
mod turn_builder;

/// The architectures that the engine runs, as `general.architecture` calls them.
pub use kontekst_engine::ARCHITECTURES;
/// The starter model, as a GGUF file.
pub use kontekst_starter::MODEL as BYTES;

pub(crate) use self::open_models::{ModelSource, OpenError, OpenModels};
pub use super::starter::NAME;
pub(crate) use super::{engine_settings::Settings, starter::notice};

/// This program has the engine and the starter model.
pub const AVAILABLE: bool = true;
