//! One job: a prompt is read, an answer is written.

use std::{
    hash::{BuildHasher as _, RandomState},
    ops::ControlFlow,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    core::{Cancel, Sampling},
    engine::{
        Engine, EngineError, cache::Cache, error::guarded, sampler::Sampler, store::Store, tokens::Characters,
    },
};

/// Tokens that are read between two reports.
const STEP: usize = 64;

/// What is to be read, and how the answer is chosen.
#[derive(Clone, Debug, Default)]
pub struct Job {
    pub prompt: Vec<u32>,
    /// Whose turn this is. What is read is kept under this name, so that the next turn reads only what is new.
    pub session: Option<String>,
    /// What it leaves open is what llama.cpp's server does: temperature 0.8, the 40 likeliest, 95 % of them.
    pub sampling: Sampling,
    /// The same seed chooses the same tokens again; without one each job differs.
    pub seed: Option<u64>,
    /// With more than one and a constraint, the answer is the likeliest of so many, whatever `sampling` says, and is
    /// handed on when it is whole.
    pub tries: usize,
}

/// What is reported while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// So many tokens of the prompt were read, with those that were kept from an earlier turn.
    Read { read: u32, of: u32 },
    /// More of the answer, in whole characters.
    Text(&'a str),
    /// A token of the answer that is no text and does not end it.
    Control(u32),
}

/// How a job ended. All counts are of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub prompt: u32,
    /// Of the prompt, what was not read again.
    pub cached: u32,
    /// Tokens that were chosen, the one that ended the answer among them.
    pub completion: u32,
    pub end: End,
    /// The time that the prompt took.
    pub reading: Duration,
    /// The time that the answer took.
    pub writing: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The model ended its answer.
    Stop,
    /// The answer is as long as it may be, or the context is full.
    Length,
    /// The constraint is complete.
    Complete,
    /// The constraint allows nothing that the model can say.
    Stuck,
    /// The sink wanted no more.
    Sink,
    Cancelled,
}

/// What an answer must look like. It is offered tokens, the likeliest first, until it allows one.
pub trait Constraint {
    /// May the answer go on with `bytes`? They may end within a character.
    fn allows(&mut self, bytes: &[u8]) -> bool;

    /// How much less likely than the model takes it to be the answer is that goes on with `bytes`, as a natural
    /// logarithm, where several are compared.
    fn doubt(&mut self, _bytes: &[u8]) -> f32 {
        0.0
    }

    /// It does.
    fn push(&mut self, bytes: &[u8]);

    /// Nothing may follow.
    fn complete(&self) -> bool;

    /// May the model end its answer here?
    fn may_end(&self) -> bool {
        false
    }

    /// Back to where nothing has been pushed.
    fn restart(&mut self);
}

impl Engine {
    /// Runs one job on this thread, and on the other cores. Waits for one that runs.
    ///
    /// `cancel` is looked at before each layer of each step. A job that was cancelled, or that the sink broke off,
    /// keeps what it has read.
    ///
    /// # Errors
    ///
    /// [`EngineError::TooLong`], [`EngineError::Unsupported`] for a token that the model does not have, and
    /// [`EngineError::Failed`], after which the session is read anew.
    pub fn generate(
        &self,
        job: &Job,
        cancel: &Cancel,
        constraint: Option<&mut dyn Constraint>,
        sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<Done, EngineError> {
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        let (prompt, context) = (job.prompt.len(), self.network.shape.context);
        if prompt >= context {
            return Err(EngineError::TooLong { prompt: count(prompt), context: count(context) });
        }
        if prompt == 0 || job.prompt.iter().any(|&id| id as usize >= self.tokens.len()) {
            return Err(EngineError::Unsupported("a prompt of tokens that it does not have".to_owned()));
        }
        let _one_at_a_time = lock(&self.running);
        let kept = job.session.as_deref().and_then(|session| lock(&self.store).take(session));
        let mut cache = kept.unwrap_or_else(|| Cache::new(&self.network.shape));
        // A new conversation begins as others do: with the same instructions and tools.
        if job.session.is_some()
            && let Some((common, other)) = lock(&self.store).likest(&job.prompt)
            && common >= cache.common(&job.prompt) + STEP
        {
            cache.clone_from(other);
        }
        let done = guarded(|| Run { engine: self, job, cancel, sink }.run(&mut cache, constraint));
        if let (Some(session), Ok(_)) = (&job.session, &done) {
            lock(&self.store).put(session, cache);
        }
        done
    }

    /// Of `prompt`, the tokens that this session would not read again.
    pub fn cached(&self, session: &str, prompt: &[u32]) -> usize {
        let store = lock(&self.store);
        let own = store.look(session).map_or(0, |cache| cache.common(prompt));
        store.likest(prompt).map_or(own, |(common, _)| if common >= own + STEP { common } else { own })
    }

    /// Frees what is kept of a session.
    pub fn forget(&self, session: &str) {
        let cache = lock(&self.store).take(session);
        drop(cache);
    }

    /// Frees what is kept of all sessions.
    pub fn forget_all(&self) {
        lock(&self.store).clear();
    }

    /// Bytes that are kept for sessions.
    pub fn kept(&self) -> usize {
        lock(&self.store).bytes()
    }
}

pub(super) fn store(limit: usize) -> Mutex<Store> {
    Mutex::new(Store::new(limit))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Run<'a> {
    pub(super) engine: &'a Engine,
    pub(super) job: &'a Job,
    cancel: &'a Cancel,
    sink: &'a mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
}

impl Run<'_> {
    fn run(
        &mut self,
        cache: &mut Cache,
        constraint: Option<&mut dyn Constraint>,
    ) -> Result<Done, EngineError> {
        let prompt = &self.job.prompt;
        // The last token is read again in any case: what follows it is not kept.
        let cached = cache.common(prompt).min(prompt.len() - 1);
        cache.rewind(cached);
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        let started = Instant::now();
        let mut done = Done {
            prompt: count(prompt.len()),
            cached: count(cached),
            completion: 0,
            end: End::Cancelled,
            reading: Duration::ZERO,
            writing: Duration::ZERO,
        };
        let logits = self.read(cache);
        done.reading = started.elapsed();
        match logits? {
            Ok(logits) => {
                let completion = &mut done.completion;
                done.end = match constraint {
                    Some(constraint) if self.job.tries > 1 => {
                        self.search(cache, &logits, constraint, completion)?
                    }
                    constraint => self.write(cache, logits, constraint, completion)?,
                };
            }
            Err(end) => done.end = end,
        }
        done.writing = started.elapsed() - done.reading;
        Ok(done)
    }

