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
//! Everything that runs models is in `inference/`. Without the feature of that name only [`gguf`], the reader of file
//! headers, and [`chat`], the form of messages, are compiled.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod chat;
pub mod gguf;

#[cfg(feature = "inference")]
mod inference;

#[cfg(feature = "inference")]
pub use self::inference::*;
