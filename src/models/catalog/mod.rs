//! The models on this machine: our own directory, and what other programs have fetched already.

mod ollama;
mod tree;

use std::path::{Path, PathBuf};

use super::{ModelInfo, gguf::GgufError};

/// Directories to look in; those that do not exist hold nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelCatalog {
    /// Ours: only what is directly in it can be run.
    pub model_dir: PathBuf,
    /// Of Hugging Face: `models--ORG--NAME/snapshots/REVISION/…`.
    pub hubs: Vec<PathBuf>,
    /// Of Ollama: `manifests/` and `blobs/`.
    pub ollama: Vec<PathBuf>,
    /// Of LM Studio: `ORG/NAME/FILE.gguf`.
    pub lm_studio: Vec<PathBuf>,
    /// Of llama.cpp, flat.
    pub llama_cpp: Vec<PathBuf>,
}

/// Whose directory a model is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelOrigin {
    /// Part of the program.
    BuiltIn,
    ModelDir,
    HuggingFace,
    LmStudio,
    LlamaCpp,
    Ollama,
}

impl ModelOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::ModelDir => "model_dir",
            Self::HuggingFace => "Hugging Face",
            Self::LmStudio => "LM Studio",
            Self::LlamaCpp => "llama.cpp",
            Self::Ollama => "Ollama",
        }
    }
}

/// A model on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Model {
    pub origin: ModelOrigin,
    /// The name of its (first) file, or `NAME:TAG` of Ollama.
    pub name: String,
    /// `ORG/NAME` where its place tells.
    pub repository: Option<String>,
    /// All that are there, in order. At least one, but for the built-in model.
    pub files: Vec<PathBuf>,
    /// Files of it that are not there.
    pub missing: u32,
    /// Of all its files together.
    pub bytes: u64,
}

impl Model {
    /// What its headers say.
    ///
    /// # Errors
    ///
    /// [`GgufError`] of the first header that cannot be read.
    pub fn info(&self) -> Result<ModelInfo, GgufError> {
        ModelInfo::read(self.files.iter().map(PathBuf::as_path))
    }

    /// The file that a server is given.
    pub fn file(&self) -> &Path {
        &self.files[0]
    }

    /// Whether somebody who says `asked` may mean this one: its name with or without `.gguf`,
    /// `ORG/NAME:FILE`, or its path.
    pub fn answers_to(&self, asked: &str) -> bool {
        let name_is = |asked: &str| asked == self.name || self.name.strip_suffix(".gguf") == Some(asked);
        let asked = asked.strip_prefix("hf:").unwrap_or(asked);
        let in_repository = self.repository.as_deref().is_some_and(|repository| {
            let rest = asked.strip_prefix(repository);
            rest.is_some_and(|rest| rest.strip_prefix(':').is_some_and(name_is))
        });
        name_is(asked) || in_repository || Path::new(asked) == self.file()
    }
}

/// Everything there is, ours first, each file once.
///
/// What cannot be read is left out; links are followed, four directories deep.
pub fn list(places: &ModelCatalog) -> Vec<Model> {
    let mut models = tree::models(&places.model_dir, 0, ModelOrigin::ModelDir, &|_| None);
    for hub in &places.hubs {
        for (repository, snapshots) in tree::repositories(hub) {
            let named = |_: &Path| Some(repository.clone());
            models.extend(tree::models(&snapshots, 4, ModelOrigin::HuggingFace, &named));
        }
    }
    for root in &places.lm_studio {
        let named = |dir: &Path| {
            let mut names = dir.strip_prefix(root).ok()?.iter().map(|name| name.to_str());
            Some(format!("{}/{}", names.next()??, names.next()??))
        };
        models.extend(tree::models(root, 3, ModelOrigin::LmStudio, &named));
    }
    for root in &places.llama_cpp {
        models.extend(tree::models(root, 0, ModelOrigin::LlamaCpp, &|_| None));
    }
    for root in &places.ollama {
        models.extend(ollama::models(root));
    }
    models.sort();
    // Two revisions of a repository, or two caches, may lead to the same bytes; a link in `model_dir` to
    // one of them is what makes it usable, and stays a line of its own.
    let mut seen = std::collections::BTreeSet::new();
    models.retain(|model| {
        let id = std::fs::metadata(model.file()).map(|meta| {
            use std::os::unix::fs::MetadataExt as _;
            (meta.dev(), meta.ino())
        });
        model.origin == ModelOrigin::ModelDir || id.map_or(true, |id| seen.insert(id))
    });
    models
}

/// The models that somebody may mean, ours first.
pub fn find(places: &ModelCatalog, asked: &str) -> Option<Model> {
    list(places).into_iter().find(|model| model.answers_to(asked))
}

#[cfg(test)]
mod tests;
