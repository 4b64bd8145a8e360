//! What a run needs before its first model call. Blocking: it reads files and may start a server.

use std::{io::Read as _, sync::Arc};

use crate::{
    config::{AgentConfig, AgentError},
    context::{Budget, Window},
    core::{Cancel, Message, Name, Role, RunId, SessionId, ToolDef, error_chain},
    provider::{ModelSelector, Models, Progress, Provider, ProviderError},
    skills::Skills,
    tools::{FileError, Tool, ToolBox, WorkDir, Workspace, builtin},
};

use super::{
    ApprovalBatching, DaemonTools, History, Prompt, Shared, StartRun,
    limits::{Origin, ParentContext, RunLimits},
    protocol::{Event, FailureKind, RunError},
    recorder::{Recorder, storage},
    session_locks::SessionGuard,
    skill_tool::SkillTool,
    spawn_tool::SpawnTool,
};

/// The largest AGENTS.md that is taken in whole; a longer one would not leave room for a conversation.
const PROJECT_TEXT_LIMIT: u64 = 32 * 1024;

/// The smallest window that a client may ask for, in tokens: what the configuration allows, too.
const MIN_WINDOW: u32 = 256;

/// A run that can begin.
pub(super) struct Prepared {
    pub(super) agent: AgentConfig,
    pub(super) system: Arc<str>,
    /// The user's message, not yet counted.
    pub(super) prompt: Message,
    /// The same without its context, where it has one.
    pub(super) bare: Option<String>,
    /// The tools that run here.
    pub(super) own_tools: ToolBox,
    /// And the client's with them.
    pub(super) tools: ToolBox,
    pub(super) place: Arc<WorkDir>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) window: Window,
    pub(super) recorder: Recorder,
    /// `None` for a conversation that only the client keeps.
    pub(super) session: Option<SessionId>,
    /// The session's id, or the one that stands for it where nothing is stored.
    pub(super) seat: SessionId,
    /// What was already made of the prompt.
    pub(super) answered: Vec<Message>,
    pub(super) pace: ApprovalBatching,
    pub(super) standing: RunLimits,
    pub(super) extra_context: Vec<String>,
}

/// The session a run belongs to, and the right to use it.
pub(super) struct SessionSlot {
    pub(super) id: SessionId,
    pub(super) turn: Option<SessionGuard>,
}

