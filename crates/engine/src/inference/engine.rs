//! An open model.

use std::{
    io::{BufReader, Cursor, Read, Seek},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    gguf,
    inference::{
        error::{self, EngineError},
        model_file::ModelFile,
        network::Network,
        sampler::Sampling,
        session_store::SessionStore,
        vocabulary::Vocabulary,
        weights,
    },
};

/// An open model. Dropping it frees the weights and the caches of all sessions.
///
/// Works on one request at a time; a second one waits for the first. All calls block.
pub struct Engine {
    info: ModelInfo,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) network: Network,
    pub(crate) sessions: Mutex<SessionStore>,
    /// Held while a request is worked on.
    pub(crate) running: Mutex<()>,
}

/// A description of the model from its file.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// `general.architecture`: one of [`crate::ARCHITECTURES`].
    pub architecture: String,
    /// `general.name`, where the file has one.
    pub name: Option<String>,
    /// Tokens that a prompt and its answer may have together: the limit of the file, or a lower one of [`Limits`].
    pub context_size: u32,
    /// The number of elements of all tensors.
    pub parameters: u64,
    /// Bytes of memory that the weights take.
    pub weight_bytes: u64,
    /// `tokenizer.chat_template`: Jinja, written by whoever made the file.
    pub chat_template: Option<String>,
    /// The sampling that the file asks for, with the defaults where it does not.
    pub sampling: Sampling,
}

/// Limits on what an engine uses.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tokens of a prompt and its answer together. The model's own limit holds where that is lower or this is 0.
    pub context_size: u32,
    /// Bytes of memory for the caches of sessions between requests. The least recently used are dropped first.
    pub session_bytes: usize,
    /// Models of at most this many parameters are held as `f32` and run on one core.
    pub small_model: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { context_size: 0, session_bytes: 512 << 20, small_model: weights::SMALL_MODEL }
    }
}

impl Engine {
    /// Reads a model file. Takes as long as reading all of it, and as much memory.
    ///
    /// # Errors
    ///
    /// [`EngineError::Open`], [`EngineError::Header`] and [`EngineError::Broken`] for the file,
    /// [`EngineError::Architecture`] and [`EngineError::Unsupported`] for a model that this engine cannot run.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, EngineError> {
        let file = gguf::open_regular_file(path)
            .map_err(|source| EngineError::Open { path: path.to_owned(), source })?;
        error::catch_panic(move || {
            Self::read(ModelFile::read(BufReader::with_capacity(1 << 20, file))?, limits)
        })
    }

    /// Reads a model that is part of the program.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`], without [`EngineError::Open`].
    pub fn from_bytes(bytes: &'static [u8], limits: Limits) -> Result<Self, EngineError> {
        error::catch_panic(move || Self::read(ModelFile::read(Cursor::new(bytes))?, limits))
    }

    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Drops the cache of a session.
    pub fn forget(&self, session: &str) {
        let cache = lock(&self.sessions).take(session);
        drop(cache);
    }

    /// Bytes of memory that the caches of all sessions take.
    pub fn session_bytes(&self) -> usize {
        lock(&self.sessions).bytes()
    }

    fn read<R: Read + Seek>(mut file: ModelFile<R>, limits: Limits) -> Result<Self, EngineError> {
        let vocabulary = Vocabulary::take(&mut file)?;
        let network = Network::read(&mut file, vocabulary.len(), &limits)?;
        let info = ModelInfo {
            architecture: file.string("general.architecture").unwrap_or_default().to_owned(),
            name: file.string("general.name").map(str::to_owned),
            context_size: u32::try_from(network.shape.context).unwrap_or(u32::MAX),
            parameters: file.parameters(),
            weight_bytes: network.bytes() as u64,
            chat_template: file.string("tokenizer.chat_template").map(str::to_owned),
            sampling: sampling_of(&file),
        };
        let sessions = Mutex::new(SessionStore::new(limits.session_bytes));
        Ok(Self { info, vocabulary, network, sessions, running: Mutex::new(()) })
    }
}

/// Reads `general.sampling.*`, as llama.cpp's server does. A value that makes no sense counts as absent.
fn sampling_of<R>(file: &ModelFile<R>) -> Sampling {
    let default = Sampling::default();
    let number = |key: &str, most: f32| {
        let value = file.float(&format!("general.sampling.{key}"))?;
        (0.0..=most).contains(&value).then_some(value)
    };
    Sampling {
        temperature: number("temp", 5.0).unwrap_or(default.temperature),
        top_k: file.size("general.sampling.top_k").unwrap_or(default.top_k),
        top_p: number("top_p", 1.0).unwrap_or(default.top_p),
        repeat_penalty: number("penalty_repeat", 2.0)
            .filter(|&penalty| penalty > 0.0)
            .unwrap_or(default.repeat_penalty),
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
