//! A model server that somebody else runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    Progress, ProviderError,
    llama::{Engine, Link, OpenAi, Probe, Server, Timing, broken, probe, wake, wire_model},
    pause::pause,
};
use crate::core::Cancel;

/// Models of one server that are remembered; one more and all are asked about again.
const MODELS: usize = 64;

/// How long one that failed is tried only after the others.
const SHUNNED: Duration = Duration::from_secs(30);

/// A server at an address.
pub struct Endpoint {
    server: Arc<Server>,
    timing: Timing,
    /// Its providers by model, while it is known to be there.
    known: Mutex<HashMap<String, Arc<OpenAi>>>,
    failed: Mutex<Option<Instant>>,
}

impl Endpoint {
    /// `key` goes to this address and nowhere else.
    pub fn new(url: &str, key: Option<String>, timing: Timing) -> Self {
        let link = Link::new(url, key, timing.connect);
        let server = Arc::new(Server::new(link, 1, timing));
        Self { server, timing, known: Mutex::default(), failed: Mutex::default() }
    }

    pub fn link(&self) -> &Link {
        self.server.link()
    }

    /// One of the models it was asked for.
    pub fn model(&self) -> Option<String> {
        self.known().keys().next().cloned()
    }

    /// It failed not long ago.
    pub fn is_shunned(&self) -> bool {
        self.failed().is_some_and(|at| at.elapsed() < SHUNNED)
    }

    /// It could not answer: others are asked first for a while.
    pub fn shun(&self) {
        self.server.set_good(false);
        *self.failed() = Some(Instant::now());
    }

    /// The provider of `model`, if a model server answers; waits for one that is loading.
    ///
    /// # Errors
    ///
    /// As for [`probe`].
    pub fn open(
        &self,
        model: &str,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<OpenAi>, ProviderError> {
        if !self.server.is_good() {
            self.known().clear();
        } else if let Some(provider) = self.known().get(model) {
            // No probe: the request itself will show whether it is still there.
            return Ok(Arc::clone(provider));
        }
        let (start, mut wait, mut woken) = (Instant::now(), Duration::from_millis(50), false);
        let (name, patience) = (wire_model(model), self.timing.probe);
        loop {
            let found = probe(self.link(), name, cancel, patience)?;
            if matches!(found, Probe::Asleep) {
                let failed = woken.then(|| broken(self.link(), name, cancel, patience)).flatten();
                if let Some(error) = failed {
                    return Err(error);
                }
                woken = true;
                wake(self.link(), name, cancel, patience)?;
            }
            match found {
                Probe::Ready(found) => {
                    tracing::debug!(endpoint = self.link().base(), engine = ?found.engine, "found a model server");
                    self.server.slots().resize(found.slots);
                    self.server.set_good(true);
                    *self.failed() = None;
                    // llama-swap tells about a model once it has loaded it: it is asked again until then.
                    let all = found.llama || found.engine != Engine::LlamaSwap;
                    let provider = Arc::new(OpenAi::new(Arc::clone(&self.server), model, found));
                    let mut known = self.known();
                    if !all {
                        return Ok(provider);
                    }
                    if known.len() >= MODELS {
                        known.clear();
                    }
                    known.insert(model.to_owned(), Arc::clone(&provider));
                    return Ok(provider);
                }
                Probe::Loading | Probe::Asleep if start.elapsed() < self.timing.load => {
                    sink(Progress::Loading { model: model.to_owned(), fraction: None });
                    if !pause(cancel, wait) {
                        return Err(ProviderError::Cancelled);
                    }
                    wait = (wait * 2).min(Duration::from_secs(1));
                }
                Probe::Loading | Probe::Asleep => {
                    let message = "it has been loading its model for too long".to_owned();
                    return Err(ProviderError::Status { status: 503, message });
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenAi>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
