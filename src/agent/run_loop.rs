//! The loop of one run: ask the model, let it use tools, ask again.

use std::{
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{runtime::Handle, sync::mpsc};

use crate::{
    config::Compaction,
    context::{Window, estimate},
    core::{CallId, Cancel, Message, Role, RunId, SessionId, ToolDef},
    provider::{Finish, Provider, Turn},
    tools::{Place, ToolBox},
};

use super::{
    Active, History, Shared, StartRun,
    bridge::{Blocking, blocking},
    broken::{BROKEN_TURNS, hopeless},
    emitter::{Emitter, Gone, LastWord},
    prepare::{Prepared, Seat, prepare},
    protocol::{Command, Event, Failure, Outcome, RunError},
    record::Recorder,
    session_turns::SessionTurn,
};

/// Why the loop left early.
pub(super) enum Stop {
    Cancelled,
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Cancelled
    }
}

/// Takes one run from its request to its ending.
pub(super) async fn drive(
    active: Active,
    id: RunId,
    request: StartRun,
    inbox: mpsc::Receiver<Command>,
    (emitter, last): (Emitter, LastWord),
    cancel: Cancel,
) {
    let began = std::time::Instant::now();
    let outcome = match run(&active.0, id, request, inbox, &emitter, &cancel).await {
        Ok(outcome) => outcome,
        Err(Stop::Cancelled) => Outcome::Cancelled,
        Err(Stop::Failed(error)) => Outcome::Failed(error),
    };
    let ms = began.elapsed().as_millis();
    match &outcome {
        Outcome::Completed { .. } => tracing::info!(ms, "run completed"),
        Outcome::Denied => tracing::info!(ms, "run ended by a denial"),
        Outcome::Cancelled => tracing::info!(ms, "run cancelled"),
        Outcome::Failed(error) => tracing::warn!(ms, kind = ?error.kind, "run failed"),
    }
    drop(active);
    last.say(outcome);
}

async fn run(
    shared: &Arc<Shared>,
    id: RunId,
    request: StartRun,
    inbox: mpsc::Receiver<Command>,
    emitter: &Emitter,
    cancel: &Cancel,
) -> Result<Outcome, Stop> {
    let seat = take_seat(shared, &request.history, emitter, cancel).await?;
    tracing::info!(session = %seat.id, "run started");
    let mut preparing = {
        let (shared, emitter, cancel) = (Arc::clone(shared), emitter.clone(), cancel.clone());
        let runtime = Handle::current();
        blocking(move || {
            let emit = |event| emitter.emit_blocking(event, &cancel, &runtime);
            prepare(&shared, &id, request, seat, &cancel, &emit)
        })
    };
    let prepared = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Stop::Cancelled),
        prepared = preparing.join() => prepared??,
    };
    let mut run = RunLoop::new(shared, prepared, inbox, emitter, cancel);
    let result = run.turns().await;
    if result.is_err() {
        run.leave().await;
    }
    result
}

/// Waits for the session's turn, if others are using it.
async fn take_seat(
    shared: &Shared,
    history: &History,
    emitter: &Emitter,
    cancel: &Cancel,
) -> Result<Seat, Stop> {
    let id = match history {
        History::Session(id) => id.clone(),
        History::New | History::Given(_) => return Ok(Seat { id: SessionId::new(), turn: None }),
    };
    let turn: SessionTurn = match shared.turns.try_take(&id) {
        Ok(turn) => turn,
        Err(waiting) => {
            emitter.emit(Event::WaitingForSession, cancel).await?;
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Stop::Cancelled),
                turn = waiting.turn() => turn,
            }
        }
    };
    Ok(Seat { id, turn: Some(turn) })
}

