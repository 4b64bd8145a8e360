//! The work of one `kaiak/fix/generate`: runs of the agent, one file after the other.
//!
//! `file_run.rs` reports the events of a run, `approval.rs` decides on the calls that it proposes, and `questions.rs`
//! asks the user.

mod approval;
mod file_run;
mod questions;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;

use kontekst_agent::{
    ApprovalBatching, DaemonTools, ExtraContext, History, Prompt, RunOverrides, StartRun, ToolOptions,
    protocol::{FailureKind, Outcome, RunError},
};
use kontekst_tools::{FileError, builtin::RUN_COMMAND};

use super::{
    Shared,
    convert::{self, StreamError},
    error::Code,
    incident::FileGroup,
    notifier::{NotDelivered, Notifier},
    prompt::{self, FilePrompt},
    proposal::MAX_FILE,
    request::{Request, RequestOutcome},
    session::Session,
};
use approval::ApprovedChange;
use file_run::FileRun;

/// The time for which the core waits longer than this door for an answer of the user, so that the door's own timeout
/// decides.
const CORE_TIMEOUT_MARGIN: Duration = Duration::from_secs(60);

/// The action that a request asks for.
pub(super) struct FixInput {
    pub(crate) files: Vec<FileGroup>,
    /// The migration context: the JSON text of an object.
    pub(crate) migration: Option<String>,
    /// The context window of the model, in tokens.
    pub(crate) context_window: u32,
}

/// The reason why the work ended early.
enum Stop {
    /// The client is gone or the request was cancelled.
    Cancelled,
    /// The work cannot go on, and the client was told why.
    Failed,
}

impl From<NotDelivered> for Stop {
    fn from(_: NotDelivered) -> Self {
        Self::Cancelled
    }
}

/// Does the work of a request, and always reports its end.
pub(super) async fn run(
    shared: Arc<Shared>,
    session: Arc<Session>,
    request: Arc<Request>,
    notifier: Notifier,
    input: FixInput,
) {
    let began = Instant::now();
    let mut task = FixTask {
        shared: Arc::clone(&shared),
        session: Arc::clone(&session),
        request: Arc::clone(&request),
        notifier,
        deadline: tokio::time::Instant::now() + session.settings.timeout,
        counters: Counters::default(),
        approved: None,
    };
    let outcome = match task.process_files(input).await {
        Ok(()) if task.counters.incidents > 0 && task.counters.failed_files == 0 => RequestOutcome::Success,
        Ok(()) | Err(Stop::Failed) => RequestOutcome::Failed,
        Err(Stop::Cancelled) => RequestOutcome::Cancelled,
    };
    let outcome = request.finish(outcome);
    let FixTask { notifier, counters, .. } = task;
    // The request leaves its session before the client reads that it ended, because the client may send the next
    // request at once.
    session.remove_request(&request.id);
    shared.requests.retire(&request.id);
    let (percentage, phase, description) = match outcome {
        RequestOutcome::Success => (100, "completed", "All done"),
        RequestOutcome::Failed => (notifier.percentage(), "failed", "Not everything could be done"),
        RequestOutcome::Cancelled => (notifier.percentage(), "cancelled", "Cancelled"),
    };
    let progress = json!({"percentage": percentage, "phase": phase, "description": description});
    notifier.notify_final("progress", progress).await;
    let summary = json!({
        "incidents_processed": counters.incidents,
        "proposals_generated": counters.proposals,
        "proposals_applied": counters.applied,
        "user_interactions": counters.interactions,
        "processing_time_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    let content = json!({
        "event": "request_completed", "request_id": request.id, "status": outcome.as_str(), "summary": summary,
    });
    notifier.notify_final("system", content).await;
    request.finished.cancel();
}

/// The numbers of the summary.
#[derive(Default)]
struct Counters {
    incidents: usize,
    /// Runs that failed.
    failed_files: usize,
    proposals: usize,
    applied: usize,
    interactions: usize,
}

struct FixTask {
    shared: Arc<Shared>,
    session: Arc<Session>,
    request: Arc<Request>,
    notifier: Notifier,
    /// Moves on by the time that the user takes to answer.
    deadline: tokio::time::Instant,
    counters: Counters,
    /// The change that the user has approved and that is being written.
    approved: Option<ApprovedChange>,
}

/// The part of a request's progress that one run has.
struct ProgressRange {
    /// Percent when the run begins.
    from: u8,
    /// Percent when the run has ended.
    to: u8,
    /// The file, and its number among the files of the request.
    label: String,
}

impl ProgressRange {
    /// Returns the percentage at a fraction of the range.
    fn at_fraction(&self, fraction: f32) -> u8 {
        let width = f32::from(self.to.saturating_sub(self.from));
        self.from + (width * fraction.clamp(0.0, 1.0)) as u8
    }

    /// Returns the part of this range that the run `index` of `count` has.
    fn part(&self, index: usize, count: usize) -> Self {
        let width = usize::from(self.to - self.from);
        let percent = |index: usize| self.from + u8::try_from(width * index / count).expect("at most 100");
        Self { from: percent(index), to: percent(index + 1), label: self.label.clone() }
    }
}

/// The state of the path of an incident.
enum FileContent {
    Text(String),
    Missing,
    /// The file cannot be worked on, and the client was told why.
    Unusable,
}

