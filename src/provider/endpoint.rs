//! A model server that somebody else runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    Progress, ProviderError,
    openai::{
        OpenAiProvider, Probe, Server, ServerClient, ServerKind, Timing, load_failure, load_model, probe,
        wire_model_name,
    },
};
use crate::core::Cancel;

/// Models of one server that are remembered; one more and all are asked about again.
const MAX_PROVIDERS: usize = 64;

/// How long one that failed is tried only after the others.
const UNHEALTHY_TIME: Duration = Duration::from_secs(30);

/// A server at an address.
pub struct Endpoint {
    server: Arc<Server>,
    timing: Timing,
    /// Its providers by model, while it is known to be there.
    providers: Mutex<HashMap<String, Arc<OpenAiProvider>>>,
    failed_at: Mutex<Option<Instant>>,
}

impl Endpoint {
    /// `key` goes to this address and nowhere else.
    pub fn new(url: &str, key: Option<String>, timing: Timing) -> Self {
        let client = ServerClient::new(url, key, timing.connect);
        let server = Arc::new(Server::new(client, 1, timing));
        Self { server, timing, providers: Mutex::default(), failed_at: Mutex::default() }
    }

    pub fn client(&self) -> &ServerClient {
        self.server.client()
    }

    /// One of the models it was asked for.
    pub fn model(&self) -> Option<String> {
        self.providers().keys().next().cloned()
    }

    /// It failed not long ago.
    pub fn is_unhealthy(&self) -> bool {
        self.failed_at().is_some_and(|at| at.elapsed() < UNHEALTHY_TIME)
    }

    /// It could not answer: others are asked first for a while.
    pub fn mark_unhealthy(&self) {
        self.server.set_healthy(false);
        *self.failed_at() = Some(Instant::now());
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
    ) -> Result<Arc<OpenAiProvider>, ProviderError> {
        if !self.server.is_healthy() {
            self.providers().clear();
        } else if let Some(provider) = self.providers().get(model) {
            // No probe: the request itself will show whether it is still there.
            return Ok(Arc::clone(provider));
        }
        let (start, mut wait, mut woken) = (Instant::now(), Duration::from_millis(50), false);
        let (name, timeout) = (wire_model_name(model), self.timing.probe);
        loop {
            let found = probe(self.client(), name, cancel, timeout)?;
            if matches!(found, Probe::NotLoaded) {
                let failed = woken.then(|| load_failure(self.client(), name, cancel, timeout)).flatten();
                if let Some(error) = failed {
                    return Err(error);
                }
                woken = true;
                load_model(self.client(), name, cancel, timeout)?;
            }
            match found {
                Probe::Ready(found) => {
                    tracing::debug!(endpoint = self.client().base(), engine = ?found.server_kind, "found a model server");
                    self.server.slots().resize(found.slots);
                    self.server.set_healthy(true);
                    *self.failed_at() = None;
                    // llama-swap tells about a model once it has loaded it: it is asked again until then.
                    let all = found.is_llama_cpp || found.server_kind != ServerKind::LlamaSwap;
                    let provider = Arc::new(OpenAiProvider::new(Arc::clone(&self.server), model, found));
                    let mut known = self.providers();
                    if !all {
                        return Ok(provider);
                    }
                    if known.len() >= MAX_PROVIDERS {
                        known.clear();
                    }
                    known.insert(model.to_owned(), Arc::clone(&provider));
                    return Ok(provider);
                }
                Probe::Loading | Probe::NotLoaded if start.elapsed() < self.timing.load => {
                    sink(Progress::Loading { model: model.to_owned(), fraction: None });
                    if cancel.is_cancelled_within(wait) {
                        return Err(ProviderError::Cancelled);
                    }
                    wait = (wait * 2).min(Duration::from_secs(1));
                }
                Probe::Loading | Probe::NotLoaded => {
                    let message = "it has been loading its model for too long".to_owned();
                    return Err(ProviderError::Status { status: 503, message });
                }
            }
        }
    }

    fn providers(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenAiProvider>>> {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
