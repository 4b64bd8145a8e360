//! The state that all runs of a daemon share.

use std::{path::Path, sync::Arc};

use tokio::sync::Mutex;

use kontekst_core::{Cancel, OwnListeners, RunId, SessionId};
use kontekst_provider::Models;
use kontekst_store::{
    config::{Config, Home},
    journal::Journal,
    sessions::Sessions,
    subagent_log::SubagentLogs,
};
use kontekst_tools::{CommandRunner, ToolBox, WorkDir, policy::Policy};

use super::{
    limits::RunLimits,
    parking::ParkedAccess,
    protocol::RunError,
    request::{StartRun, ToolOptions},
    run::Run,
    run_registry::RunRegistry,
    server_status::ServerStatusCache,
    session::OpenSessions,
};

/// The state that all runs of a daemon share.
pub(super) struct Shared {
    pub(super) storage: Storage,
    pub(super) config: Config,
    pub(super) models: Arc<dyn Models>,
    /// The addresses that no tool may connect to.
    pub(super) own_listeners: OwnListeners,
    /// Runs command lines. `None` if there are no commands.
    pub(super) commands: Option<Arc<CommandRunner>>,
    /// Facts about sessions that are kept in memory only.
    pub(super) open_sessions: OpenSessions,
    pub(super) registry: RunRegistry,
    /// Held while an undo is planned or carried out.
    pub(super) undoing: Arc<Mutex<()>>,
    pub(super) server_status: ServerStatusCache,
    pub(super) parked: Arc<ParkedAccess>,
    /// Starts the run of a subagent. It is a pointer because the code of a run cannot depend on the code that
    /// starts runs.
    pub(super) start_subagent: StartSubagent,
}

impl Shared {
    /// Returns the working directory of runs whose client names none.
    pub(super) fn default_work_dir(&self) -> Option<&Path> {
        Some(self.config.tools.working_dir.as_path()).filter(|dir| !dir.as_os_str().is_empty())
    }

    /// Returns what runs the command lines of a run.
    pub(super) fn commands_for(&self, options: &ToolOptions) -> Option<Arc<CommandRunner>> {
        let mut commands = Arc::clone(self.commands.as_ref()?);
        if let Some(caller) = &options.caller {
            commands = Arc::new(commands.with_caller(caller));
        }
        Some(if options.network { Arc::new(commands.with_network()) } else { commands })
    }

    /// Returns true if a client's run lacks tools because no working directory is named.
    pub(super) fn lacks_work_dir(&self, request: &StartRun) -> bool {
        let named = request.working_dir.is_some() || self.default_work_dir().is_some();
        !named && request.tools.daemon.need_work_dir()
    }
}

/// The files of the data directory.
pub(super) struct Storage {
    pub(super) home: Home,
    pub(super) sessions: Sessions,
    pub(super) subagent_logs: SubagentLogs,
    pub(super) journal: Arc<Journal>,
}

/// A function that starts the run of a subagent.
pub(super) type StartSubagent = fn(&Arc<Shared>, StartRun, Box<ParentContext>, Cancel) -> Run;

/// The starter of a run: a client or another run.
pub(super) enum Origin {
    Client,
    /// Another run. The subagent has the rights of that run and no others.
    Parent(Box<ParentContext>),
}

/// Everything that a subagent gets from the run that started it.
pub(super) struct ParentContext {
    pub(super) work_dir: Arc<WorkDir>,
    pub(super) policy: Arc<Policy>,
    /// The parent's tools, without the one that starts subagents.
    pub(super) tools: ToolBox,
    pub(super) session: SessionId,
    pub(super) limits: RunLimits,
}

/// Counts a run as active until it is dropped, and keeps it in the registry for as long.
pub(super) struct ActiveRun {
    pub(super) shared: Arc<Shared>,
    pub(super) id: RunId,
}

impl ActiveRun {
    /// Only a client's run is listed: the calls of a subagent are decided through its parent.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Limit`](super::protocol::FailureKind::Limit) if there are too many runs of clients. The runs of
    /// subagents are limited by their parents.
    pub(super) fn register(shared: &Arc<Shared>, run: &Run, origin: &Origin) -> Result<Self, RunError> {
        if let (Origin::Client, Some(handle)) = (origin, run.handle()) {
            shared.registry.insert(run.id().clone(), handle)?;
        }
        shared.registry.increment();
        Ok(Self { shared: Arc::clone(shared), id: run.id().clone() })
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.shared.registry.remove(&self.id);
    }
}
