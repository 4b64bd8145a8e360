//! The one agent core that every door stands on.

mod anchors;
mod bridge;
mod broken;
mod compact;
mod conversation;
mod crew;
mod emitter;
mod files;
mod model_call;
mod offer;
mod prepare;
pub mod protocol;
mod purse;
mod record;
mod run_loop;
mod session_turns;
mod skill_tool;
mod spawn_tool;
mod standing;
mod tool_calls;
mod watch;
mod worker;

pub use watch::WorkerWatch;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    task::{Context, Poll},
};

use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::{
    config::{Config, Home},
    core::{Cancel, Message, RunId, SessionId},
    provider::{Models, ServerStatus},
    sessions::Sessions,
    team::Teams,
    tools::ClientTool,
};
use anchors::Anchors;
use protocol::{Command, Event};
use session_turns::SessionTurns;
use standing::Origin;

pub use conversation::Conversation;
pub use offer::{ChosenModel, OwnTool};
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
    teams: Teams,
    turns: SessionTurns,
    anchors: Anchors,
    /// Stops every run.
    stop: Cancel,
    active: AtomicUsize,
}

/// One prompt, as a door hands it over.
#[derive(Clone, Debug, Default)]
pub struct StartRun {
    pub prompt: Prompt,
    pub history: History,
    /// Empty means the session's default agent, else `default`.
    pub agent: String,
    /// Absolute; `None` means the configured one. The daemon has no current directory.
    pub working_dir: Option<PathBuf>,
    /// Tools that run here.
    pub own_tools: OwnTools,
    /// Tools that run at the client.
    pub client_tools: Vec<ClientTool>,
    /// Blocks that join the system text, for example a project description.
    pub extra_context: Vec<String>,
    /// Blocks that the model reads before the prompt in this run, and in no later one.
    pub prompt_context: Vec<String>,
    /// Stands in for the agent's `model`.
    pub model: Option<String>,
    /// Stands in for the configured window, in tokens; the model's own is the limit.
    pub context_size: Option<u32>,
    /// Stands in for the agent's `endpoint`.
    pub endpoint: Option<String>,
    pub pace: Pace,
    /// Model calls before the run fails; the configuration may allow fewer.
    pub max_turns: Option<u32>,
    /// The team that its workers belong to; `None` is its session.
    pub team: Option<SessionId>,
    /// Let it start workers even if its agent may not.
    pub workers: bool,
}

/// Which of the daemon's tools take part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OwnTools {
    #[default]
    All,
    /// Those of these names. Where none of them works on files, no working directory is needed either.
    Only(Vec<String>),
}

impl OwnTools {
    fn need_a_place(&self) -> bool {
        let needs_none = |name: &String| ["web_fetch", "skill", SPAWN_WORKER].contains(&&**name);
        match self {
            Self::All => true,
            Self::Only(names) => !names.iter().all(needs_none),
        }
    }
}

/// When the calls of one turn are proposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// All at once; none runs before each has its decision.
    #[default]
    Together,
    /// Each when the one before it has run, so that it is proposed against what that has left.
    OneByOne,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    Text(String),
    /// A skill, with its arguments as typed and text that follows it (may be empty).
    Skill {
        name: String,
        arguments: String,
        text: String,
    },
}

impl Prompt {
    /// As typed, without the skill.
    fn text(&self) -> &str {
        let (Self::Text(text) | Self::Skill { text, .. }) = self;
        text
    }
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// What was said before.
#[derive(Clone, Debug, Default)]
pub enum History {
    /// Nothing: a new stored session.
    #[default]
    New,
    /// A stored session, created if it does not exist.
    Session(SessionId),
    /// What the client kept. Nothing of the run is stored.
    Given(Vec<Message>),
    /// A conversation in memory, which the run continues. One run at a time.
    Kept(Conversation),
}

impl AgentCore {
    pub fn new(home: Home, config: Config, models: Arc<dyn Models>) -> Self {
        let (sessions, teams) = (Sessions::new(&home), Teams::new(&home));
        let shared = Shared {
            home,
            config,
            models,
            sessions,
            teams,
            turns: SessionTurns::default(),
            anchors: Anchors::default(),
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
        let (emitter, events) = emitter::channel();
        let id = RunId::new();
        let span = tracing::info_span!("run", id = %id);
        let active = Active::count(&self.shared);
        let run = run_loop::drive(active, id.clone(), request, origin, inbox, emitter, cancel.clone());
        tokio::spawn(run.instrument(span));
        Run { commands: Some(commands), events, cancel, ended: false }
    }

    /// What the workers of a team do: what the log has behind the event of number `after` (0 is all of it),
    /// then what comes.
    pub fn watch_workers(&self, team: &SessionId, after: u64) -> WorkerWatch {
        WorkerWatch::new(Arc::clone(&self.shared), team.clone(), after)
    }

    /// Whether a session of this id is stored, or has had workers. Looks for two files.
    pub fn has_team(&self, id: &SessionId) -> bool {
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
struct Active(Arc<Shared>);

impl Active {
    fn count(shared: &Arc<Shared>) -> Self {
        shared.active.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A run that is going. Dropping it cancels it.
pub struct Run {
    commands: Option<mpsc::Sender<Command>>,
    events: emitter::Events,
    cancel: Cancel,
    ended: bool,
}

impl Run {
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
    pub async fn event(&mut self) -> Option<Event> {
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
