//! Builds a run: loads the agent, opens the working directory, the session and the model. Everything here may
//! block, because it reads files and may start a model server.

use std::{path::Path, sync::Arc, time::Duration};

use kontekst_core::{AnswerOptions, Message, Name, RunId, SessionId, ToolChoice, nearest};
use kontekst_provider::Provider;
use kontekst_store::{
    config::{AgentConfig, AgentError, RailsConfig, ToolRole},
    sessions::SessionLog,
    skills::Skills,
};
use kontekst_tools::{ToolBox, WorkDir, builtin::Opening};

use crate::context::{Window, estimate};

use super::{
    beginning::{beginning, cache_key, messages_before},
    bridge::blocking,
    checks::Checks,
    grant::Grant,
    history::{context_size, count_parts, provided_messages, window_budget},
    limits::RunLimits,
    messages::RunMessages,
    model::{RunModel, check_images, check_options, open_model},
    model_profile::fill_in,
    offer::{Kind, Offer},
    parking::{Beginning, Parking},
    prompt::{prompt_message, system_message},
    protocol::{Event, FailureKind, RunError},
    rails::{keep_new, read_opening},
    recorder::Recorder,
    request::{DaemonTools, Expects, ExtraContext, History, RunOverrides, StartRun},
    run::EventSender,
    session::SessionSlot,
    shared::{Origin, Shared},
    subagent::SpawnTool,
    toolset::RunTools,
};

/// A run that can begin.
pub(super) struct PreparedRun {
    pub(super) session: SessionId,
    pub(super) messages: RunMessages,
    pub(super) model: RunModel,
    pub(super) tools: RunTools,
    pub(super) limits: RunLimits,
    pub(super) offer: Offer,
    pub(super) expects: Expects,
    pub(super) checks: Checks,
    pub(super) parking: Parking,
}

/// Prepares a run. `events` receives `Started`, notices and progress. An error before `Started` means that
/// the run never began.
pub(super) fn prepare(
    shared: &Shared,
    id: &RunId,
    mut request: StartRun,
    origin: Origin,
    mut slot: SessionSlot,
    events: &EventSender,
) -> Result<PreparedRun, RunError> {
    let beginning = beginning(shared, id, &mut request, &origin, &mut slot)?;
    let agent = configured_agent(shared, &request, &slot.id)?;
    let skills = Skills::load(&shared.storage.home);
    let mut prompt = prompt_message(&request, &skills)?;
    let lacks_work_dir = matches!(origin, Origin::Client) && shared.lacks_work_dir(&request);
    let Grant { work_dir, policy, tools, limits, parent, checks } = match origin {
        Origin::Client => Grant::of_client(shared, id, &request, &slot.id, &agent, skills)?,
        Origin::Parent(parent) => Grant::of_parent(*parent),
    };
    beginning.check_dir(&work_dir)?;
    let tools = with_spawn_tool(tools, shared, &agent, &limits, &request.tools.daemon);
    let tools = RunTools::new(tools, request.tools, Arc::clone(&work_dir), policy, call_timeout(shared))?;
    let origin = (parent.as_ref(), request.working_dir.as_deref());
    let log = open_log(shared, &request.history, &slot.id, origin)?;
    let may_turn_back = !checks.commands.is_empty() || request.expects == Expects::Change;
    events.send_blocking(started(id, &slot.id, &agent, may_turn_back));
    let ExtraContext { system: mut extra_context, after_prompt, opening: may_open, compact, .. } =
        request.context;
    extra_context.extend(lacks_work_dir.then(|| without_work_dir(events)));
    let stored = matches!(request.history, History::Session(_));
    let overrides = &request.overrides;
    let mut model = prepare_model(shared, &slot.id, agent, overrides, extra_context, &work_dir, events)?;
    (model.cache_key, model.waits_when_busy) =
        (cache_key(&request.history, &slot.id), request.waits_when_busy);
    fill_in(&mut model, &shared.storage.home);
    check_images(&model, &prompt.images)?;
    model.options = check_options(&model, request.answer, &tools.all.defs())?;
    let window_size = context_size(shared, &model, request.overrides.context_size);
    let may_open = may_open && request.working_dir.is_some();
    let opened =
        may_open.then(|| read_opening(&prompt, window_size, &model, &tools, events.cancel())).flatten();
    let (expects, offer) = (request.expects, offer(&model, &tools, opened.as_ref(), request.expects));
    let opening = add_opening(&mut prompt, &beginning, opened);
    let mut provided = provided_messages(request.history);
    let counts = count_parts(&model, &tools, &mut provided, &prompt.with_context(), stored);
    let budget = window_budget(&model, window_size, &counts);
    let history_budget = budget.history(estimate(&prompt));
    let stored_in = log.as_ref().filter(|_| stored);
    let before = |log| messages_before(shared, log, &slot.id, history_budget, &beginning, events);
    let history = stored_in.map_or(Ok(provided), before)?;
    if let Some(opening) = opening {
        prompt.context = keep_new(opening, &history, events);
    }
    let recorder = Recorder::new(id.clone(), model.agent.id.to_string(), log, slot.guard);
    let window = Window::new(budget, history_budget, history).with_summary(compact);
    let messages = RunMessages::new(window, recorder, prompt, after_prompt);
    let (checks, parking) =
        beginning.begin(&shared.parked, model.agent.id.as_str(), &work_dir, checks, events)?;
    Ok(PreparedRun { session: slot.id, messages, model, tools, limits, offer, expects, checks, parking })
}