/// The state of a run that is going. One task owns it.
pub(super) struct RunLoop<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) emitter: &'a Emitter,
    pub(super) cancel: &'a Cancel,
    /// `None` once no more commands can come.
    inbox: Option<mpsc::Receiver<Command>>,
    pub(super) recorder: Recorder,
    pub(super) session: Option<SessionId>,
    pub(super) provider: Arc<dyn Provider>,
    /// The tools that run here; a client may change its own beside them.
    own_tools: ToolBox,
    pub(super) tools: ToolBox,
    pub(super) place: Arc<Place>,
    pub(super) window: Window,
    pub(super) system: Arc<str>,
    pub(super) agent: crate::config::AgentConfig,
    prompt: Option<Message>,
    /// The prompt that has not been counted and written yet.
    unrecorded: Option<Message>,
    /// Counting the prompt and writing it down, which goes on beside the first model call.
    recording: Option<Blocking<Result<u32, RunError>>>,
    /// The answer was cut behind this call.
    pub(super) cut_after: Option<CallId>,
    /// What has come of the answer that is being generated.
    pub(super) partial: Arc<Mutex<String>>,
    /// Said once that the server does not read whole prompts.
    told_unread: bool,
}

impl<'a> RunLoop<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        prepared: Prepared,
        inbox: mpsc::Receiver<Command>,
        emitter: &'a Emitter,
        cancel: &'a Cancel,
    ) -> Self {
        let Prepared { agent, system, prompt, own_tools, tools, place, provider, window, recorder, session } =
            prepared;
        let inbox = Some(inbox);
        let (prompt, unrecorded, recording, cut_after, partial) =
            (Some(prompt), None, None, None, Arc::default());
        Self {
            shared,
            emitter,
            cancel,
            inbox,
            recorder,
            session,
            provider,
            own_tools,
            tools,
            place,
            window,
            system,
            agent,
            prompt,
            unrecorded,
            recording,
            cut_after,
            partial,
            told_unread: false,
        }
    }

    async fn turns(&mut self) -> Result<Outcome, Stop> {
        self.take_prompt().await?;
        let mut broken = 0;
        for _ in 0..self.shared.config.max_turns {
            let mut turn = self.generate().await?;
            broken = if self.mend(&mut turn).await? { 0 } else { broken + 1 };
            let Turn { content, reasoning, calls, finish, usage, unread } = turn;
            self.settle_prompt().await?;
            let mut answer = Message::text(Role::Assistant, content.clone());
            answer.tool_calls.clone_from(&calls);
            answer.reasoning.clone_from(&reasoning);
            answer.tokens = usage.map_or_else(|| estimate(&answer), |usage| usage.completion);
            self.recorder.sign(&mut answer);
            if let Some(usage) = usage {
                self.window.correct(usage.prompt);
            }
            self.window.push(answer.clone());
            self.forget_partial();
            self.recorder.append(vec![answer]).await?;

            if let Some(unread) = unread.filter(|_| !self.told_unread) {
                self.told_unread = true;
                let text = format!(
                    "the model server left out about {unread} tokens of the prompt without saying so: give it a \
                     larger window, or set `context_size` to the one it has"
                );
                self.emit(Event::Notice(text)).await?;
            }
            let mut context = self.window.snapshot();
            context.prompt_tokens = usage.map(|usage| usage.prompt);
            context.cached_tokens = usage.map(|usage| usage.cached);
            let context = Box::new(context);
            let completed =
                Event::TurnCompleted { content: content.clone(), reasoning: reasoning.clone(), context };
            self.emit(completed).await?;
            if calls.is_empty() {
                return Ok(Outcome::Completed { content, reasoning, truncated: finish == Finish::Length });
            }
            self.cut_after = calls.last().filter(|_| finish == Finish::Length).map(|call| call.id.clone());
            if let Some(outcome) = self.use_tools(calls).await? {
                return Ok(outcome);
            }
            if broken == BROKEN_TURNS {
                return Err(hopeless().into());
            }
        }
        let turns = self.shared.config.max_turns;
        Err(RunError::new(Failure::Limit, format!("the run used up its {turns} turns"))
            .hint("raise `max_turns` in config.toml if the task needs more")
            .into())
    }

    /// Puts the prompt into the window.
    async fn take_prompt(&mut self) -> Result<(), Stop> {
        let mut prompt = self.prompt.take().expect("taken once");
        prompt.tokens = estimate(&prompt);
        self.make_room(prompt.tokens).await?;
        self.recorder.sign(&mut prompt);
        self.window.push(prompt.clone());
        self.unrecorded = Some(prompt);
        // The estimate is good enough while there is room to spare; else the exact count decides.
        let snapshot = self.window.snapshot();
        if i64::from(self.window.prompt_tokens()) * 2 > i64::from(snapshot.context_size) {
            let (provider, cancel, messages) =
                (Arc::clone(&self.provider), self.cancel.clone(), snapshot.messages.len());
            let overhead = blocking(move || provider.template_tokens(messages, &cancel)).join().await?;
            self.window.expect_overhead(overhead);
            self.settle_prompt().await?;
        }
        Ok(())
    }

    /// Starts to count the prompt and to write it down, if that has not been done.
    pub(super) fn record_prompt(&mut self) {
        let Some(mut prompt) = self.unrecorded.take() else { return };
        let (provider, recorder, cancel) =
            (Arc::clone(&self.provider), self.recorder.clone(), self.cancel.clone());
        self.recording = Some(blocking(move || {
            prompt.tokens = provider.count_tokens(&[&prompt.content], &cancel)[0];
            recorder.prompt_blocking(&prompt)?;
            Ok(prompt.tokens)
        }));
    }

    async fn settle_prompt(&mut self) -> Result<(), Stop> {
        self.record_prompt();
        if let Some(mut recording) = self.recording.take() {
            let tokens = recording.join().await??;
            self.window.set_prompt_tokens(tokens);
        }
        Ok(())
    }

    /// Takes a command that comes while nothing is asked of the client.
    pub(super) fn hear(&mut self, command: Option<Command>) -> Result<(), Stop> {
        match command {
            None => self.inbox = None,
            Some(Command::SetClientTools(tools)) => self.set_client_tools(tools)?,
            Some(Command::Approve(_) | Command::Deny { .. } | Command::ToolResult { .. }) => {}
        }
        Ok(())
    }

    fn set_client_tools(&mut self, tools: Vec<(ToolDef, std::time::Duration)>) -> Result<(), Stop> {
        self.tools = self
            .own_tools
            .clone()
            .with_client_tools(tools)
            .map_err(|error| RunError::new(Failure::Request, error.to_string()))?;
        Ok(())
    }

    /// The next command; never resolves once there can be none, so it is only used in a `select!`.
    pub(super) async fn command(&mut self) -> Option<Command> {
        next(&mut self.inbox).await
    }

    pub(super) fn compaction(&self) -> Compaction {
        self.shared.config.compaction
    }

    /// Seconds that one tool call may take.
    pub(super) fn tool_timeout(&self) -> u64 {
        self.shared.config.tools.timeout_seconds
    }

    /// Whether a client can still decide.
    pub(super) fn can_hear(&self) -> bool {
        self.inbox.is_some()
    }

    pub(super) async fn emit(&self, event: Event) -> Result<(), Stop> {
        Ok(self.emitter.emit(event, self.cancel).await?)
    }

    fn forget_partial(&self) {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Leaves the session in order after a cancel or a failure: the prompt and what came of the answer
    /// are on disk, so that the next run sees what the person saw.
    async fn leave(&mut self) {
        if let Err(Stop::Failed(error)) = self.settle_prompt().await {
            tracing::warn!(%error, "the prompt could not be stored");
            return;
        }
        let text = std::mem::take(&mut *self.partial.lock().unwrap_or_else(PoisonError::into_inner));
        if text.is_empty() {
            return;
        }
        let mut answer = Message::text(Role::Assistant, text);
        answer.tokens = estimate(&answer);
        self.recorder.sign(&mut answer);
        if let Err(error) = self.recorder.append(vec![answer]).await {
            tracing::warn!(%error, "the partial answer could not be stored");
        }
    }
}

async fn next(inbox: &mut Option<mpsc::Receiver<Command>>) -> Option<Command> {
    match inbox {
        Some(inbox) => inbox.recv().await,
        None => pending().await,
    }
}