    /// Reads what is new of the prompt.
    fn read(&mut self, cache: &mut Cache) -> Result<Result<Vec<f32>, End>, EngineError> {
        let (prompt, cached) = (&self.job.prompt, cache.tokens.len());
        let of = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        let mut logits = Vec::new();
        for step in prompt[cached..].chunks(STEP) {
            let wants = cache.tokens.len() + step.len() == prompt.len();
            logits = match self.step(cache, step, wants)? {
                Ok(logits) => logits,
                Err(end) => return Ok(Err(end)),
            };
            let read = u32::try_from(cache.tokens.len()).unwrap_or(u32::MAX);
            if (self.sink)(Piece::Read { read, of }).is_break() {
                return Ok(Err(End::Sink));
            }
        }
        Ok(Ok(logits))
    }

    pub(super) fn step(
        &self,
        cache: &mut Cache,
        tokens: &[u32],
        wants: bool,
    ) -> Result<Result<Vec<f32>, End>, EngineError> {
        let stop = || self.cancel.is_cancelled();
        Ok(self.engine.network.read_tokens(cache, tokens, wants, &stop)?.map_err(|_stopped| End::Cancelled))
    }

    fn write(
        &mut self,
        cache: &mut Cache,
        mut logits: Vec<f32>,
        mut constraint: Option<&mut dyn Constraint>,
        completion: &mut u32,
    ) -> Result<End, EngineError> {
        let tokens = &self.engine.tokens;
        let most = self.most(cache.tokens.len());
        let seed = self.job.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let mut sampler = Sampler::new(&self.job.sampling, seed);
        let mut characters = Characters::default();
        for number in 0..most {
            if self.cancel.is_cancelled() {
                return Ok(End::Cancelled);
            }
            logits.truncate(tokens.len());
            let chosen = sampler.choose(&mut logits, &cache.tokens, |id| match &mut constraint {
                Some(constraint) if tokens.ends(id) => constraint.may_end(),
                Some(constraint) => {
                    let bytes = tokens.bytes(id);
                    !bytes.is_empty() && constraint.allows(bytes)
                }
                None => true,
            });
            let Some(id) = chosen else { return Ok(End::Stuck) };
            *completion += 1;
            if tokens.ends(id) {
                return Ok(self.held_back(&mut characters).unwrap_or(End::Stop));
            }
            if self.say(id, &mut characters).is_break() {
                return Ok(End::Sink);
            }
            if let Some(constraint) = &mut constraint {
                constraint.push(tokens.bytes(id));
                if constraint.complete() {
                    return Ok(End::Complete);
                }
            }
            if number + 1 == most {
                break;
            }
            logits = match self.step(cache, &[id], true)? {
                Ok(logits) => logits,
                Err(end) => return Ok(end),
            };
        }
        Ok(self.held_back(&mut characters).unwrap_or(End::Length))
    }

    /// Tokens that an answer to a prompt of so many may have.
    pub(super) fn most(&self, prompt: usize) -> usize {
        let room = self.engine.network.shape.context - prompt;
        (self.job.sampling.reply_limit() as usize).min(room)
    }

    /// Hands a token on, as far as it makes whole characters.
    pub(super) fn say(&mut self, id: u32, characters: &mut Characters) -> ControlFlow<()> {
        let tokens = &self.engine.tokens;
        if tokens.is_control(id) {
            return (self.sink)(Piece::Control(id));
        }
        match characters.push(tokens.bytes(id)) {
            text if text.is_empty() => ControlFlow::Continue(()),
            text => (self.sink)(Piece::Text(&text)),
        }
    }

    /// An answer that ends within a character ends with U+FFFD.
    pub(super) fn held_back(&mut self, characters: &mut Characters) -> Option<End> {
        let last = characters.finish()?;
        (self.sink)(Piece::Text(last.encode_utf8(&mut [0; 4]))).is_break().then_some(End::Sink)
    }
}