/// Gets everything ready. `emit` receives `Started`, notices and progress; an error before `Started`
/// means that the run never began.
pub(super) fn prepare(
    shared: &Shared,
    run: &RunId,
    mut request: StartRun,
    origin: Origin,
    seat: SessionSlot,
    cancel: &Cancel,
    emit: &dyn Fn(Event),
) -> Result<Prepared, RunError> {
    let mut agent = load_agent(shared, &request.agent, &seat.id)?;
    agent.model = request.overrides.model.take().unwrap_or(agent.model);
    agent.endpoint = request.overrides.endpoint.take().or(agent.endpoint);
    agent.sampling.overlay(&request.overrides.sampling);
    let skills = Skills::load(&shared.home);
    let mut prompt = prompt_message(&request.prompt, &skills)?;
    let bare = put_before(&request.context.before_prompt, &mut prompt);
    let (place, own_tools, standing, parent) = match origin {
        Origin::Client => {
            let place = Arc::new(open_place(shared, &request)?);
            let team = request.subagents.root_session.take().unwrap_or_else(|| seat.id.clone());
            let standing = RunLimits::of_client(team, &shared.config, request.subagents.allow);
            let tools = chosen(own_tools(shared, skills), &request.tools.daemon);
            (place, tools, standing.within(request.overrides.max_turns), None)
        }
        Origin::Parent(inherited) => {
            let ParentContext { place, tools, parent, standing } = *inherited;
            (place, tools, standing, Some(parent))
        }
    };
    // Who chooses among the daemon's tools chooses this one, too.
    let by_agent = agent.workers && request.tools.daemon == DaemonTools::All;
    let daemon_tools = if standing.may_start() && (standing.asked_for || by_agent) {
        own_tools.with_tool(Arc::new(SpawnTool::new(shared.home.clone(), &agent)))
    } else {
        own_tools
    };
    let tools = daemon_tools
        .clone()
        .with_client_tools(request.tools.client)
        .map_err(|error| RunError::new(FailureKind::Request, error_chain(&error)))?;
    let log = match request.history {
        History::Provided(_) | History::InMemory(_) => None,
        History::New | History::Session(_) => {
            Some(shared.sessions.open(&seat.id).map_err(|error| storage(&error))?)
        }
    };
    if let Some(parent) = &parent {
        shared.sessions.set_parent(&seat.id, parent).map_err(|error| storage(&error))?;
    }
    emit(Event::Started { run: run.clone(), session: seat.id.clone(), agent: agent.id.to_string() });

    let mut notices = Vec::new();
    let system = system_text(&agent, &place, &request.context.system, &mut notices);
    for notice in notices {
        emit(Event::Notice(notice));
    }

    let provider = open_model(&*shared.models, &agent, cancel, emit)?;
    if let Some(notice) = provider.notice() {
        emit(Event::Notice(notice));
    }
    let shown = provider.shown();
    let definitions = definitions(&tools.defs());
    let mut given = match &mut request.history {
        History::Provided(messages) => std::mem::take(messages),
        History::InMemory(conversation) => conversation.messages(),
        History::New | History::Session(_) => Vec::new(),
    };
    let uncounted: Vec<String> =
        given.iter().filter(|message| message.tokens == 0).map(counted_text).collect();
    // All in one question. In a long session the server's count of the whole says little about the prompt,
    // so that is asked about too; a new one saves itself the answer.
    let mut texts: Vec<&str> =
        vec![if shown.system { &system } else { "" }, if shown.tools { &definitions } else { "" }];
    texts.extend(uncounted.iter().map(String::as_str));
    if !uncounted.is_empty() || matches!(request.history, History::Session(_)) {
        texts.push(&prompt.content);
    }
    let counts = provider.count_tokens(&texts, cancel);
    for (message, tokens) in given.iter_mut().filter(|message| message.tokens == 0).zip(&counts[2..]) {
        message.tokens = *tokens;
    }
    if !shown.history {
        given.iter_mut().for_each(|message| message.tokens = 0);
    }
    let configured = agent.context_size.unwrap_or(shared.config.context_size);
    let wanted = request.overrides.context_size.map_or(configured, |wanted| wanted.max(MIN_WINDOW));
    let size = wanted.min(provider.window().unwrap_or(configured));
    let budget = Budget::new(size, agent.sampling.reply_limit(), counts[0], counts[1]);
    let history_budget = budget.history(crate::context::estimate(&prompt));
    let history = match request.history {
        History::Provided(_) | History::InMemory(_) => given,
        History::New => Vec::new(),
        History::Session(_) if !shown.history => Vec::new(),
        History::Session(_) => {
            let log = log.as_ref().expect("a stored session has a log");
            let tail =
                log.tail(history_budget, &crate::context::estimate).map_err(|error| storage(&error))?;
            if tail.damaged > 0 {
                emit(Event::Notice(format!(
                    "session {} has {} unreadable record(s); they were skipped",
                    seat.id, tail.damaged
                )));
            }
            shared.anchors.cut(&seat.id, tail, history_budget)
        }
    };
    let window = Window::new(budget, history_budget, history);
    let session = match request.history {
        History::Provided(_) => None,
        History::New | History::Session(_) | History::InMemory(_) => Some(seat.id.clone()),
    };
    let answered = request.context.after_prompt;
    let recorder = Recorder::new(run.clone(), agent.id.to_string(), log, seat.turn);
    Ok(Prepared {
        agent,
        system,
        prompt,
        bare,
        own_tools: daemon_tools,
        tools,
        place,
        provider,
        window,
        recorder,
        session,
        seat: seat.id,
        answered,
        pace: request.tools.approvals,
        standing,
        extra_context: request.context.system,
    })
}