fn started(run: &RunId, session: &SessionId, agent: &AgentConfig, may_turn_back: bool) -> Event {
    let (run, session) = (run.clone(), session.clone());
    Event::Started { run, session, agent: agent.id.to_string(), may_turn_back }
}

/// Tells the client that the run has no working directory, and returns what the model reads about that.
fn without_work_dir(events: &EventSender) -> String {
    events.send_blocking(Event::Notice(NO_WORK_DIR_NOTICE.to_owned()));
    NO_WORK_DIR.to_owned()
}

/// Puts what was read for the prompt before it, and returns it. A parked run has that in its session already.
fn add_opening(prompt: &mut Message, beginning: &Beginning, opening: Option<Opening>) -> Option<Opening> {
    if let Some(context) = beginning.stored_context() {
        context.clone_into(&mut prompt.context);
        return None;
    }
    let opening = opening?;
    prompt.context = opening.text();
    Some(opening)
}

fn call_timeout(shared: &Shared) -> Duration {
    Duration::from_secs(shared.config.tools.timeout_seconds)
}

/// Returns what the steps of the model offer. A client that decides itself which tool is called, or whose tools are all its own,
/// leaves nothing to choose.
fn offer(model: &RunModel, tools: &RunTools, opening: Option<&Opening>, expects: Expects) -> Offer {
    let chooses =
        model.agent.rails.offer && model.works_in_steps() && model.options.tool_choice == ToolChoice::Auto;
    let mut offer = Offer::new(chooses && tools.can_read_files(), opening);
    if expects != Expects::Anything {
        offer.set_kind(Some(Kind::Run));
    }
    offer
}

/// Loads the agent of a request and applies the request's overrides.
fn configured_agent(
    shared: &Shared,
    request: &StartRun,
    session: &SessionId,
) -> Result<AgentConfig, RunError> {
    let mut agent = load_agent(shared, &request.agent, session)?;
    let overrides = &request.overrides;
    if let Some(model) = &overrides.model {
        agent.model.clone_from(model);
    }
    if let Some(system) = &overrides.system {
        agent.prompt.clone_from(system);
    }
    if overrides.endpoint.is_some() {
        agent.endpoint.clone_from(&overrides.endpoint);
    }
    agent.sampling.overlay(&overrides.sampling);
    if overrides.bare {
        agent.rails = RailsConfig::OFF;
        agent.tool_role = ToolRole::Native;
    }
    Ok(agent)
}

