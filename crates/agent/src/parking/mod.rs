//! Runs that wait on disk for a decision: how a run is parked, and how another one goes on with it.

mod access;
mod resume;

use std::collections::HashSet;

use kontekst_core::{CallId, RunId, SessionId, ToolCall, clock::unix_millis, error_chain};
use kontekst_store::parked::{ParkedCall, ParkedRun, RunSettings};
use kontekst_tools::WorkDir;

use crate::run::{FailureKind, Outcome, RunError, StartRun, blocking};

pub(crate) use access::ParkedAccess;
pub(crate) use resume::{Beginning, load};

/// The longest beginning of a prompt that a parked run has, in characters.
const MAX_PROMPT: usize = 2000;

/// The largest settings of a run that is parked, in bytes.
const MAX_SETTINGS: usize = 1 << 20;

/// The means of a run to be parked, and the work that comes first if it goes on with a parked one.
#[derive(Default)]
pub(crate) struct Parking {
    /// The run as it would be parked, without its calls. `None` if it cannot be parked.
    run: Option<Box<ParkedRun>>,
    /// The run that this one goes on with, as it was parked.
    resumed: Option<Box<ParkedRun>>,
    /// The calls of the last answer of the parked run, until this one takes them.
    open: Option<OpenTurn>,
}

/// The last answer of a parked run, as far as it is not done with.
pub(crate) struct OpenTurn {
    /// The calls without a result, in the model's order.
    pub(crate) calls: Vec<ToolCall>,
    /// Those of them that were about to run when an earlier attempt was interrupted.
    pub(crate) started: HashSet<CallId>,
}

impl Parking {
    /// Returns what a client's run needs to be parked. `stored` says that its messages are in a session.
    pub(crate) fn of_client(id: &RunId, session: &SessionId, request: &StartRun, stored: bool) -> Self {
        let settings = request.park.as_ref().filter(|settings| stored && settings.len() <= MAX_SETTINGS);
        let Some(settings) = settings.cloned() else { return Self::default() };
        let run = ParkedRun {
            id: id.clone(),
            runs: vec![id.clone()],
            parked_by: id.clone(),
            parked_at: 0,
            is_begun: false,
            session: session.clone(),
            agent: request.agent.clone(),
            working_dir: request.working_dir.clone(),
            dir: None,
            prompt: request.prompt.typed().trim().chars().take(MAX_PROMPT).collect(),
            turns: 0,
            checks_due: false,
            settings: RunSettings(settings),
            calls: Vec::new(),
        };
        Self { run: Some(Box::new(run)), ..Self::default() }
    }

    /// Returns what a run needs that goes on with `parked`, which has the id of that run already.
    pub(crate) fn of_resumed(parked: ParkedRun, open: OpenTurn) -> Self {
        let run = ParkedRun { calls: Vec::new(), ..parked.clone() };
        Self { run: Some(Box::new(run)), resumed: Some(Box::new(parked)), open: Some(open) }
    }

    /// Sets the agent, whose name the request may leave out, and which directory the run works in.
    pub(crate) fn with_agent(mut self, agent: &str, work_dir: &WorkDir) -> Self {
        if let Some(run) = &mut self.run {
            agent.clone_into(&mut run.agent);
            run.dir = run.working_dir.as_ref().and(work_dir.place());
        }
        self
    }

    pub(crate) fn is_possible(&self) -> bool {
        self.run.is_some()
    }

    /// Returns true for a run that goes on with a parked one.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// Counts an answer of the model.
    pub(crate) fn note_turn(&mut self) {
        if let Some(run) = &mut self.run {
            run.turns += 1;
        }
    }

    /// Takes the calls that have to be dealt with before the model is asked.
    pub(crate) fn take_open(&mut self) -> Option<OpenTurn> {
        self.open.take()
    }

    /// Returns the call as it was when the run was parked, if it is one of those at which it was.
    pub(crate) fn parked_call(&self, call: &CallId) -> Option<&ParkedCall> {
        self.resumed.as_ref()?.calls.iter().find(|parked| parked.call.id == *call)
    }

    /// Returns true while the calls at which the run was parked are decided about or run.
    pub(crate) fn holds_calls(&self) -> bool {
        self.resumed.as_ref().is_some_and(|resumed| !resumed.calls.is_empty())
    }

    /// Forgets the calls at which the run was parked, because the next ones are new. A model may use an id again.
    pub(crate) fn forget_parked_calls(&mut self) {
        if let Some(resumed) = &mut self.resumed {
            resumed.calls.clear();
        }
    }

    /// Stores the run with the calls at which it waits. Returns the name under which it is parked.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Storage`] if it cannot be stored, [`FailureKind::Internal`] if it cannot be parked at all.
    pub(crate) async fn park(
        &self,
        access: &ParkedAccess,
        own: &RunId,
        calls: Vec<ParkedCall>,
        checks_due: bool,
    ) -> Result<RunId, RunError> {
        let Some(run) = &self.run else {
            return Err(RunError::new(FailureKind::Internal, "this run cannot be parked"));
        };
        // If the same calls wait again, their answer is that of an earlier run.
        let same_answer = self.resumed.as_ref().filter(|_| self.holds_calls());
        let parked_by = same_answer.map_or(own, |resumed| &resumed.parked_by).clone();
        let parked_at = unix_millis();
        let run = ParkedRun { calls, checks_due, parked_at, parked_by, is_begun: false, ..(**run).clone() };
        let (runs, id) = (access.runs.clone(), run.id.clone());
        let mut saving = blocking(move || runs.save(&run));
        let saved = saving.join().await?;
        saved.map(|()| id).map_err(|error| RunError::from_source(FailureKind::Storage, &error))
    }

    /// Removes the parked run that this one went on with, if this one has come to its end. One that has failed or was
    /// cancelled stays parked, so that somebody can go on with it again.
    pub(crate) async fn finish(&self, access: &ParkedAccess, outcome: &Outcome) {
        let is_over = matches!(outcome, Outcome::Completed { .. } | Outcome::Denied);
        let Some(resumed) = self.resumed.as_ref().filter(|_| is_over) else { return };
        let (runs, id) = (access.runs.clone(), resumed.id.clone());
        if let Ok(Err(error)) = blocking(move || runs.remove(&id)).join().await {
            tracing::warn!(error = error_chain(&error), "a parked run that is over could not be removed");
        }
    }
}
