//! One worker: a run whose parent is another run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    core::{CallId, Cancel, SessionId, ToolCall, ToolFailureKind, ToolOutcome, error_chain},
    subagent_log::{
        FailureCause, SubagentEvent, SubagentEventKind, SubagentExit, SubagentLog, SubagentLogError,
    },
};

use super::{
    AgentCore, Run, Shared, StartRun,
    bridge::blocking,
    limits::{Origin, ParentContext},
    protocol::{Command, Event, FailureKind, Outcome, ProposedCall},
};

/// Bytes of a worker's answer that its parent gets. The parent's window decides how much of them it reads.
const RESULT_LIMIT: usize = 64 * 1024;
/// Bytes of what a worker said before it failed that its parent gets.
const LAST_WORDS_LIMIT: usize = 2048;

/// A worker that can start.
pub(super) struct Job {
    pub(super) shared: Arc<Shared>,
    /// Its place among the calls of the turn.
    pub(super) at: usize,
    pub(super) id: SessionId,
    pub(super) request: StartRun,
    pub(super) inherited: Box<ParentContext>,
    pub(super) cancel: Cancel,
    /// What the parent's client says to it; closed when the client says nothing any more.
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) news: mpsc::Sender<(usize, News)>,
}

/// What the parent hears.
pub(super) enum News {
    /// It is on disk.
    Event(SubagentEvent),
    Proposed(Vec<ProposedCall>),
    Requested {
        call: ToolCall,
        timeout: Duration,
        worker: SessionId,
    },
    /// The last.
    Done(Report),
}

/// How it went.
pub(super) struct Report {
    pub(super) outcome: ToolOutcome,
    /// A call was denied so that the run ends: the parent's, too.
    pub(super) denied: bool,
}

/// A worker that runs.
struct Worker {
    at: usize,
    id: SessionId,
    parent: SessionId,
    team: Arc<SubagentLog>,
    news: mpsc::Sender<(usize, News)>,
    /// `None` once the client says nothing any more.
    commands: Option<mpsc::Receiver<Command>>,
    /// Calls of its own that wait for a decision.
    asked: HashMap<CallId, String>,
    turns: u32,
    last_words: String,
}

impl Job {
    /// Runs the worker to its end. Its log is written even when nobody listens any more.
    pub(super) async fn work(self) {
        let (at, news) = (self.at, self.news.clone());
        let report = self.report().await;
        news.send((at, News::Done(report))).await.ok();
    }

    async fn report(self) -> Report {
        let Self { shared, at, id, request, inherited, cancel, commands, news } = self;
        let started = SubagentEventKind::Started {
            agent: request.agent.clone(),
            prompt: request.prompt.user_text().to_owned(),
            depth: inherited.standing.depth,
        };
        let (team, parent) = (inherited.standing.team.clone(), inherited.parent.clone());
        let deadline = inherited.standing.deadline.unwrap_or_else(Instant::now);
        let opened = {
            let shared = Arc::clone(&shared);
            blocking(move || shared.teams.open(&team)).join().await
        };
        let team = match opened {
            Ok(Ok(team)) => team,
            Ok(Err(error)) => return Report::not_started(&error_chain(&error)),
            Err(error) => return Report::not_started(&error.message),
        };
        let mut worker = Worker {
            at,
            id,
            parent,
            team,
            news,
            commands: Some(commands),
            asked: HashMap::new(),
            turns: 0,
            last_words: String::new(),
        };
        // Nobody starts who is not in the log.
        if let Err(error) = worker.write(started).await {
            return Report::not_started(&error);
        }
        let began = Instant::now();
        let run = AgentCore { shared }.begin(request, Origin::Parent(inherited), cancel);
        let (outcome, overdue) = worker.follow(run, deadline).await;
        worker.conclude(outcome, overdue.then(|| deadline.duration_since(began))).await
    }
}

impl Worker {
    /// Follows the run to its end, and says whether its time was over.
    async fn follow(&mut self, mut run: Run, deadline: Instant) -> (Outcome, bool) {
        let over = tokio::time::sleep_until(deadline);
        tokio::pin!(over);
        let mut overdue = false;
        loop {
            let event = tokio::select! {
                biased;
                command = next(&mut self.commands) => {
                    self.pass_on(command, &mut run).await;
                    continue;
                }
                () = &mut over, if !overdue => {
                    overdue = true;
                    run.cancel();
                    continue;
                }
                event = run.next_event() => event,
            };
            match event {
                Some(Event::Ended(outcome)) => return (outcome, overdue),
                None => return (Outcome::Cancelled, overdue),
                Some(event) => self.hear(event).await,
            }
        }
    }

    async fn pass_on(&mut self, command: Option<Command>, run: &mut Run) {
        let Some(command) = command else {
            self.commands = None;
            run.close_commands();
            let asked: Vec<CallId> = self.asked.drain().map(|(call, _)| call).collect();
            for call in asked {
                self.tell(SubagentEventKind::ApprovalResolved { call, approved: false }).await;
            }
            return;
        };
        let resolved = match &command {
            Command::Approve(call) => self.asked.remove(call).map(|_| (call.clone(), true)),
            Command::Deny { call, .. } => self.asked.remove(call).map(|_| (call.clone(), false)),
            Command::ToolResult { .. } | Command::SetClientTools(_) => None,
        };
        run.send(command);
        if let Some((call, approved)) = resolved {
            self.tell(SubagentEventKind::ApprovalResolved { call, approved }).await;
        }
    }

