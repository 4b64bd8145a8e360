//! The identity of the model that answers.

use std::path::PathBuf;

/// A model, by what settings that were measured for it are found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelIdentity {
    /// A file that this program, or a llama-server that it started, has loaded.
    File(PathBuf),
    /// A model at a server. The server's address has no slash at its end.
    Served { endpoint: String, model: String },
}

impl ModelIdentity {
    /// Returns the name of the model: of a file without its directory and without `.gguf`.
    pub fn name(&self) -> String {
        match self {
            Self::File(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Served { model, .. } => model.strip_suffix(".gguf").unwrap_or(model).to_owned(),
        }
    }
}
