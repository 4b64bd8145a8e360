//! The built-in inference engine: a model file in, tokens out, in this process and on its CPUs.
//!
//! [`Engine::open`] reads a GGUF file; [`Engine::generate`] reads a prompt and writes an answer. What a session
//! has been read stays in memory, so that its next turn reads only what is new. Nothing here knows about
//! messages, templates or tools; that is the provider's part.
//!
//! The file may be hostile: it is checked before memory is spent on it, and a panic while it is read or run
//! becomes an [`EngineError`].

mod cache;
mod error;
mod generate;
mod gguf;
mod network;
mod sampler;
mod search;
mod shape;
mod store;
mod tokens;
mod weights;

#[cfg(test)]
mod tests;

use std::{
    io::{BufReader, Cursor, Read, Seek},
    path::Path,
    sync::Mutex,
};

pub use error::EngineError;
pub use generate::{Constraint, Done, End, Job, Piece};
pub use shape::ARCHITECTURES;
pub use tokens::Tokens;

use crate::engine::{gguf::Gguf, network::Network, store::Store};

/// An open model. Weights and sessions are freed when it is dropped.
///
/// Runs one job at a time; a second one waits for the first. All calls block.
pub struct Engine {
    facts: Facts,
    tokens: Tokens,
    network: Network,
    store: Mutex<Store>,
    /// Lets one job in at a time.
    running: Mutex<()>,
}

/// What a model says about itself.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `general.architecture`; one of [`ARCHITECTURES`].
    pub architecture: String,
    /// `general.name`, where the file has one.
    pub name: Option<String>,
    /// Tokens that prompt and answer may have together: what the file says, or the limit given when it was opened.
    pub context: u32,
    /// Numbers in all tensors.
    pub parameters: u64,
    /// Bytes that the weights take in memory.
    pub bytes: u64,
    /// `tokenizer.chat_template`: Jinja, written by whoever made the file.
    pub template: Option<String>,
}

/// What an engine may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tokens of prompt and answer together; the model's own limit where that is lower or this is 0.
    pub context: u32,
    /// Bytes of sessions that are kept between jobs; the least recently used go first.
    pub kept: usize,
    /// Models of so many numbers or fewer are held as `f32` and written with by one core.
    pub small: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { context: 0, kept: 512 << 20, small: weights::SMALL }
    }
}

impl Engine {
    /// Reads a model file. Takes as long as reading all of it, and as much memory.
    ///
    /// # Errors
    ///
    /// [`EngineError::Open`] and [`EngineError::Broken`] for the file, [`EngineError::Architecture`] and
    /// [`EngineError::Unsupported`] for what is in it.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, EngineError> {
        let file = gguf::regular_file(path)?;
        error::guarded(move || Self::read(Gguf::read(BufReader::with_capacity(1 << 20, file))?, limits))
    }

    /// Reads a model that is part of the program.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`], without [`EngineError::Open`].
    pub fn from_bytes(bytes: &'static [u8], limits: Limits) -> Result<Self, EngineError> {
        error::guarded(move || Self::read(Gguf::read(Cursor::new(bytes))?, limits))
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Text to tokens and back.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    fn read<R: Read + Seek>(mut gguf: Gguf<R>, limits: Limits) -> Result<Self, EngineError> {
        let tokens = Tokens::take(&mut gguf)?;
        let network = Network::read(&mut gguf, tokens.len(), &limits)?;
        let facts = Facts {
            architecture: gguf.text("general.architecture").unwrap_or_default().to_owned(),
            name: gguf.text("general.name").map(str::to_owned),
            context: u32::try_from(network.shape.context).unwrap_or(u32::MAX),
            parameters: gguf.parameters(),
            bytes: network.bytes() as u64,
            template: gguf.text("tokenizer.chat_template").map(str::to_owned),
        };
        Ok(Self { facts, tokens, network, store: generate::store(limits.kept), running: Mutex::new(()) })
    }
}