/// Loads the agent of that name. If the name is empty, it is the session's default agent, or else `default`.
///
/// # Errors
///
/// [`FailureKind::Request`] if there is no such agent or its files are wrong.
pub(super) fn load_agent(
    shared: &Shared,
    requested: &str,
    session: &SessionId,
) -> Result<AgentConfig, RunError> {
    let name: Name = if requested.is_empty() {
        let stored = shared.storage.sessions.default_agent(session);
        stored.unwrap_or_else(|| "default".parse().expect("a good name"))
    } else {
        requested.parse().map_err(|error| RunError::new(FailureKind::Request, format!("agent: {error}")))?
    };
    AgentConfig::load(&shared.storage.home, &name).map_err(|error| {
        let run_error = RunError::from_source(FailureKind::Request, &error);
        match error {
            AgentError::NotFound { name, available } => {
                let hint = match nearest(&name, available.iter().map(Name::as_str)) {
                    Some(near) => format!("did you mean `{near}`? `kontekst agents` lists them"),
                    None => "`kontekst agents` lists them".to_owned(),
                };
                run_error.hint(hint)
            }
            _ => run_error,
        }
    })
}

/// The sentence in the system message of a run that lacks its file tools.
const NO_WORK_DIR: &str =
    "No working directory was named for this conversation, so you cannot read, list or change files.";

/// The same for the user.
const NO_WORK_DIR_NOTICE: &str = "no working directory is named, so the model has no file tools; `working_dir` under \
                                  [tools] in config.toml sets one for clients that send none";

/// Adds the tool that starts subagents, if the run may start any. An agent's configuration does not count if
/// the client chose among the daemon's tools, because then it chooses this one, too.
fn with_spawn_tool(
    tools: ToolBox,
    shared: &Shared,
    agent: &AgentConfig,
    limits: &RunLimits,
    chosen: &DaemonTools,
) -> ToolBox {
    let allowed_by_agent = agent.workers && *chosen == DaemonTools::All;
    if limits.may_start_subagents() && (limits.subagents_allowed || allowed_by_agent) {
        tools.with_tool(Arc::new(SpawnTool::new(shared.storage.home.clone(), agent)))
    } else {
        tools
    }
}

/// Opens the file of a stored session. Returns `None` for a conversation that is not stored.
fn open_log(
    shared: &Shared,
    history: &History,
    session: &SessionId,
    (parent, working_dir): (Option<&SessionId>, Option<&Path>),
) -> Result<Option<SessionLog>, RunError> {
    let storage = |error| RunError::from_source(FailureKind::Storage, &error);
    let sessions = &shared.storage.sessions;
    let mut log = match history {
        History::Provided(_) | History::InMemory(_) => None,
        History::New | History::Session(_) => Some(sessions.open(session).map_err(storage)?),
    };
    match (parent, working_dir) {
        (Some(parent), _) => sessions.set_parent(session, parent).map_err(storage)?,
        // It only tells people where they have worked, so no run fails because of it.
        (None, Some(dir)) if log.is_some() => drop(sessions.set_working_dir(session, dir)),
        (None, _) => {}
    }
    if let Some(log) = &mut log {
        log.begin_dir_sync(|sync| drop(blocking(sync)));
    }
    Ok(log)
}

/// Returns what the user should know about the model before it is sent anything.
fn model_notices(provider: &dyn Provider) -> Vec<String> {
    let remote = provider
        .remote_server()
        .map(|server| format!("the model is on another machine: what the run reads is sent to {server}"));
    provider.notice().into_iter().chain(provider.window_warning()).chain(remote).collect()
}

/// Builds the system message and finds or starts the model's server.
fn prepare_model(
    shared: &Shared,
    session: &SessionId,
    agent: AgentConfig,
    overrides: &RunOverrides,
    extra_context: Vec<String>,
    work_dir: &WorkDir,
    events: &EventSender,
) -> Result<RunModel, RunError> {
    let is_required = overrides.model.is_some();
    let mut notices = Vec::new();
    let system = system_message(&agent, work_dir, &extra_context, &mut notices);
    for notice in notices {
        events.send_blocking(Event::Notice(notice));
    }
    let provider = open_model(&*shared.models, &agent, is_required, events)?;
    let unseen = shared.open_sessions.model_notices.unseen(session, &model_notices(&*provider));
    for notice in unseen.into_iter().chain(shared.models.take_notice()) {
        events.send_blocking(Event::Notice(notice));
    }
    let cancel = events.cancel().clone();
    let options = AnswerOptions::default();
    Ok(RunModel {
        provider,
        agent,
        is_required,
        bare: overrides.bare,
        waits_when_busy: false,
        options,
        system,
        extra_context,
        cache_key: None,
        cancel,
        cut_prompt_reported: false,
    })
}
