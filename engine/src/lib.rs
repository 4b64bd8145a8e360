//! Runs language models from GGUF files on the CPU: tokens in, tokens out.
//!
//! [`Engine::open`] reads a model file. [`Engine::generate`] reads a prompt and writes an answer token by token, held to
//! a [`Constraint`] if there is one. [`Engine::decode`] is the level below: it reads a prompt and lets the caller choose
//! the tokens. What a session has read stays in memory, so that its next turn reads only what is new. [`template`]
//! renders a conversation as the text of a prompt, with the chat template in the model file, and [`grammar`] holds an
//! answer to a JSON schema.
//!
//! The file may be hostile: it is checked before memory is spent on it, and a panic while it is read or run becomes an
//! [`EngineError`].
//!
//! Without the feature `inference` only [`gguf`], the reader of file headers, and [`chat`], the form of messages, are
//! compiled.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod chat;
pub mod gguf;

#[cfg(feature = "inference")]
mod decoder;
#[cfg(feature = "inference")]
mod engine;
#[cfg(feature = "inference")]
mod error;
#[cfg(feature = "inference")]
mod generate;
#[cfg(feature = "inference")]
pub mod grammar;
#[cfg(feature = "inference")]
mod kernels;
#[cfg(feature = "inference")]
mod layer;
#[cfg(feature = "inference")]
mod model_file;
#[cfg(feature = "inference")]
mod network;
#[cfg(all(feature = "inference", any(test, feature = "test-support")))]
pub mod random_model;
#[cfg(feature = "inference")]
mod rotary;
#[cfg(feature = "inference")]
mod sampler;
#[cfg(feature = "inference")]
mod sequence_cache;
#[cfg(feature = "inference")]
mod session_store;
#[cfg(feature = "inference")]
mod shape;
#[cfg(feature = "inference")]
pub mod template;
#[cfg(feature = "inference")]
mod vocabulary;
#[cfg(feature = "inference")]
mod weights;

#[cfg(feature = "inference")]
#[cfg(test)]
mod tests;

#[cfg(feature = "inference")]
pub use self::{
    decoder::{DecodeError, Decoder, PrefillProgress, Prompt},
    engine::{Engine, Limits, ModelInfo},
    error::EngineError,
    generate::{Constraint, Event, FinishReason, GenerateRequest, Generation},
    sampler::Sampling,
    shape::ARCHITECTURES,
    vocabulary::{Encoder, Utf8Decoder, Vocabulary},
};
