//! The loop of one run: ask the model, let it use tools, ask again.

use std::{
    future::pending,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use tokio::{runtime::Handle, sync::mpsc};

use crate::{
    config::Compaction,
    context::{Window, estimate},
    core::{CallId, Cancel, Message, Role, RunId, SessionId},
    provider::{FinishReason, Provider, Turn},
    tools::{ClientTool, ToolBox, WorkDir},
};

use super::{
    Active, ApprovalBatching, Conversation, History, Prompt, Shared, StartRun,
    bridge::blocking,
    call_repair::{BROKEN_TURNS, hopeless},
    event_sender::{EndPermit, EventSender, Gone},
    limits::{Origin, RunLimits},
    prepare::{Prepared, SessionSlot, prepare},
    protocol::{Command, Event, FailureKind, Outcome, ProposedCall, RunError},
    recorder::Recorder,
    run_registry::PendingApproval,
    session_locks::SessionGuard,
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
    origin: Origin,
    inbox: mpsc::Receiver<Command>,
    (emitter, last): (EventSender, EndPermit),
    cancel: Cancel,
) {
    let began = std::time::Instant::now();
    let outcome = match run(&active.0, id, request, origin, inbox, &emitter, &cancel).await {
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
    origin: Origin,
    inbox: mpsc::Receiver<Command>,
    emitter: &EventSender,
    cancel: &Cancel,
) -> Result<Outcome, Stop> {
    let seat = take_seat(shared, &request.history, emitter, cancel).await?;
    tracing::info!(session = %seat.id, "run started");
    let kept = Kept::of(&request);
    let mut preparing = {
        let (shared, emitter, cancel) = (Arc::clone(shared), emitter.clone(), cancel.clone());
        let runtime = Handle::current();
        blocking(move || {
            let emit = |event| emitter.emit_blocking(event, &cancel, &runtime);
            prepare(&shared, &id, request, origin, seat, &cancel, &emit)
        })
    };
    let prepared = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Stop::Cancelled),
        prepared = preparing.join() => prepared.and_then(|prepared| prepared).map_err(Stop::from),
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(stop) => {
            kept.never_began();
            return Err(stop);
        }
    };
    let mut run = RunLoop::new(shared, prepared, inbox, emitter, cancel);
    let result = run.turns().await;
    if result.is_err() {
        run.leave().await;
    }
    kept.leave(run.window.said(run.bare.as_deref()));
    result
}

/// The conversation in memory that a run continues, if it does.
struct Kept {
    conversation: Option<Conversation>,
    prompt: String,
}

impl Kept {
    fn of(request: &StartRun) -> Self {
        match (&request.history, &request.prompt) {
            (History::InMemory(conversation), Prompt::Text(text)) => {
                Self { conversation: Some(conversation.clone()), prompt: text.clone() }
            }
            (History::InMemory(conversation), Prompt::Skill { name, arguments, .. }) => {
                Self { conversation: Some(conversation.clone()), prompt: format!("/{name} {arguments}") }
            }
            _ => Self { conversation: None, prompt: String::new() },
        }
    }

    /// What the user said is not lost with a run that could not begin.
    fn never_began(self) {
        if let Some(conversation) = self.conversation.filter(|_| !self.prompt.trim().is_empty()) {
            conversation.push(Message::text(Role::User, self.prompt));
        }
    }

    fn leave(self, said: Vec<Message>) {
        if let Some(conversation) = self.conversation {
            conversation.replace(said);
        }
    }
}