/// Finds or starts the model's server.
pub(super) fn open_model(
    models: &dyn Models,
    agent: &AgentConfig,
    cancel: &Cancel,
    emit: &dyn Fn(Event),
) -> Result<Arc<dyn Provider>, RunError> {
    let wanted = ModelSelector { model: &agent.model, endpoint: agent.endpoint.as_deref() };
    models
        .open(wanted, cancel, &mut |progress: Progress| emit(Event::Progress(progress)))
        .map_err(|error| provider_error(&error))
}

/// A provider's error as the run's failure.
pub(super) fn provider_error(error: &ProviderError) -> RunError {
    match error {
        ProviderError::NoServer(missing) => {
            RunError::new(FailureKind::Unreachable, missing.fact.clone()).hint(missing.hint.clone())
        }
        ProviderError::Unreachable { .. } => RunError::new(FailureKind::Unreachable, error_chain(error))
            .hint("`kontekst status` shows the model server, `kontekst daemon logs` what it said"),
        ProviderError::Overflow { .. } => RunError::new(FailureKind::Limit, error.to_string())
            .hint("ask about less at once, start a --new session, or raise `context_size` in config.toml"),
        // 529 is what some gateways say for 503.
        ProviderError::Status { status: 429 | 503 | 529, .. } => {
            RunError { busy: true, ..RunError::new(FailureKind::Model, error_chain(error)) }
        }
        ProviderError::Cancelled
        | ProviderError::Status { .. }
        | ProviderError::Protocol(_)
        | ProviderError::Engine(_) => RunError::new(FailureKind::Model, error_chain(error)),
    }
}

pub(super) fn load_agent(shared: &Shared, asked: &str, session: &SessionId) -> Result<AgentConfig, RunError> {
    let name: Name = if asked.is_empty() {
        let stored = shared.sessions.default_agent(session);
        stored.unwrap_or_else(|| "default".parse().expect("a good name"))
    } else {
        asked.parse().map_err(|error| RunError::new(FailureKind::Request, format!("agent: {error}")))?
    };
    AgentConfig::load(&shared.home, &name).map_err(|error| {
        let run_error = RunError::new(FailureKind::Request, error_chain(&error));
        match error {
            AgentError::NotFound { .. } => run_error.hint("`kontekst agents` lists them"),
            _ => run_error,
        }
    })
}

fn open_place(shared: &Shared, request: &StartRun) -> Result<WorkDir, RunError> {
    if request.working_dir.is_none() && !request.tools.daemon.need_work_dir() {
        return WorkDir::unlinked(&shared.home.run())
            .map_err(|error| RunError::new(FailureKind::Internal, error_chain(&error)));
    }
    let configured = Some(&shared.config.tools.working_dir).filter(|dir| !dir.as_os_str().is_empty());
    let Some(dir) = request.working_dir.as_ref().or(configured) else {
        let message = "no working directory: the client sent none and none is configured";
        return Err(RunError::new(FailureKind::Request, message)
            .hint("send `working_dir`, or set [tools] working_dir in config.toml"));
    };
    WorkDir::new(dir).map_err(|error| RunError::new(FailureKind::Request, error_chain(&error)))
}

fn prompt_message(prompt: &Prompt, skills: &Skills) -> Result<Message, RunError> {
    let text = match prompt {
        Prompt::Text(text) => text.clone(),
        Prompt::Skill { name, arguments, text } => {
            let skill = skills.find(name).filter(|skill| skill.user_invocable).ok_or_else(|| {
                let known: Vec<&str> =
                    skills.iter().filter(|skill| skill.user_invocable).map(|s| s.name.as_str()).collect();
                let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
                RunError::new(FailureKind::Request, format!("no skill `{name}`; there are: {known}"))
                    .hint("`kontekst skills` lists them; --no-skill sends the text as it is")
            })?;
            let block = skill.prompt_block(arguments);
            if text.is_empty() { block } else { format!("{block}\n\n---\n\n{text}") }
        }
    };
    if text.trim().is_empty() {
        return Err(RunError::new(FailureKind::Request, "the prompt is empty"));
    }
    Ok(Message::text(Role::User, text))
}

