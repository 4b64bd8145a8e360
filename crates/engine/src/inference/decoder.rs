//! Reads a prompt and then continues it token by token, as its caller chooses.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use crate::{
    Engine, EngineError,
    inference::{
        engine::lock, error::catch_panic, kernels::FEW, sequence_cache::SequenceCache, vocabulary::Vocabulary,
    },
};

/// Tokens that are read at once, between two reports of progress.
const BATCH: usize = 64;

/// Tokens that [`Decoder::step_each`] reads at most.
pub(crate) const MOST_AT_ONCE: usize = FEW;

/// A prompt that is to be read.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    pub tokens: &'a [u32],
    /// The name of the session that the prompt belongs to. Its cache is kept under this name, so that the next prompt
    /// of the session reads only what is new. Without a name nothing is kept.
    pub session: Option<&'a str>,
}

/// The progress of reading a prompt, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillProgress {
    /// Includes the tokens that were in the session's cache.
    pub processed: u32,
    pub total: u32,
}

/// The reason why decoding ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("cancelled")]
    Cancelled,
    /// A callback returned [`ControlFlow::Break`].
    #[error("the receiver wants no more")]
    SinkClosed,
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A prompt that was read, and the tokens that were read after it.
pub struct Decoder<'a> {
    engine: &'a Engine,
    cache: &'a mut SequenceCache,
    stop: &'a dyn Fn() -> bool,
    prompt_tokens: usize,
    cached_tokens: usize,
    prefill_time: Duration,
    /// Those after the last tokens that were read, one token after the other.
    logits: Vec<f32>,
}

impl Engine {
    /// Reads `prompt` on this thread and the other cores, then has `decode` continue it. Waits for a request that is
    /// worked on.
    ///
    /// `stop` is called before each layer of each step; when it returns true, decoding ends with
    /// [`DecodeError::Cancelled`]. `on_progress` is called after every 64 tokens of the prompt. Whatever was read until
    /// then is kept for the session, unless the engine itself failed: then the session is read anew.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], among others with [`EngineError::TooLong`], with [`EngineError::Unsupported`] for a token that
    /// the model does not have, and with the error of `decode`.
    pub fn decode<T>(
        &self,
        prompt: Prompt<'_>,
        stop: &dyn Fn() -> bool,
        on_progress: &mut dyn FnMut(PrefillProgress) -> ControlFlow<()>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.check(prompt.tokens)?;
        let _one_at_a_time = lock(&self.running);
        let mut cache = self.take_cache(prompt);
        let result = catch_panic(|| {
            let mut decoder = Decoder::prefill(self, &mut cache, prompt.tokens, stop, on_progress)?;
            decode(&mut decoder)
        });
        if let Some(session) = prompt.session
            && !matches!(result, Err(DecodeError::Engine(_)))
        {
            lock(&self.sessions).put(session, cache);
        }
        result
    }

    /// Counts the tokens at the start of `prompt` that this session would not have to read again.
    pub fn cached_tokens(&self, session: &str, prompt: &[u32]) -> usize {
        let sessions = lock(&self.sessions);
        let own = sessions.get(session).map_or(0, |cache| cache.common_prefix(prompt));
        let other = sessions.longest_common_prefix(prompt);
        other.map_or(own, |(common, _)| if common >= own + BATCH { common } else { own })
    }

    fn check(&self, prompt: &[u32]) -> Result<(), EngineError> {
        let context = self.network.shape.context;
        if prompt.len() >= context {
            return Err(EngineError::TooLong { prompt: to_u32(prompt.len()), context: to_u32(context) });
        }
        if prompt.is_empty() || prompt.iter().any(|&id| id as usize >= self.vocabulary.len()) {
            return Err(EngineError::Unsupported("a prompt of tokens that it does not have".to_owned()));
        }
        Ok(())
    }

    /// Takes the session's cache, or copies that of another session that shares much more of the prompt: a new
    /// conversation begins as others do, with the same instructions and tools.
    fn take_cache(&self, prompt: Prompt<'_>) -> SequenceCache {
        let mut sessions = lock(&self.sessions);
        let own = prompt.session.and_then(|session| sessions.take(session));
        let mut cache = own.unwrap_or_else(|| SequenceCache::new(&self.network.shape));
        if prompt.session.is_some()
            && let Some((common, other)) = sessions.longest_common_prefix(prompt.tokens)
            && common >= cache.common_prefix(prompt.tokens) + BATCH
        {
            cache.clone_from(other);
        }
        cache
    }
}

