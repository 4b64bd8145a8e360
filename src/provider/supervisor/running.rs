//! A child that is loaded, and how it is reached.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use super::{child::Child, orphans::ServerRecord};
use crate::core::stop_limits;
use crate::provider::openai::{Capabilities, OpenAiProvider, ServerClient};

/// One llama-server of ours and its model.
pub struct RunningServer {
    pub child: Child,
    pub model: PathBuf,
    pub alias: String,
    pub client: ServerClient,
    pub started: Instant,
    /// Set when it is ready.
    pub provider: OnceLock<Arc<OpenAiProvider>>,
    /// When it was last asked for; requests are counted by its queue.
    used: Mutex<Instant>,
    record: Mutex<Option<ServerRecord>>,
}

impl RunningServer {
    /// `run_dir` is where the record of it goes.
    pub fn new(
        child: Child,
        model: &Path,
        alias: &str,
        client: ServerClient,
        run_dir: Option<&Path>,
    ) -> Self {
        let record = run_dir.and_then(|dir| ServerRecord::write(dir, child.pid()));
        let now = Instant::now();
        Self {
            child,
            model: model.to_owned(),
            alias: alias.to_owned(),
            client,
            started: now,
            provider: OnceLock::new(),
            used: Mutex::new(now),
            record: Mutex::new(record),
        }
    }

    pub fn is_alive(&self) -> bool {
        self.child.exited().is_none()
    }

    /// What answers is our child and no one else who has its port: it took our key and has our file.
    pub fn is_our_child(&self, found: &Capabilities) -> bool {
        let named = found.model_path.as_deref().map(Path::new).and_then(Path::file_name);
        self.is_alive() && named == self.model.file_name()
    }

    /// It answers: this is its provider, for good.
    pub fn mark_ready(&self, provider: Arc<OpenAiProvider>) -> Arc<OpenAiProvider> {
        if let Some(record) = &mut *self.record() {
            record.mark_ready();
        }
        Arc::clone(self.provider.get_or_init(|| provider))
    }

    /// Somebody is about to use it.
    pub fn mark_used(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long nobody has used it; zero while somebody does.
    pub fn idle_time(&self) -> Duration {
        let asked = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        self.provider.get().map_or(asked, |provider| provider.server().slots().idle_time().min(asked))
    }

    /// Lets nobody in any more, keeps what it has read of the last conversation, and ends it.
    pub fn stop(&self) {
        if let Some(provider) = self.provider.get() {
            provider.server().slots().close();
            if self.is_alive() {
                provider.server().save_kv_cache(stop_limits::SAVE_CACHE);
            }
        }
        self.child.stop();
        self.record().take();
    }

    fn record(&self) -> MutexGuard<'_, Option<ServerRecord>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