/// Puts what belongs to this run only before the prompt. Gives the prompt as it was, where that changed it.
fn put_before(context: &[String], prompt: &mut Message) -> Option<String> {
    let blocks: Vec<&str> =
        context.iter().map(|block| block.trim()).filter(|block| !block.is_empty()).collect();
    if blocks.is_empty() {
        return None;
    }
    let whole = format!("{}\n\n---\n\n{}", blocks.join("\n\n"), prompt.content);
    Some(std::mem::replace(&mut prompt.content, whole))
}

/// Every tool that runs here.
pub(super) fn own_tools(shared: &Shared, skills: Skills) -> Vec<Arc<dyn Tool>> {
    let mut tools = builtin::all(&shared.config.tools, &shared.own_listeners);
    if skills.for_model().next().is_some() {
        tools.push(Arc::new(SkillTool::new(skills)) as Arc<dyn Tool>);
    }
    tools
}

fn chosen(mut tools: Vec<Arc<dyn Tool>>, wanted: &DaemonTools) -> ToolBox {
    if let DaemonTools::Only(names) = wanted {
        tools.retain(|tool| names.contains(&tool.def().name));
    }
    ToolBox::new(tools)
}

/// Agent, project and door, in this order; the same bytes in every turn of every run that finds the
/// same files, which is what a server's prompt cache needs.
fn system_text(
    agent: &AgentConfig,
    place: &WorkDir,
    extra: &[String],
    notices: &mut Vec<String>,
) -> Arc<str> {
    let mut blocks = vec![agent.prompt.trim().to_owned()];
    match project_text(place.workspace()) {
        Ok(Some(text)) if text.len() as u64 > PROJECT_TEXT_LIMIT => notices
            .push(format!("AGENTS.md was left out: it is larger than {} KiB", PROJECT_TEXT_LIMIT / 1024)),
        Ok(Some(text)) if !text.trim().is_empty() => {
            blocks.push(format!("<project-instructions>\n{}\n</project-instructions>", text.trim()));
        }
        Ok(_) => {}
        Err(error) => notices.push(format!("AGENTS.md was left out: {}", error.message())),
    }
    blocks.extend(extra.iter().map(|block| block.trim().to_owned()));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n").into()
}

/// The project's own instructions; `None` when it has none. Reads at most one byte past the limit.
fn project_text(workspace: &Workspace) -> Result<Option<String>, FileError> {
    const NAME: &str = "AGENTS.md";
    let file = match workspace.open(&workspace.path(NAME)?) {
        Ok(file) => file,
        Err(FileError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(PROJECT_TEXT_LIMIT + 1).read_to_end(&mut bytes).map_err(|source| FileError::Io {
        action: "read",
        path: NAME.to_owned(),
        source,
    })?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Everything of a message that the model reads, for counting.
fn counted_text(message: &Message) -> String {
    let mut text = message.content.clone();
    for call in &message.tool_calls {
        text.push_str(&call.name);
        text.push_str(&call.arguments);
    }
    if let Some(result) = &message.tool_result {
        text.push_str(&result.output);
    }
    text
}

/// The tool definitions as they are sent, for counting.
fn definitions(defs: &[ToolDef]) -> String {
    let functions: Vec<serde_json::Value> = defs
        .iter()
        .map(|def| {
            serde_json::json!({"type": "function", "function": {
                "name": def.name, "description": def.description, "parameters": def.parameters,
            }})
        })
        .collect();
    serde_json::Value::Array(functions).to_string()
}
