//! Runs models: the network and its kernels, the vocabulary, the chat template and the grammar.

mod decoder;
mod engine;
mod error;
mod generate;
pub mod grammar;
mod kernels;
mod layer;
mod model_file;
mod network;
#[cfg(any(test, feature = "random-model"))]
pub mod random_model;
mod rotary;
mod sampler;
mod sequence_cache;
mod session_store;
mod shape;
mod speculation;
pub mod template;
mod vocabulary;
mod weights;

#[cfg(test)]
mod tests;

#[cfg(feature = "test-support")]
pub use self::kernels::without_avx512;
pub use self::{
    decoder::{DecodeError, Decoder, PrefillProgress, Prompt},
    engine::{Engine, Limits, ModelInfo},
    error::EngineError,
    generate::{Constraint, Event, FinishReason, GenerateRequest, Generation},
    sampler::Sampling,
    shape::ARCHITECTURES,
    vocabulary::{Encoder, Utf8Decoder, Vocabulary},
};
