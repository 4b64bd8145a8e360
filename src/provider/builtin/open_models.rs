//! The models that are loaded in this process: each opened once, kept while it is used, and given up when
//! nobody has used it for a while or its memory is needed.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, SystemTime},
};

use super::{InProcess, asset, model::Model};
use crate::{
    core::{Cancel, error_chain},
    engine::EngineError,
    provider::{
        NoServer, Progress, Provider, ProviderError,
        slots::{SlotError, Slots},
    },
};

/// What the configuration says about models in this process.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Tokens in the window.
    pub context_size: u32,
    /// Files that may be loaded at a time; the built-in model is small and does not count.
    pub max_loaded: usize,
    /// How long one stays that nobody uses; absent is for ever.
    pub keep_warm: Option<Duration>,
}

/// What is to be opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    BuiltIn,
    File(PathBuf),
}

/// The open models.
pub struct OpenModels {
    settings: Settings,
    /// Who opens or gives up one; a queue of one place because waiting in it can be cancelled.
    turn: Slots,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The one that was used last stands last.
    open: Vec<Open>,
    /// Files that the engine cannot run, by their time of change, so that they are not read in each run.
    unknown: HashMap<PathBuf, (Option<SystemTime>, String)>,
    stopped: bool,
}

struct Open {
    which: Which,
    /// A file that was replaced is opened anew.
    changed: Option<SystemTime>,
    model: Arc<Model>,
}

/// Files that are remembered as unknown; one more and all are looked at again.
const UNKNOWN: usize = 64;

/// Why a model could not be opened.
#[derive(Debug)]
pub enum NotOpened {
    /// It is of a kind that the engine does not know: a fact about the file.
    Unknown(String),
    Error(ProviderError),
}