impl<'a> Decoder<'a> {
    fn prefill(
        engine: &'a Engine,
        cache: &'a mut SequenceCache,
        prompt: &[u32],
        stop: &'a dyn Fn() -> bool,
        on_progress: &mut dyn FnMut(PrefillProgress) -> ControlFlow<()>,
    ) -> Result<Self, DecodeError> {
        let started = Instant::now();
        // The last token is always read again, because the logits after it are not kept.
        let cached_tokens = cache.common_prefix(prompt).min(prompt.len() - 1);
        cache.rewind(cached_tokens);
        let mut logits = Vec::new();
        for batch in prompt[cached_tokens..].chunks(BATCH) {
            let is_last = cache.tokens.len() + batch.len() == prompt.len();
            logits = engine.network.read_tokens(cache, batch, usize::from(is_last), stop)?;
            let progress =
                PrefillProgress { processed: to_u32(cache.tokens.len()), total: to_u32(prompt.len()) };
            if on_progress(progress).is_break() {
                return Err(DecodeError::SinkClosed);
            }
        }
        let (prompt_tokens, prefill_time) = (prompt.len(), started.elapsed());
        Ok(Self { engine, cache, stop, prompt_tokens, cached_tokens, prefill_time, logits })
    }

    pub fn vocabulary(&self) -> &'a Vocabulary {
        &self.engine.vocabulary
    }

    /// The number of tokens of the prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    /// The number of tokens of the prompt that were in the session's cache.
    pub fn cached_tokens(&self) -> usize {
        self.cached_tokens
    }

    /// The time that reading the prompt took.
    pub fn prefill_time(&self) -> Duration {
        self.prefill_time
    }

    /// The number of tokens that fit in the context window after the prompt.
    pub fn room(&self) -> usize {
        self.engine.network.shape.context - self.prompt_tokens
    }

    /// All tokens that were read: the prompt, and those of [`Decoder::step`].
    pub fn tokens(&self) -> &[u32] {
        &self.cache.tokens
    }

    /// The tokens that were read after the prompt.
    pub fn answer(&self) -> &[u32] {
        &self.cache.tokens[self.prompt_tokens..]
    }

    /// The logits of each token of the vocabulary to come next, after the tokens that were read last.
    pub fn logits(&self) -> &[f32] {
        let last = self.logits.len() - self.engine.network.outputs();
        &self.logits[last..][..self.engine.vocabulary.len()]
    }

    /// Reads `tokens` and computes the logits after the last of them.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Cancelled`], or the failure of the engine. No token was read then.
    pub fn step(&mut self, tokens: &[u32]) -> Result<(), DecodeError> {
        self.read(tokens, 1)
    }

    /// Reads at most `MOST_AT_ONCE` tokens as if one after the other, and computes the logits after each of them.
    ///
    /// # Errors
    ///
    /// As [`Decoder::step`].
    pub fn step_each(&mut self, tokens: &[u32]) -> Result<(), DecodeError> {
        self.read(tokens, tokens.len())
    }

    fn read(&mut self, tokens: &[u32], wanted: usize) -> Result<(), DecodeError> {
        self.logits = self.engine.network.read_tokens(self.cache, tokens, wanted, self.stop)?;
        Ok(())
    }

    /// Goes back to where only `length` tokens had been read after the prompt. The logits are those of the last step
    /// until the next one.
    pub fn rewind(&mut self, length: usize) {
        self.cache.rewind(self.prompt_tokens + length);
    }

    /// Returns all tokens that were read but the last `ahead`, and the logits after them, which a sampler may change.
    pub(crate) fn before_last(&mut self, ahead: usize) -> (&[u32], &mut [f32]) {
        let first = self.logits.len() - (ahead + 1) * self.engine.network.outputs();
        let logits = &mut self.logits[first..][..self.engine.vocabulary.len()];
        (&self.cache.tokens[..self.cache.tokens.len() - ahead], logits)
    }

    /// Drops the last `ahead` tokens that were read.
    pub(crate) fn drop_last(&mut self, ahead: usize) {
        self.cache.rewind(self.cache.tokens.len() - ahead);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        (self.stop)()
    }
}

pub(crate) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