    async fn hear(&mut self, event: Event) {
        match event {
            Event::TurnCompleted { content, .. } => {
                self.turns += 1;
                if !content.trim().is_empty() {
                    self.last_words = content;
                }
                self.tell(SubagentEventKind::Turn { number: self.turns }).await;
            }
            Event::ToolStarted { name, .. } => self.tell(SubagentEventKind::ToolCall { tool: name }).await,
            Event::ToolsProposed(mut calls) => {
                for proposed in calls.iter_mut().filter(|proposed| proposed.subagent.is_none()) {
                    proposed.subagent = Some(self.id.clone());
                    let (call, tool) = (proposed.call.id.clone(), proposed.call.name.clone());
                    self.tell(SubagentEventKind::ApprovalRequested {
                        call: call.clone(),
                        tool: tool.clone(),
                    })
                    .await;
                    if self.commands.is_some() {
                        self.asked.insert(call, tool);
                    } else {
                        self.tell(SubagentEventKind::ApprovalResolved { call, approved: false }).await;
                    }
                }
                self.say(News::Proposed(calls)).await;
            }
            Event::ToolRequested { call, timeout, subagent: worker } => {
                if worker.is_none() {
                    self.tell(SubagentEventKind::ToolCall { tool: call.name.clone() }).await;
                }
                let worker = worker.unwrap_or_else(|| self.id.clone());
                self.say(News::Requested { call, timeout, worker }).await;
            }
            Event::Subagent(event) => self.say(News::Event(event)).await,
            Event::Started { .. }
            | Event::Notice(_)
            | Event::Progress(_)
            | Event::Compacted { .. }
            | Event::WaitingForSession
            | Event::Text(_)
            | Event::Reasoning(_)
            | Event::ToolFinished { .. }
            | Event::ToolsCompleted
            | Event::Ended(_) => {}
        }
    }

    /// Writes the ending, and words it for the parent. `overdue` is the time it had, if that was too short.
    async fn conclude(mut self, outcome: Outcome, overdue: Option<Duration>) -> Report {
        let denied = matches!(outcome, Outcome::Denied);
        let (cause, message) = match outcome {
            Outcome::Completed { mut content, truncated, .. } => {
                if content.len() > RESULT_LIMIT {
                    content.truncate(content.floor_char_boundary(RESULT_LIMIT));
                    content.push_str("\n[the rest of the answer is left out]");
                }
                if truncated {
                    content.push_str("\n[the answer was cut: the worker's tokens were used up]");
                }
                self.tell(SubagentEventKind::Completed { result: content.clone() }).await;
                self.tell(SubagentEventKind::Exited { how: SubagentExit::Completed }).await;
                return Report { outcome: ToolOutcome::Done(content), denied: false };
            }
            Outcome::Cancelled => match overdue {
                Some(time) => (FailureCause::Budget, format!("it used up its {} s", time.as_secs().max(1))),
                None => {
                    self.tell(SubagentEventKind::Exited { how: SubagentExit::Cancelled }).await;
                    return Report::failed("it was cancelled");
                }
            },
            Outcome::Denied => (FailureCause::Denied, "a call of it was denied".to_owned()),
            Outcome::Failed(error) => {
                let cause = match error.kind {
                    FailureKind::Limit => FailureCause::Budget,
                    FailureKind::Model | FailureKind::Unreachable => FailureCause::Model,
                    FailureKind::Request | FailureKind::Storage | FailureKind::Internal => {
                        FailureCause::Other
                    }
                };
                (cause, error.message)
            }
        };
        self.tell(SubagentEventKind::Failed { cause, message: message.clone() }).await;
        self.tell(SubagentEventKind::Exited { how: SubagentExit::Failed }).await;
        let words = std::mem::take(&mut self.last_words);
        let mut report = Report::failed(&message);
        if let (ToolOutcome::Failed { message: text, .. }, false) = (&mut report.outcome, words.is_empty()) {
            text.push_str("\nIts last words: ");
            text.push_str(&words[..words.floor_char_boundary(LAST_WORDS_LIMIT)]);
        }
        Report { denied, ..report }
    }

    /// Writes an event and then tells the parent. A log that cannot be written does not stop a worker.
    async fn tell(&mut self, event: SubagentEventKind) {
        if let Err(error) = self.write(event).await {
            tracing::warn!(error, worker = %self.id, "an event of a worker could not be stored");
        }
    }

    async fn write(&mut self, event: SubagentEventKind) -> Result<(), String> {
        let (team, id, parent) = (Arc::clone(&self.team), self.id.clone(), self.parent.clone());
        let mut writing = blocking(move || team.append(&id, &parent, event));
        let written: Result<SubagentEvent, SubagentLogError> =
            writing.join().await.map_err(|error| error.message)?;
        let event = written.map_err(|error| error_chain(&error))?;
        self.say(News::Event(event)).await;
        Ok(())
    }

    /// That the parent is gone is no reason to stop: it has cancelled the run, which is about to end.
    async fn say(&self, news: News) {
        self.news.send((self.at, news)).await.ok();
    }
}

impl Report {
    pub(super) fn failed(message: &str) -> Self {
        let text = format!("the worker failed: {message}");
        Self { outcome: ToolOutcome::failed(ToolFailureKind::Other, text), denied: false }
    }

    fn not_started(reason: &str) -> Self {
        let text = format!("the worker was not started: {reason}");
        Self { outcome: ToolOutcome::failed(ToolFailureKind::Other, text), denied: false }
    }
}

async fn next(commands: &mut Option<mpsc::Receiver<Command>>) -> Option<Command> {
    match commands {
        Some(commands) => commands.recv().await,
        None => std::future::pending().await,
    }
}
