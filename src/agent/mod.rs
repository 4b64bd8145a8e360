//! The one agent core that every door stands on.

mod bridge;
mod call_repair;
mod capabilities;
mod compact;
mod conversation;
mod event_sender;
mod files;
mod history_start;
mod limits;
mod model_call;
mod prepare;
pub mod protocol;
mod recorder;
mod request;
mod run_loop;
mod run_registry;
mod session_locks;
mod skill_tool;
mod spawn_tool;
mod subagent;
mod subagent_group;
mod subagent_watch;
mod token_budget;
mod tool_calls;

pub use subagent_watch::SubagentWatch;

use std::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    task::{Context, Poll},
};

use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::{
    config::{Config, Home},
    core::{CallId, Cancel, OwnListeners, RunId, SessionId},
    provider::{Models, ServerStatus},
    sessions::Sessions,
    subagent_log::SubagentLogs,
};
use history_start::HistoryStarts;
use limits::Origin;
use protocol::{Command, Event};
use session_locks::SessionLocks;

pub use capabilities::{ChosenModel, DaemonTool};
pub use conversation::Conversation;
pub use request::{
    ApprovalBatching, DaemonTools, ExtraContext, History, Prompt, RunOverrides, StartRun, SubagentOptions,
    ToolOptions,
};
pub use run_registry::PendingApproval;
pub use spawn_tool::SPAWN_WORKER;

/// The agent. Cheap to clone; every door holds one.
#[derive(Clone)]
pub struct AgentCore {
    shared: Arc<Shared>,
}

struct Shared {
    home: Home,
    config: Config,
    models: Arc<dyn Models>,
    sessions: Sessions,
    teams: SubagentLogs,
    turns: SessionLocks,
    anchors: HistoryStarts,
    live: run_registry::RunRegistry,
    own_listeners: OwnListeners,
    /// Stops every run.
    stop: Cancel,
    active: AtomicUsize,
}

impl AgentCore {
    /// `own_listeners` are the addresses that no tool may connect to. The daemon adds to them as it opens listeners.
    pub fn new(home: Home, config: Config, models: Arc<dyn Models>, own_listeners: OwnListeners) -> Self {
        let (sessions, teams) = (Sessions::new(&home), SubagentLogs::new(&home));
        let shared = Shared {
            home,
            config,
            models,
            sessions,
            teams,
            turns: SessionLocks::default(),
            anchors: HistoryStarts::default(),
            live: run_registry::RunRegistry::default(),
            own_listeners,
            stop: Cancel::new(),
            active: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts a run and returns at once. Dropping the [`Run`] cancels it.
    pub fn start(&self, request: StartRun) -> Run {
        self.begin(request, Origin::Client, self.shared.stop.child())
    }

    fn begin(&self, request: StartRun, origin: Origin, cancel: Cancel) -> Run {
        let (commands, inbox) = mpsc::channel(256);
        let (emitter, events) = event_sender::channel();
        let id = RunId::new();
        let span = tracing::info_span!("run", id = %id);
        let active = Active::count(&self.shared, id.clone());
        // A worker's calls are decided through its parent.
        if matches!(origin, Origin::Client) {
            self.shared.live.begin(id.clone(), &commands, cancel.clone());
        }
        let run = run_loop::drive(active, id.clone(), request, origin, inbox, emitter, cancel.clone());
        tokio::spawn(run.instrument(span));
        Run { id, commands: Some(commands), events, cancel, ended: false }
    }

    /// What the workers of a team do: what the log has behind the event of number `after` (0 is all of it),
    /// then what comes.
    pub fn watch_subagents(&self, team: &SessionId, after: u64) -> SubagentWatch {
        SubagentWatch::new(Arc::clone(&self.shared), team.clone(), after)
    }

    /// Whether a session of this id is stored, or has had workers. Looks for two files.
    pub fn has_session(&self, id: &SessionId) -> bool {
        self.shared.teams.exists(id) || self.shared.sessions.exists(id)
    }

    /// Runs that are going.
    pub fn active_runs(&self) -> usize {
        self.shared.active.load(Ordering::Relaxed)
    }

    /// Cancels every run, now and from now on.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// Resolves when [`AgentCore::stop`] is called.
    pub async fn stopped(&self) {
        self.shared.stop.cancelled().await;
    }

    /// Calls of all runs that wait for a decision, oldest first.
    pub fn pending_approvals(&self) -> Vec<PendingApproval> {
        self.shared.live.waiting()
    }

    /// Takes a decision on a call that waits, whoever started its run. `false` if it does not wait.
    pub fn decide(&self, run: &RunId, call: &CallId, command: Command) -> bool {
        self.shared.live.decide(run, call, command)
    }

    /// Cancels a run. `false` if it is not going.
    pub fn cancel(&self, run: &RunId) -> bool {
        self.shared.live.cancel(run)
    }

    /// Reads or changes what is on disk, on a thread that may block. `None` if `work` panicked.
    pub async fn with_storage<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Home, &Sessions) -> T + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(&self.shared);
        bridge::blocking(move || work(&shared.home, &shared.sessions)).join().await.ok()
    }

    /// The model server's state.
    pub async fn server_status(&self) -> ServerStatus {
        let models = Arc::clone(&self.shared.models);
        bridge::blocking(move || models.status()).join().await.unwrap_or_default()
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub fn home(&self) -> &Home {
        &self.shared.home
    }
}

/// Counts a run for as long as it lives.
struct Active(Arc<Shared>, RunId);

impl Active {
    fn count(shared: &Arc<Shared>, run: RunId) -> Self {
        shared.active.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared), run)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
        self.0.live.end(&self.1);
    }
}

/// A run that is going. Dropping it cancels it.
pub struct Run {
    id: RunId,
    commands: Option<mpsc::Sender<Command>>,
    events: event_sender::Events,
    cancel: Cancel,
    ended: bool,
}

impl Run {
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The next event; `None` after [`Event::Ended`].
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = std::task::ready!(self.events.poll_next(cx));
        // A piece of text may still be on its way from a thread that was cancelled: nothing is read
        // after the ending.
        self.ended = matches!(event, None | Some(Event::Ended(_)));
        Poll::Ready(event)
    }

    /// See [`Run::poll_event`].
    pub async fn next_event(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Says something to the run. A command that makes no sense now is ignored.
    pub fn send(&self, command: Command) {
        if let Some(commands) = &self.commands
            && commands.try_send(command).is_err()
        {
            tracing::debug!("a command came too late or too fast");
        }
    }

    /// No more commands will come: what waits for a decision is denied, and the run goes on.
    pub fn close_commands(&mut self) {
        self.commands = None;
    }

    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