impl FixTask {
    async fn process_files(&mut self, input: FixInput) -> Result<(), Stop> {
        let FixInput { files, migration, context_window } = input;
        let total = files.len();
        self.notifier.progress(5, "initializing", format!("{total} file(s) to look at")).await?;
        let budget = prompt_budget(context_window);
        let context = prompt::system_blocks(migration.as_deref(), budget / 2);
        for (index, group) in files.into_iter().enumerate() {
            let percent = |index: usize| u8::try_from(10 + 85 * index / total).expect("at most 95");
            let range = ProgressRange {
                from: percent(index),
                to: percent(index + 1),
                label: format!("{} ({} of {total})", group.path, index + 1),
            };
            let description = format!("{}: {} incident(s)", range.label, group.incidents.len());
            self.notifier.progress(range.from, "analyzing_incidents", description).await?;
            let code = match self.read_file(&group.path).await? {
                FileContent::Text(text) => Some(text),
                FileContent::Missing => None,
                FileContent::Unusable => continue,
            };
            let prompts = prompt::file_prompts(&group, code.as_deref(), budget);
            let count = prompts.len();
            for (index, prompt) in prompts.into_iter().enumerate() {
                self.run_prompt(&group, prompt, &context, range.part(index, count)).await?;
            }
        }
        Ok(())
    }

    async fn read_file(&mut self, path: &str) -> Result<FileContent, Stop> {
        let work_dir = Arc::clone(&self.session.work_dir);
        let read = self.shared.core.read_file(work_dir, path.to_owned(), MAX_FILE).await;
        let details = json!({"file_path": path});
        let error = match read {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => return Ok(FileContent::Text(text)),
                _ => {
                    let message = format!("{path} is not UTF-8 text");
                    StreamError::recoverable("NOT_TEXT", Code::FileModificationFailed, message, details)
                }
            },
            Err(FileError::Missing(_)) => return Ok(FileContent::Missing),
            Err(error @ FileError::TooLarge { .. }) => {
                StreamError::recoverable("FILE_TOO_LARGE", Code::ResourceExhausted, error.message(), details)
            }
            Err(error) => StreamError::recoverable(
                "FILE_UNREADABLE",
                Code::WorkspaceAccessDenied,
                error.message(),
                details,
            ),
        };
        self.notifier.error(&error).await?;
        Ok(FileContent::Unusable)
    }

    /// Makes one run, and follows it to its end.
    async fn run_prompt(
        &mut self,
        group: &FileGroup,
        prompt: FilePrompt,
        context: &[String],
        range: ProgressRange,
    ) -> Result<(), Stop> {
        let FilePrompt { text, incidents } = prompt;
        let description = format!("{}: asking", range.label);
        self.notifier.progress(range.at_fraction(0.0), "calling_ai_agent", description).await?;
        let run = self.shared.core.start(self.start_run(text, context));
        let outcome = self.follow(FileRun::new(run, group, range)).await;
        // Dropping an approved change tells whoever waits for its outcome that there is none.
        self.approved = None;
        match outcome? {
            Outcome::Completed { .. } => {
                self.counters.incidents += incidents;
                Ok(())
            }
            Outcome::Failed(error) => {
                self.counters.failed_files += 1;
                let error = convert::run_failure(&error);
                self.notifier.error(&error).await?;
                if error.recoverable { Ok(()) } else { Err(Stop::Failed) }
            }
            Outcome::Denied | Outcome::Parked(_) | Outcome::Cancelled => Err(Stop::Cancelled),
        }
    }

    fn start_run(&self, prompt: String, context: &[String]) -> StartRun {
        let config = &self.shared.core.config().kaiak;
        let settings = &self.session.settings;
        let answer_timeout = Duration::from_secs(config.approval_timeout_seconds);
        let mut daemon_tools: Vec<String> = convert::DAEMON_TOOLS.map(str::to_owned).into();
        daemon_tools.extend(config.commands.then(|| RUN_COMMAND.to_owned()));
        StartRun {
            prompt: Prompt::Text(prompt),
            // Each file is a conversation of its own, because a small context window has no room for the others.
            history: History::Provided(Vec::new()),
            agent: config.agent.to_string(),
            working_dir: Some(self.session.canonical_path.clone()),
            tools: ToolOptions {
                daemon: DaemonTools::Only(daemon_tools),
                client: vec![convert::ask_tool(answer_timeout + CORE_TIMEOUT_MARGIN)],
                approvals: ApprovalBatching::OneByOne,
                reading_is_free: true,
                // The editor shows every change, and decides about it.
                client_decides: true,
                ..ToolOptions::default()
            },
            context: ExtraContext { system: context.to_vec(), ..ExtraContext::default() },
            overrides: RunOverrides {
                model: settings.model.clone(),
                endpoint: settings.endpoint.clone(),
                max_turns: Some(settings.max_turns),
                ..RunOverrides::default()
            },
            // There may be nothing to fix in a file.
            ..StartRun::default()
        }
    }

    /// Tells the client that the request has used up its time, and fails.
    async fn fail_on_timeout<T>(&mut self) -> Result<T, Stop> {
        let seconds = self.session.settings.timeout.as_secs();
        let error = RunError::new(FailureKind::Limit, format!("the request was not done after {seconds} s"))
            .hint("raise `timeout` in the session's configuration, or send fewer incidents at once");
        let error =
            StreamError { error_code: "REQUEST_TIMEOUT", recoverable: false, ..convert::run_failure(&error) };
        self.notifier.error(&error).await?;
        Err(Stop::Failed)
    }
}

/// Returns how many bytes a prompt may take of a context window of `context_window` tokens.
///
/// A quarter of the window is for the answer, and the system message and the tools take about 1200 tokens. Half of the
/// rest is for calls and their results. A token is about three bytes of code.
fn prompt_budget(context_window: u32) -> usize {
    let tokens = (context_window / 4 * 3).saturating_sub(1200) / 2;
    (tokens as usize * 3).clamp(1500, 200_000)
}
