//! Writes an answer to a prompt: samples tokens until the model, a limit or the constraint ends it.

use std::{
    cell::RefCell,
    hash::{BuildHasher as _, RandomState},
    ops::ControlFlow,
    time::{Duration, Instant},
};

use crate::{
    Engine,
    inference::{
        decoder::{DecodeError, Decoder, PrefillProgress, Prompt, to_u32},
        sampler::{Sampler, Sampling},
        speculation::Speculation,
        vocabulary::Utf8Decoder,
    },
};

/// A prompt, and how its answer is chosen.
#[derive(Clone, Debug)]
pub struct GenerateRequest<'a> {
    pub prompt: Prompt<'a>,
    pub sampling: Sampling,
    /// The most tokens of the answer. The context window may allow fewer.
    pub max_tokens: u32,
    /// The same seed chooses the same tokens again. Without one each answer differs.
    pub seed: Option<u64>,
    /// Reads several tokens at once where the answer repeats what stands before it. The answer is the same without.
    pub speculation: bool,
}

/// An event while an answer is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Prefill(PrefillProgress),
    /// More of the answer, in whole characters.
    Text(&'a str),
    /// A control token of the answer that does not end it. It has no text.
    Control(u32),
}

/// The statistics of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were in the session's cache.
    pub cached_tokens: u32,
    /// Tokens of the answer, the one that ended it included.
    pub completion_tokens: u32,
    /// Tokens that were guessed, and those of them that became part of the answer.
    pub guessed_tokens: u32,
    pub accepted_tokens: u32,
    pub finish: FinishReason,
    pub prefill_time: Duration,
    pub decode_time: Duration,
}

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended its answer.
    EndOfAnswer,
    /// The answer has reached its limit, or the context window is full.
    Length,
    /// The constraint allows nothing more.
    ConstraintComplete,
    /// The constraint is not complete, and allows no token that the model has.
    NoAllowedToken,
}

/// Restricts what an answer may be. It is offered tokens, the likeliest first, until it allows one.
pub trait Constraint {
    /// Returns true if the answer may go on with `bytes`. They may end within a character.
    fn allows(&mut self, bytes: &[u8]) -> bool;

    /// Appends `bytes` to the answer. The caller has checked them with [`Constraint::allows`].
    fn push(&mut self, bytes: &[u8]);

    /// Returns true if nothing may follow.
    fn is_complete(&self) -> bool;

    /// Returns true if the model may end its answer here.
    fn may_end(&self) -> bool {
        false
    }
}

impl Engine {
    /// Generates one answer. See [`Engine::decode`] for `stop` and for what is kept of the session.
    ///
    /// # Errors
    ///
    /// As [`Engine::decode`].
    pub fn generate(
        &self,
        request: &GenerateRequest<'_>,
        constraint: Option<&mut dyn Constraint>,
        stop: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Generation, DecodeError> {
        // Both callbacks below use it, one after the other.
        let sink = RefCell::new(sink);
        let on_progress = &mut |progress| (sink.borrow_mut())(Event::Prefill(progress));
        self.decode(request.prompt, stop, on_progress, |decoder| {
            let mut sink = sink.borrow_mut();
            let is_worthwhile = request.speculation && !self.network.shape.small;
            let speculation = if is_worthwhile { Speculation::new() } else { Speculation::none() };
            AnswerWriter::new(decoder, speculation, constraint, &mut **sink).write(request)
        })
    }
}

/// Writes the answer to a prompt that was read.
struct AnswerWriter<'a, 'b, 'c> {
    decoder: &'a mut Decoder<'b>,
    speculation: Speculation,
    constraint: Option<&'c mut dyn Constraint>,
    sink: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    utf8: Utf8Decoder,
    completion_tokens: u32,
}

impl<'a, 'b, 'c> AnswerWriter<'a, 'b, 'c> {
    fn new(
        decoder: &'a mut Decoder<'b>,
        speculation: Speculation,
        constraint: Option<&'c mut dyn Constraint>,
        sink: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Self {
        Self { decoder, speculation, constraint, sink, utf8: Utf8Decoder::default(), completion_tokens: 0 }
    }

    fn write(mut self, request: &GenerateRequest<'_>) -> Result<Generation, DecodeError> {
        let started = Instant::now();
        let finish = self.sample_tokens(request);
        self.speculation.finish(self.decoder);
        let finish = finish?;
        // An answer that ends within a character ends with U+FFFD.
        if let Some(last) = self.utf8.finish() {
            self.send(Event::Text(last.encode_utf8(&mut [0; 4])))?;
        }
        Ok(Generation {
            prompt_tokens: to_u32(self.decoder.prompt_tokens()),
            cached_tokens: to_u32(self.decoder.cached_tokens()),
            completion_tokens: self.completion_tokens,
            guessed_tokens: self.speculation.guessed,
            accepted_tokens: self.speculation.accepted,
            finish,
            prefill_time: self.decoder.prefill_time(),
            decode_time: started.elapsed(),
        })
    }

    fn sample_tokens(&mut self, request: &GenerateRequest<'_>) -> Result<FinishReason, DecodeError> {
        let vocabulary = self.decoder.vocabulary();
        let seed = request.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let mut sampler = Sampler::new(request.sampling, seed);
        let limit = request.max_tokens.min(to_u32(self.decoder.room()));
        let mut last = None;
        while self.completion_tokens < limit {
            if let Some(last) = last {
                let room = limit - self.completion_tokens;
                self.speculation.step(self.decoder, last, room as usize)?;
            }
            if self.decoder.is_cancelled() {
                return Err(DecodeError::Cancelled);
            }
            let Some(id) = self.choose(&mut sampler) else { return Ok(FinishReason::NoAllowedToken) };
            self.completion_tokens += 1;
            if vocabulary.is_end(id) {
                return Ok(FinishReason::EndOfAnswer);
            }
            self.send_token(id)?;
            if let Some(constraint) = &mut self.constraint {
                constraint.push(vocabulary.bytes(id));
                if constraint.is_complete() {
                    return Ok(FinishReason::ConstraintComplete);
                }
            }
            last = Some(id);
        }
        Ok(FinishReason::Length)
    }

    fn choose(&mut self, sampler: &mut Sampler) -> Option<u32> {
        let vocabulary = self.decoder.vocabulary();
        let (before, logits) = self.speculation.logits(self.decoder);
        sampler.choose(logits, before, |id| match &mut self.constraint {
            Some(constraint) if vocabulary.is_end(id) => constraint.may_end(),
            Some(constraint) => {
                let bytes = vocabulary.bytes(id);
                !bytes.is_empty() && constraint.allows(bytes)
            }
            None => true,
        })
    }

    /// Sends a token as text, as far as it completes characters.
    fn send_token(&mut self, id: u32) -> Result<(), DecodeError> {
        let vocabulary = self.decoder.vocabulary();
        if vocabulary.is_control(id) {
            return self.send(Event::Control(id));
        }
        match self.utf8.push(vocabulary.bytes(id)) {
            text if text.is_empty() => Ok(()),
            text => self.send(Event::Text(&text)),
        }
    }

    fn send(&mut self, event: Event<'_>) -> Result<(), DecodeError> {
        if (self.sink)(event).is_break() { Err(DecodeError::SinkClosed) } else { Ok(()) }
    }
}