/// Waits for the session's turn, if others are using it.
async fn take_seat(
    shared: &Shared,
    history: &History,
    emitter: &EventSender,
    cancel: &Cancel,
) -> Result<SessionSlot, Stop> {
    let id = match history {
        History::Session(id) => id.clone(),
        // Whoever keeps it runs one at a time.
        History::InMemory(conversation) => {
            return Ok(SessionSlot { id: conversation.id().clone(), turn: None });
        }
        // Nobody has it yet, and the next one may want it before this run has let go of its file.
        History::New => SessionId::new(),
        History::Provided(_) => return Ok(SessionSlot { id: SessionId::new(), turn: None }),
    };
    let turn: SessionGuard = match shared.turns.try_take(&id) {
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
    Ok(SessionSlot { id, turn: Some(turn) })
}

/// The state of a run that is going. One task owns it.
pub(super) struct RunLoop<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) emitter: &'a EventSender,
    pub(super) cancel: &'a Cancel,
    /// `None` once no more commands can come.
    inbox: Option<mpsc::Receiver<Command>>,
    pub(super) recorder: Recorder,
    pub(super) session: Option<SessionId>,
    /// The session's id, or the one that stands for it where nothing is stored.
    pub(super) seat: SessionId,
    pub(super) provider: Arc<dyn Provider>,
    /// The tools that run here; a client may change its own beside them.
    own_tools: ToolBox,
    pub(super) tools: ToolBox,
    pub(super) place: Arc<WorkDir>,
    pub(super) window: Window,
    pub(super) system: Arc<str>,
    pub(super) agent: crate::config::AgentConfig,
    pub(super) pace: ApprovalBatching,
    /// Its place in its team, and its budget.
    pub(super) standing: RunLimits,
    /// For its workers.
    pub(super) extra_context: Vec<String>,
    /// The prompt, until it is written: with the answer, or when the run ends without one.
    unrecorded: Option<Message>,
    /// The prompt without the context of this run, where it has one: what later runs see.
    pub(super) bare: Option<String>,
    /// What was already made of the prompt, until it is in the window.
    answered: Vec<Message>,
    /// Its tokens are no guess any more.
    counted: bool,
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
        emitter: &'a EventSender,
        cancel: &'a Cancel,
    ) -> Self {
        let Prepared {
            agent,
            system,
            prompt,
            bare,
            own_tools,
            tools,
            place,
            provider,
            window,
            recorder,
            session,
            seat,
            answered,
            pace,
            standing,
            extra_context,
        } = prepared;
        let inbox = Some(inbox);
        let (unrecorded, cut_after, partial) = (Some(prompt), None, Arc::default());
        Self {
            shared,
            emitter,
            cancel,
            inbox,
            recorder,
            session,
            seat,
            answered,
            provider,
            own_tools,
            tools,
            place,
            window,
            system,
            agent,
            pace,
            standing,
            extra_context,
            unrecorded,
            bare,
            counted: false,
            cut_after,
            partial,
            told_unread: false,
        }
    }

    async fn turns(&mut self) -> Result<Outcome, Stop> {
        self.take_prompt().await?;
        let mut broken = 0;
        for _ in 0..self.standing.turns {
            self.afford()?;
            let mut turn = self.generate().await?;
            broken = if self.mend(&mut turn).await? { 0 } else { broken + 1 };
            let Turn { content, reasoning, calls, finish_reason: finish, usage, truncated_tokens: unread } =
                turn;
            if let Some(usage) = usage {
                self.learn_prompt(usage.prompt);
            }
            let mut records: Vec<Message> = self.take_unrecorded().await?.into_iter().collect();
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
            records.push(answer);
            self.recorder.append(records).await?;

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
            context.answer_tokens = usage.map(|usage| usage.completion);
            let context = Box::new(context);
            let completed = Event::TurnCompleted {
                content: content.clone(),
                reasoning: reasoning.clone(),
                calls: calls.clone(),
                context,
            };
            self.emit(completed).await?;
            if calls.is_empty() {
                return Ok(Outcome::Completed {
                    content,
                    reasoning,
                    truncated: finish == FinishReason::Length,
                });
            }
            self.cut_after =
                calls.last().filter(|_| finish == FinishReason::Length).map(|call| call.id.clone());
            if let Some(outcome) = self.use_tools(calls).await? {
                return Ok(outcome);
            }
            if broken == BROKEN_TURNS {
                return Err(hopeless().into());
            }
        }
        let turns = self.standing.turns;
        Err(RunError::new(FailureKind::Limit, format!("the run used up its {turns} turns"))
            .hint("raise `max_turns` in config.toml if the task needs more")
            .into())
    }

    /// Whether its model may write any more.
    fn afford(&self) -> Result<(), Stop> {
        match &self.standing.purse {
            Some(purse) if purse.remaining() == 0 => {
                let fact = format!("the run used up its {} tokens", purse.total());
                Err(RunError::new(FailureKind::Limit, fact).into())
            }
            _ => Ok(()),
        }
    }

    /// Puts the prompt into the window.
    async fn take_prompt(&mut self) -> Result<(), Stop> {
        let mut prompt = self.unrecorded.take().expect("a run starts with its prompt");
        prompt.tokens = estimate(&prompt);
        let answered: u32 = self.answered.iter().map(estimate).fold(0, u32::saturating_add);
        self.make_room(prompt.tokens.saturating_add(answered)).await?;
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
            self.count_prompt().await?;
        }
        for mut message in std::mem::take(&mut self.answered) {
            message.tokens = estimate(&message);
            self.window.push(message);
            // The server's count is then of more than the prompt.
            self.counted = true;
        }
        Ok(())
    }

    /// Takes the prompt's tokens from the server's count of the whole, which costs nothing. What cannot be
    /// true, because the server left part of it out or counts otherwise, is left to be counted.
    fn learn_prompt(&mut self, whole: u32) {
        let Some(prompt) = self.unrecorded.as_mut().filter(|_| !self.counted) else { return };
        let others = self.window.snapshot().total_tokens().saturating_sub(prompt.tokens);
        let rest = whole.saturating_sub(others);
        let guess = estimate(prompt);
        if rest > guess / 4 && rest < guess.saturating_mul(4).saturating_add(64) {
            prompt.tokens = rest;
            self.window.set_prompt_tokens(rest);
            self.counted = true;
        }
    }

    /// Has the prompt counted.
    async fn count_prompt(&mut self) -> Result<(), Stop> {
        let Some(prompt) = &mut self.unrecorded else { return Ok(()) };
        let (provider, cancel, text) =
            (Arc::clone(&self.provider), self.cancel.clone(), std::mem::take(&mut prompt.content));
        let (text, tokens) = blocking(move || {
            let tokens = provider.count_tokens(&[&text], &cancel)[0];
            (text, tokens)
        })
        .join()
        .await?;
        prompt.content = text;
        prompt.tokens = tokens;
        self.window.set_prompt_tokens(tokens);
        self.counted = true;
        Ok(())
    }

    /// The prompt, counted, if it has not been written yet.
    async fn take_unrecorded(&mut self) -> Result<Option<Message>, Stop> {
        if !self.counted {
            self.count_prompt().await?;
        }
        let mut prompt = self.unrecorded.take();
        if let (Some(prompt), Some(bare)) = (&mut prompt, &self.bare) {
            prompt.content.clone_from(bare);
            prompt.tokens = estimate(prompt);
        }
        Ok(prompt)
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

    fn set_client_tools(&mut self, tools: Vec<ClientTool>) -> Result<(), Stop> {
        self.tools = self
            .own_tools
            .clone()
            .with_client_tools(tools)
            .map_err(|error| RunError::new(FailureKind::Request, error.to_string()))?;
        Ok(())
    }

    /// Notes that these calls wait, for those who decide from elsewhere.
    pub(super) fn wait_for(&self, calls: &[ProposedCall]) {
        self.shared.live.wait(PendingApproval {
            run: self.recorder.run().clone(),
            session: self.seat.clone(),
            agent: self.agent.id.to_string(),
            calls: calls.to_vec(),
            since: SystemTime::now(),
        });
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
        let mut records: Vec<Message> = match self.take_unrecorded().await {
            Ok(prompt) => prompt.into_iter().collect(),
            Err(_) => Vec::new(),
        };
        let text = std::mem::take(&mut *self.partial.lock().unwrap_or_else(PoisonError::into_inner));
        if !text.is_empty() {
            let mut answer = Message::text(Role::Assistant, text);
            answer.tokens = estimate(&answer);
            self.recorder.sign(&mut answer);
            self.window.push(answer.clone());
            records.push(answer);
        }
        if let Err(error) = self.recorder.append(records).await {
            tracing::warn!(%error, "the prompt or the partial answer could not be stored");
        }
    }
}

async fn next(inbox: &mut Option<mpsc::Receiver<Command>>) -> Option<Command> {
    match inbox {
        Some(inbox) => inbox.recv().await,
        None => pending().await,
    }
}