impl OpenModels {
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings, turn: Slots::new(1), state: Mutex::default() })
    }

    /// The model that was used last, if any is loaded.
    pub fn running(&self) -> Option<String> {
        self.lock().open.last().map(|open| open.model.name().to_owned())
    }

    /// The model if it is loaded. Costs microseconds.
    fn ready(&self, which: &Which) -> Option<Arc<Model>> {
        let mut state = self.lock();
        let at = state.open.iter().position(|open| open.which == *which)?;
        let open = state.open.remove(at);
        if open.changed != changed(which) {
            open.model.give_up();
            return None;
        }
        open.model.touch();
        let model = Arc::clone(&open.model);
        state.open.push(open);
        Some(model)
    }

    /// Makes a model ready: loads it, after another one has left where there may not be both. `notice` is for
    /// its user.
    ///
    /// # Errors
    ///
    /// [`NotOpened`].
    pub fn open(
        self: &Arc<Self>,
        which: &Which,
        notice: Option<String>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, NotOpened> {
        let model = self.model(which, cancel, sink)?;
        Ok(Arc::new(InProcess { model, notice }))
    }

    fn model(
        self: &Arc<Self>,
        which: &Which,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<Model>, NotOpened> {
        if let Some(model) = self.ready(which) {
            return Ok(model);
        }
        if let Some(why) = self.unknown(which) {
            return Err(NotOpened::Unknown(why));
        }
        let loading = || Progress::Loading { model: which.name(), fraction: None };
        let _turn = self.turn.acquire(None, cancel, &mut |_| sink(loading())).map_err(|no_place| {
            NotOpened::Error(match no_place {
                SlotError::Cancelled => ProviderError::Cancelled,
                SlotError::Closed => stopping(),
            })
        })?;
        // Somebody may have opened it while we waited.
        if let Some(model) = self.ready(which) {
            return Ok(model);
        }
        while let Some(other) = self.surplus(which) {
            self.leave(&other, cancel, sink).map_err(NotOpened::Error)?;
        }
        sink(loading());
        let began = std::time::Instant::now();
        let changed = changed(which);
        let model = match which {
            Which::BuiltIn => Model::from_bytes(asset::NAME, asset::BYTES, self.settings.context_size),
            Which::File(file) => Model::open(file, self.settings.context_size),
        };
        let model = Arc::new(model.map_err(|error| self.refused(which, changed, &error))?);
        tracing::info!(model = model.name(), after = ?began.elapsed(), "the model is loaded");
        let mut state = self.lock();
        if state.stopped {
            return Err(NotOpened::Error(stopping()));
        }
        state.open.push(Open { which: which.clone(), changed, model: Arc::clone(&model) });
        drop(state);
        self.keep_warm(&model);
        Ok(model)
    }

    /// Gives up all models and opens no other. Again is harmless.
    pub fn stop(&self) {
        let open = {
            let mut state = self.lock();
            state.stopped = true;
            std::mem::take(&mut state.open)
        };
        self.turn.close();
        open.iter().for_each(|open| open.model.give_up());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the engine cannot run a file that it has seen.
    fn unknown(&self, which: &Which) -> Option<String> {
        let Which::File(file) = which else { return None };
        let state = self.lock();
        let (seen, why) = state.unknown.get(file)?;
        (*seen == changed(which)).then(|| why.clone())
    }

    fn refused(&self, which: &Which, changed: Option<SystemTime>, error: &EngineError) -> NotOpened {
        match (which, error) {
            (Which::File(file), EngineError::Architecture(_) | EngineError::Unsupported(_)) => {
                let why = error.to_string();
                let mut state = self.lock();
                if state.unknown.len() >= UNKNOWN {
                    state.unknown.clear();
                }
                state.unknown.insert(file.clone(), (changed, why.clone()));
                NotOpened::Unknown(why)
            }
            _ => NotOpened::Error(ProviderError::NoServer(NoServer {
                fact: format!("{} cannot be loaded: {}", which.name(), error_chain(error)),
                hint:
                    "`kontekst models show` says what the file is; `kontekst models pull` fetches it again \
                       once it is moved away"
                        .to_owned(),
            })),
        }
    }

    /// Which file must go before another one may be loaded: of those that nobody is using the one that was
    /// used least recently, else that one of all.
    fn surplus(&self, which: &Which) -> Option<Arc<Model>> {
        if *which == Which::BuiltIn {
            return None;
        }
        let state = self.lock();
        let files = || state.open.iter().filter(|open| open.which != Which::BuiltIn).map(|open| &open.model);
        if files().count() < self.settings.max_loaded.max(1) {
            return None;
        }
        files().find(|model| !model.idle_for().is_zero()).or_else(|| files().next()).cloned()
    }

    /// Lets the requests of another model come to their end, and gives it up.
    fn leave(
        &self,
        model: &Arc<Model>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<(), ProviderError> {
        model.slots().close();
        sink(Progress::Queued { position: 1 });
        while !model.slots().wait_idle(cancel, Duration::from_secs(60)) {
            if cancel.is_cancelled() {
                model.slots().reopen();
                return Err(ProviderError::Cancelled);
            }
        }
        self.forget(model);
        Ok(())
    }

    fn forget(&self, model: &Arc<Model>) {
        self.lock().open.retain(|open| !Arc::ptr_eq(&open.model, model));
        model.give_up();
    }

    /// Gives a model up once nobody has used it for as long as the settings say. Whoever waits for that is
    /// gone with the model: a daemon that has nothing loaded waits for nothing.
    fn keep_warm(self: &Arc<Self>, model: &Arc<Model>) {
        let Some(limit) = self.settings.keep_warm else { return };
        let (this, model) = (Arc::downgrade(self), Arc::clone(model));
        let warm = thread::Builder::new().name("model-idle".to_owned());
        let waiting = warm.spawn(move || {
            while !model.gone().is_cancelled_within(limit.saturating_sub(model.idle_for())) {
                if model.idle_for() >= limit && Self::cool(&this, &model, limit) {
                    return;
                }
            }
        });
        if let Err(error) = waiting {
            tracing::warn!(%error, "the model will not be given up when it is idle");
        }
    }

    /// Gives a model up unless somebody has come to use it. Says whether it did.
    fn cool(this: &Weak<Self>, model: &Arc<Model>, limit: Duration) -> bool {
        let Some(this) = this.upgrade() else { return true };
        let Ok(_turn) = this.turn.acquire(None, &Cancel::new(), &mut |_| {}) else { return true };
        model.slots().close(); // who comes now opens it again, and waits for our turn to end
        if model.idle_for() < limit || !model.slots().wait_idle(&Cancel::new(), Duration::ZERO) {
            model.slots().reopen();
            return false;
        }
        tracing::info!(model = model.name(), "the model is given up: nobody has used it for {limit:?}");
        this.forget(model);
        true
    }
}

impl Drop for OpenModels {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Which {
    /// As people know it.
    pub fn name(&self) -> String {
        match self {
            Self::BuiltIn => "the built-in model".to_owned(),
            Self::File(file) => file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

fn changed(which: &Which) -> Option<SystemTime> {
    let file: &Path = match which {
        Which::BuiltIn => return None,
        Which::File(file) => file,
    };
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

fn stopping() -> ProviderError {
    let (fact, hint) = ("the daemon is stopping".to_owned(), "start it again".to_owned());
    ProviderError::NoServer(NoServer { fact, hint })
}
