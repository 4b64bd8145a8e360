//! The work of one request: a run of the agent for each file, its events told, its questions asked.

mod questions;

use std::{
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::sync::oneshot;

use crate::{
    agent::{
        ApprovalBatching, DaemonTools, ExtraContext, History, Prompt, Run, RunOverrides, StartRun,
        ToolOptions,
        protocol::{AfterDenial, Command, Event, FailureKind, Outcome, ProposedCall, RunError},
    },
    core::{CallId, ToolFailureKind, ToolOutcome},
    provider::Progress,
    tools::{Effect, FileError},
};

use super::{
    Shared, convert,
    convert::StreamError,
    error::{Code, RpcError},
    incident::FileGroup,
    interaction::Reply,
    notifier::{Correlation, NotDelivered, Notifier},
    prompt::{self, FilePrompt},
    proposal::{MAX_FILE, Proposal},
    request::{Request, RequestOutcome},
    session::Session,
};
use questions::Question;

/// What is to be done.
pub(super) struct FixInput {
    pub files: Vec<FileGroup>,
    /// The JSON of an object.
    pub migration: Option<String>,
    /// Tokens that the model can see.
    pub context_window: u32,
}

/// Why the work ended early.
enum Stop {
    /// The client is gone or the request was cancelled.
    Cancelled,
    /// It cannot go on; the client has been told why.
    Failed,
}

impl From<NotDelivered> for Stop {
    fn from(_: NotDelivered) -> Self {
        Self::Cancelled
    }
}

/// Does the work of a request to its end, and announces that, whatever happens.
pub(super) async fn run(
    shared: Arc<Shared>,
    session: Arc<Session>,
    request: Arc<Request>,
    notifier: Notifier,
    work: FixInput,
) {
    let began = Instant::now();
    let mut fix = FixTask {
        shared: Arc::clone(&shared),
        session: Arc::clone(&session),
        request: Arc::clone(&request),
        voice: notifier,
        deadline: tokio::time::Instant::now() + session.settings.timeout,
        count: Counters::default(),
        approved: None,
    };
    let ending = match fix.process_files(work).await {
        Ok(()) if fix.count.incidents > 0 && fix.count.failures == 0 => RequestOutcome::Success,
        Ok(()) | Err(Stop::Failed) => RequestOutcome::Failed,
        Err(Stop::Cancelled) => RequestOutcome::Cancelled,
    };
    let ending = request.finish(ending);
    let FixTask { voice, count, .. } = fix;
    // Who sees the end may ask for the next at once: the place is free by then.
    session.remove_request(&request.id);
    shared.requests.retire(&request.id);
    let (percentage, phase, description) = match ending {
        RequestOutcome::Success => (100, "completed", "All done"),
        RequestOutcome::Failed => (voice.percentage(), "failed", "Not everything could be done"),
        RequestOutcome::Cancelled => (voice.percentage(), "cancelled", "Cancelled"),
    };
    voice
        .notify_final(
            "progress",
            json!({"percentage": percentage, "phase": phase, "description": description}),
        )
        .await;
    let summary = json!({
        "incidents_processed": count.incidents,
        "proposals_generated": count.proposals,
        "proposals_applied": count.applied,
        "user_interactions": count.interactions,
        "processing_time_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    let content = json!({
        "event": "request_completed", "request_id": request.id, "status": ending.as_str(), "summary": summary,
    });
    voice.notify_final("system", content).await;
    request.finished.cancel();
}

#[derive(Default)]
struct Counters {
    incidents: usize,
    /// Files that were given up.
    failures: usize,
    proposals: usize,
    applied: usize,
    interactions: usize,
}

struct FixTask {
    shared: Arc<Shared>,
    session: Arc<Session>,
    request: Arc<Request>,
    voice: Notifier,
    /// Moves on while the user is waited for.
    deadline: tokio::time::Instant,
    count: Counters,
    /// The change that the user has said yes to and that is being written.
    approved: Option<ApprovedChange>,
}

struct ApprovedChange {
    call: CallId,
    proposal: Proposal,
    result_sender: oneshot::Sender<Result<(), RpcError>>,
}

/// Where a run is in its request.
struct ProgressRange {
    /// Percent when it begins and when it has ended.
    from: u8,
    to: u8,
    /// The file and its place among the others.
    name: String,
}

impl ProgressRange {
    /// The percentage at a fraction of it.
    fn at_fraction(&self, fraction: f32) -> u8 {
        let width = f32::from(self.to.saturating_sub(self.from));
        self.from + (width * fraction.clamp(0.0, 1.0)) as u8
    }
}

impl FixTask {
    async fn process_files(&mut self, work: FixInput) -> Result<(), Stop> {
        let FixInput { files, migration, context_window: window } = work;
        let total = files.len();
        self.voice.progress(5, "initializing", format!("{total} file(s) to look at")).await?;
        let room = prompt_budget(window);
        let context = prompt::system_blocks(migration.as_deref(), room / 2);
        for (number, group) in files.into_iter().enumerate() {
            let share = |number: usize| u8::try_from(10 + 85 * number / total).expect("at most 95");
            let name = format!("{} ({} of {total})", group.path, number + 1);
            let (from, to) = (share(number), share(number + 1));
            let incidents = group.incidents.len();
            self.voice
                .progress(from, "analyzing_incidents", format!("{name}: {incidents} incident(s)"))
                .await?;
            let Some(code) = self.read_file(&group.path).await? else { continue };
            let parts = prompt::file_prompts(&group, code.as_deref(), room);
            let of = parts.len();
            for (at, part) in parts.into_iter().enumerate() {
                let within =
                    |at: usize| from + u8::try_from(usize::from(to - from) * at / of).expect("small");
                let stretch = ProgressRange { from: within(at), to: within(at + 1), name: name.clone() };
                self.run_part(&group, part, &context, &stretch).await?;
            }
        }
        Ok(())
    }

    /// The text of a file; the inner `None` is a file that is not there yet, the outer one that cannot be
    /// worked on, which the client is told.
    async fn read_file(&mut self, path: &str) -> Result<Option<Option<String>>, Stop> {
        let place = Arc::clone(&self.session.work_dir);
        let read = self.shared.core.read_file(place, path.to_owned(), MAX_FILE).await;
        let details = json!({"file_path": path});
        let trouble = match read {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => return Ok(Some(Some(text))),
                _ => {
                    let message = format!("{path} is not UTF-8 text");
                    StreamError::recoverable("NOT_TEXT", Code::FileModificationFailed, message, details)
                }
            },
            Err(FileError::Missing(_)) => return Ok(Some(None)),
            Err(error @ FileError::TooLarge { .. }) => {
                StreamError::recoverable("FILE_TOO_LARGE", Code::ResourceExhausted, error.message(), details)
            }
            Err(error) => {
                let code = Code::WorkspaceAccessDenied;
                StreamError::recoverable("FILE_UNREADABLE", code, error.message(), details)
            }
        };
        self.voice.error(&trouble).await?;
        Ok(None)
    }

    /// One run about one file.
    async fn run_part(
        &mut self,
        group: &FileGroup,
        part: FilePrompt,
        context: &[String],
        stretch: &ProgressRange,
    ) -> Result<(), Stop> {
        let config = &self.shared.core.config().kaiak;
        let patience = Duration::from_secs(config.approval_timeout_seconds);
        let settings = &self.session.settings;
        // The door's own clock decides; the core's comes after it.
        let tools = vec![convert::ask_tool(patience + Duration::from_secs(60))];
        let request = StartRun {
            prompt: Prompt::Text(part.text),
            // Each file is a conversation of its own: a small window has no room for the others.
            history: History::Provided(Vec::new()),
            agent: config.agent.to_string(),
            working_dir: Some(self.session.canonical_path.clone()),
            tools: ToolOptions {
                daemon: DaemonTools::Only(convert::DAEMON_TOOLS.map(str::to_owned).into()),
                client: tools,
                approvals: ApprovalBatching::OneByOne,
            },
            context: ExtraContext { system: context.to_vec(), ..ExtraContext::default() },
            overrides: RunOverrides {
                model: settings.model.clone(),
                endpoint: settings.endpoint.clone(),
                max_turns: Some(settings.max_turns),
                ..RunOverrides::default()
            },
            ..StartRun::default()
        };
        self.voice
            .progress(stretch.at_fraction(0.0), "calling_ai_agent", format!("{}: asking", stretch.name))
            .await?;
        let run = self.shared.core.start(request);
        let outcome = self.handle_events(run, group, stretch).await;
        // Whoever waits for the outcome of a write hears that there is none.
        self.approved = None;
        match outcome? {
            Outcome::Completed { .. } => {
                self.count.incidents += part.incidents;
                Ok(())
            }
            Outcome::Failed(error) => {
                self.count.failures += 1;
                let trouble = convert::run_failure(&error);
                self.voice.error(&trouble).await?;
                if trouble.recoverable { Ok(()) } else { Err(Stop::Failed) }
            }
            Outcome::Denied | Outcome::Cancelled => Err(Stop::Cancelled),
        }
    }

    /// Follows a run to its ending.
    async fn handle_events(
        &mut self,
        mut run: Run,
        group: &FileGroup,
        stretch: &ProgressRange,
    ) -> Result<Outcome, Stop> {
        let mut calls: Vec<(CallId, String, String)> = Vec::new();
        let mut said = false;
        let mut next = None;
        loop {
            let event = match next.take() {
                Some(event) => event,
                None => tokio::select! {
                    biased;
                    () = self.request.cancel.cancelled() => return Err(Stop::Cancelled),
                    // What the user has approved is waited for.
                    () = tokio::time::sleep_until(self.deadline), if self.approved.is_none() => {
                        return self.fail_on_timeout().await;
                    }
                    event = run.next_event() => event.ok_or(Stop::Cancelled)?,
                },
            };
            match event {
                // Runs of this door have no workers.
                Event::Started { .. }
                | Event::WaitingForSession
                | Event::ToolsCompleted
                | Event::Subagent(_) => {}
                Event::Notice(text) => {
                    self.voice.system_event("notice", "info", json!({"text": text})).await?
                }
                Event::Compacted { before, after, .. } => {
                    let summary = json!({"tokens_before": before, "tokens_after": after});
                    self.voice.system_event("compacted", "info", summary).await?;
                }
                Event::Progress(progress) => self.progress(&progress, stretch).await?,
                Event::Text(mut text) => {
                    next = coalesce(&mut run, &mut text, |event| match event {
                        Event::Text(more) => Ok(more),
                        other => Err(other),
                    });
                    if !said {
                        let description = format!("{}: answering", stretch.name);
                        self.voice
                            .progress(stretch.at_fraction(0.5), "processing_response", description)
                            .await?;
                    }
                    said = true;
                    for piece in convert::split_text(&text) {
                        self.voice
                            .notify("ai_response", Correlation::None, json!({"text": piece, "partial": true}))
                            .await?;
                    }
                }
                Event::Reasoning(mut text) => {
                    next = coalesce(&mut run, &mut text, |event| match event {
                        Event::Reasoning(more) => Ok(more),
                        other => Err(other),
                    });
                    for piece in convert::split_text(&text) {
                        self.voice.notify("thinking", Correlation::None, json!({"text": piece})).await?;
                    }
                }
                Event::TurnCompleted { .. } => {
                    if std::mem::take(&mut said) {
                        // Everything has been said; this only ends it.
                        self.voice
                            .notify("ai_response", Correlation::None, json!({"text": "", "partial": false}))
                            .await?;
                    }
                }
                Event::ToolsProposed(proposed) => {
                    for proposed in proposed {
                        let call = &proposed.call;
                        calls.push((call.id.clone(), call.name.clone(), call.arguments.clone()));
                        let command = self.decide_call(proposed, group, stretch).await?;
                        run.send(command);
                    }
                }
                Event::ToolRequested { call, subagent: _, .. } => {
                    calls.push((call.id.clone(), call.name.clone(), call.arguments.clone()));
                    let start = convert::tool_call_started(&call.name, &call.arguments);
                    self.voice.notify("tool_call", Correlation::None, start).await?;
                    let outcome = self.ask_user(&call).await?;
                    run.send(Command::ToolResult { call: call.id, outcome });
                }
                Event::ToolStarted { call, name } => {
                    let arguments = arguments_of(&calls, &call);
                    self.voice
                        .notify("tool_call", Correlation::None, convert::tool_call_started(&name, arguments))
                        .await?;
                }
                Event::ToolFinished { call, outcome } => {
                    self.handle_tool_finished(&mut calls, &call, &outcome).await?
                }
                Event::Ended(outcome) => return Ok(outcome),
            }
        }
    }

    async fn progress(&mut self, progress: &Progress, stretch: &ProgressRange) -> Result<(), NotDelivered> {
        let ProgressRange { name, .. } = stretch;
        let (fraction, description) = match progress {
            Progress::Queued { position: place } => {
                (0.0, format!("{name}: waiting for the model, place {place}"))
            }
            Progress::Loading { model, .. } => (0.0, format!("{name}: loading {model}")),
            Progress::Prefill { processed, total, .. } => {
                let fraction = f64::from(*processed) / f64::from((*total).max(1));
                (0.4 * fraction as f32, format!("{name}: reading, {processed} of {total} tokens"))
            }
        };
        self.voice.progress(stretch.at_fraction(fraction), "calling_ai_agent", description).await
    }

    /// Whether a call may run.
    async fn decide_call(
        &mut self,
        proposed: ProposedCall,
        group: &FileGroup,
        stretch: &ProgressRange,
    ) -> Result<Command, Stop> {
        let ProposedCall { call, caution, effect, .. } = proposed;
        let deny =
            |reason: String| Command::Deny { call: call.id.clone(), reason, then: AfterDenial::Continue };
        let change = match effect {
            Effect::Change(change) => change,
            // It reads, or it fails and says why: nothing is written without a change that was approved.
            Effect::Unknown if matches!(call.name.as_str(), "read_file" | "list_files") => {
                return Ok(Command::Approve(call.id));
            }
            Effect::Fails(_) => return Ok(Command::Approve(call.id)),
            Effect::Unknown => return Ok(deny("this tool is not available here".to_owned())),
            Effect::Refused(why) => {
                let details = json!({"tool_name": call.name});
                let code = Code::FileModificationFailed;
                self.voice.error(&StreamError::recoverable("PROPOSAL_REFUSED", code, &why, details)).await?;
                return Ok(deny(why));
            }
        };
        if change.old.as_deref() == Some(change.new.as_bytes()) {
            return Ok(Command::Approve(call.id));
        }
        let proposal =
            match Proposal::new(&change, &change_description(group, &change.path), caution.as_deref()) {
                Ok(proposal) => proposal,
                Err(trouble) => {
                    self.voice.error(&trouble).await?;
                    return Ok(deny(trouble.message));
                }
            };
        let description = format!("{}: a change is proposed", stretch.name);
        self.voice.progress(stretch.at_fraction(0.8), "generating_fixes", description).await?;
        self.count.proposals += 1;
        let question = Question::approval(&proposal);
        self.voice
            .notify("file_modification", Correlation::Proposal(&proposal.id), proposal.content.clone())
            .await?;
        let summary = json!({"proposal_id": proposal.id, "file_path": proposal.path});
        let refused = match self.ask(question).await? {
            Some(answer) if answer.reply == Reply::Approved => {
                let id = call.id.clone();
                self.approved =
                    Some(ApprovedChange { call: id.clone(), proposal, result_sender: answer.result_sender });
                return Ok(Command::Approve(id));
            }
            Some(answer) => {
                answer.result_sender.send(Ok(())).ok();
                match answer.reply {
                    Reply::Refused { comment: Some(comment) } => format!("the user refused: {comment}"),
                    _ => "the user refused this change".to_owned(),
                }
            }
            None => "the user did not answer in time".to_owned(),
        };
        self.voice.system_event("proposal_rejected", "discarded", summary).await?;
        Ok(deny(refused))
    }

    async fn handle_tool_finished(
        &mut self,
        calls: &mut Vec<(CallId, String, String)>,
        call: &CallId,
        outcome: &ToolOutcome,
    ) -> Result<(), Stop> {
        let at = calls.iter().position(|(id, ..)| id == call);
        // A call that could not even be proposed has not been seen to start.
        let (name, arguments) = match at {
            Some(at) => {
                let (_, name, arguments) = calls.swap_remove(at);
                (name, arguments)
            }
            None => {
                let start = convert::tool_call_started("unknown", "{}");
                self.voice.notify("tool_call", Correlation::None, start).await?;
                ("unknown".to_owned(), "{}".to_owned())
            }
        };
        if let Some(ApprovedChange { proposal, result_sender: done, .. }) =
            self.approved.take_if(|approved| approved.call == *call)
        {
            if outcome.is_error() {
                done.send(Err(proposal.write_error(outcome))).ok();
            } else {
                self.count.applied += 1;
                let summary = json!({"proposal_id": proposal.id, "file_path": proposal.path});
                done.send(Ok(())).ok();
                self.voice.system_event("proposal_applied", "applied", summary).await?;
            }
        }
        if outcome.failure_kind() == Some(ToolFailureKind::TimedOut) {
            let details = json!({"tool_name": name});
            let trouble =
                StreamError::recoverable("TOOL_TIMEOUT", Code::ToolTimeout, outcome.text(), details);
            self.voice.error(&trouble).await?;
        }
        let end = convert::tool_call_ended(&name, &arguments, outcome);
        self.voice.notify("tool_call", Correlation::None, end).await?;
        Ok(())
    }

    /// The request used up its time.
    async fn fail_on_timeout(&mut self) -> Result<Outcome, Stop> {
        let seconds = self.session.settings.timeout.as_secs();
        let error = RunError::new(FailureKind::Limit, format!("the request was not done after {seconds} s"))
            .hint("raise `timeout` in the session's configuration, or send fewer incidents at once");
        let trouble =
            StreamError { error_code: "REQUEST_TIMEOUT", recoverable: false, ..convert::run_failure(&error) };
        self.voice.error(&trouble).await?;
        Err(Stop::Failed)
    }
}

