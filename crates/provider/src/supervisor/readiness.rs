//! Waiting for a server to load its model, and checking one that did not answer.

use std::{sync::Arc, time::Duration};

use kontekst_core::Cancel;

use super::{Supervisor, running::RunningServer};

use crate::{
    NoServer, Progress, ProviderError,
    openai::{OpenAiProvider, Probe, Server, ServerCapabilities, SlotCache, probe},
};

/// The longest wait between two probes of a server that is loading.
const MAX_PROBE_WAIT: Duration = Duration::from_millis(250);

impl Supervisor {
    /// Waits until the server has loaded its model. A cancel does not stop the loading, so the next caller has less to
    /// wait.
    pub(super) fn become_ready(
        &self,
        running: &Arc<RunningServer>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<OpenAiProvider>, ProviderError> {
        let loading = |fraction| Progress::Loading { model: running.alias.clone(), fraction };
        let (mut wait, mut reported) = (Duration::from_millis(10), None);
        sink(loading(None));
        loop {
            if let Ok(Probe::Ready(found)) = probe(&running.client, &running.alias, cancel, self.timing.probe)
                && running.is_our_child(&found)
            {
                tracing::info!(pid = running.child.pid(), after = ?running.started.elapsed(), "llama-server is ready");
                return Ok(running.mark_ready(self.provider(running, found)));
            }
            running.mark_used();
            if running.child.wait(cancel, wait) {
                let fact = format!("llama-server did not start: it {}", running.child.exit_reason());
                let hint = format!("try it by hand: llama-server -m {}", running.model.display());
                return Err(ProviderError::NoServer(NoServer { fact, hint }));
            }
            if cancel.is_cancelled() {
                return Err(ProviderError::Cancelled);
            }
            if running.started.elapsed() > self.timing.load {
                running.child.stop();
                let fact = format!("llama-server was not ready after {:?}", self.timing.load);
                let hint = "see the log for what it was doing".to_owned();
                return Err(ProviderError::NoServer(NoServer { fact, hint }));
            }
            let fraction = running.child.load_fraction();
            if fraction != reported {
                reported = fraction;
                sink(loading(fraction));
            }
            wait = (wait * 2).min(MAX_PROBE_WAIT);
        }
    }

    fn provider(&self, running: &RunningServer, found: ServerCapabilities) -> Arc<OpenAiProvider> {
        let arguments = &self.settings.arguments;
        // With several slots it is unknown which session's prompt is in which slot.
        let kv_cache = arguments.kv_cache.clone().filter(|_| found.slots == 1).map(|files| {
            SlotCache::new(files, &running.model, found.window.unwrap_or(0), &arguments.extra_args)
        });
        let server = Server::new(running.client.clone(), found.slots, self.timing).with_kv_cache(kv_cache);
        Arc::new(OpenAiProvider::new(Arc::new(server), &running.alias, found).of_file(&running.model))
    }

    /// Returns true if a server that was ready still is. If its last request failed, it is probed, and stopped if it
    /// does not answer.
    pub(super) fn is_still_healthy(
        &self,
        running: &RunningServer,
        provider: &OpenAiProvider,
        cancel: &Cancel,
    ) -> Result<bool, ProviderError> {
        if provider.server().is_healthy() {
            return Ok(true);
        }
        match probe(&running.client, &running.alias, cancel, self.timing.probe) {
            Ok(_) => {
                provider.server().set_healthy(true);
                Ok(true)
            }
            Err(ProviderError::Cancelled) => Err(ProviderError::Cancelled),
            Err(_) => {
                running.stop();
                Ok(false)
            }
        }
    }
}