fn arguments_of<'a>(calls: &'a [(CallId, String, String)], call: &CallId) -> &'a str {
    calls.iter().find(|(id, ..)| id == call).map_or("{}", |(_, _, arguments)| arguments)
}

/// Why a file is changed, in a few words.
fn change_description(group: &FileGroup, path: &str) -> String {
    if group.path != path {
        return format!("Part of the fix of {}", group.path);
    }
    let mut about: Vec<&str> = Vec::new();
    for incident in &group.incidents {
        if about.len() < 3 && !about.contains(&incident.description.as_str()) {
            about.push(&incident.description);
        }
    }
    let mut text = about.join("; ");
    text.truncate(text.floor_char_boundary(500));
    text
}

/// Adds what is there already of the same kind, up to a message full. Gives the first event of another kind.
fn coalesce(
    run: &mut Run,
    text: &mut String,
    same: impl Fn(Event) -> Result<String, Event>,
) -> Option<Event> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    while text.len() < convert::MAX_TEXT / 2 {
        let Poll::Ready(Some(event)) = run.poll_event(&mut context) else { return None };
        match same(event) {
            Ok(more) => text.push_str(&more),
            Err(other) => return Some(other),
        }
    }
    None
}

/// Bytes that a prompt may take of a window of so many tokens. A quarter is the answer's, the system text and
/// the tools take about 1200, and half of the rest is for calls and what they give; a token is three bytes of
/// code.
fn prompt_budget(window: u32) -> usize {
    let tokens = (window / 4 * 3).saturating_sub(1200) / 2;
    (tokens as usize * 3).clamp(1500, 200_000)
}
