//! The workers that the calls of one turn start: side by side, their questions passed on to the client.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::core::{CallId, Cancel, SessionId, ToolCall, ToolFailureKind, ToolOutcome};

use super::{
    ExtraContext, History, Prompt, RunOverrides, StartRun,
    limits::ParentContext,
    protocol::{AfterDenial, Command, Event},
    run_loop::{RunLoop, Stop},
    spawn_tool::{SPAWN_WORKER, SubagentRequest},
    subagent::{Job, News, Report},
};

/// Commands, or news, that may wait for their reader.
const QUEUE: usize = 64;

/// The workers of one turn.
struct Crew {
    /// One for each call; what the client says to a worker that runs.
    hands: Vec<Option<mpsc::Sender<Command>>>,
    /// Results, until all before them are there, too.
    done: Vec<Option<ToolOutcome>>,
    /// The next call to start, and the next to answer.
    next: usize,
    answered: usize,
    running: usize,
    /// Calls that the client has to do something about: whose they are, and what they are called there.
    asked: HashMap<CallId, (usize, CallId)>,
    ending: AfterDenial,
    news: mpsc::Receiver<(usize, News)>,
    post: mpsc::Sender<(usize, News)>,
    cancel: Cancel,
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl RunLoop<'_> {
    /// Starts a worker for each call, a few at a time, and answers the calls in their order. While they work,
    /// this run holds neither a place at the model nor a thread.
    pub(super) async fn run_workers(&mut self, calls: &[(ToolCall, Value)]) -> Result<AfterDenial, Stop> {
        let (post, news) = mpsc::channel(QUEUE);
        let mut crew = Crew {
            hands: calls.iter().map(|_| None).collect(),
            done: calls.iter().map(|_| None).collect(),
            next: 0,
            answered: 0,
            running: 0,
            asked: HashMap::new(),
            ending: AfterDenial::Continue,
            news,
            post,
            cancel: self.cancel.child(),
        };
        let result = self.lead(&mut crew, calls).await;
        if result.is_err() {
            for (at, (call, _)) in calls.iter().enumerate().skip(crew.answered) {
                let text = if at < crew.next {
                    "cancelled while the worker ran; what it did stays done"
                } else {
                    "cancelled before it ran"
                };
                self.answer(call, &ToolOutcome::failed(ToolFailureKind::Cancelled, text)).await.ok();
            }
        }
        result.map(|()| crew.ending)
    }

    async fn lead(&mut self, crew: &mut Crew, calls: &[(ToolCall, Value)]) -> Result<(), Stop> {
        let at_once = self.shared.config.workers.at_once;
        while crew.answered < calls.len() {
            while crew.running < at_once && crew.next < calls.len() {
                self.start_worker(crew, &calls[crew.next]).await?;
            }
            if let Some(outcome) = crew.done[crew.answered].take() {
                let (call, _) = &calls[crew.answered];
                self.answer(call, &outcome).await?;
                crew.answered += 1;
                self.emit(Event::ToolFinished { call: call.id.clone(), outcome }).await?;
                continue;
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Stop::Cancelled),
                () = self.emitter.closed() => return Err(Stop::Cancelled),
                command = self.command() => self.pass_on(crew, command)?,
                news = crew.news.recv() => {
                    let (at, news) = news.expect("the crew has a sender itself");
                    self.report(crew, at, news).await?;
                }
            }
        }
        Ok(())
    }

    async fn start_worker(&mut self, crew: &mut Crew, (call, args): &(ToolCall, Value)) -> Result<(), Stop> {
        self.recorder.intend(call.id.clone()).await?;
        self.emit(Event::ToolStarted { call: call.id.clone(), name: call.name.clone() }).await?;
        let at = crew.next;
        crew.next += 1;
        let order = SubagentRequest::read(args);
        let standing = match self.standing.of_worker(order.wanted, &self.shared.config) {
            Ok(standing) => standing,
            Err(reason) => {
                crew.done[at] = Some(ToolOutcome::failed(ToolFailureKind::Other, reason));
                return Ok(());
            }
        };
        let id = SessionId::new();
        let request = StartRun {
            prompt: Prompt::Text(order.prompt),
            history: History::Session(id.clone()),
            // Of the same agent, also the model that its client chose.
            overrides: RunOverrides {
                model: order.agent.is_empty().then(|| self.agent.model.clone()),
                ..RunOverrides::default()
            },
            agent: if order.agent.is_empty() { self.agent.id.to_string() } else { order.agent },
            context: ExtraContext { system: self.extra_context.clone(), ..ExtraContext::default() },
            ..StartRun::default()
        };
        let inherited = ParentContext {
            place: Arc::clone(&self.place),
            tools: self.tools.without_daemon_tool(SPAWN_WORKER),
            parent: self.session.clone().unwrap_or_else(|| self.standing.team.clone()),
            standing,
        };
        let (hand, commands) = mpsc::channel(QUEUE);
        // A client that decides nothing any more decides nothing for a worker.
        crew.hands[at] = self.can_hear().then_some(hand);
        crew.running += 1;
        let job = Job {
            shared: Arc::clone(self.shared),
            at,
            id,
            request,
            inherited: Box::new(inherited),
            cancel: crew.cancel.child(),
            commands,
            news: crew.post.clone(),
        };
        tokio::spawn(job.work().in_current_span());
        Ok(())
    }

    /// Gives a decision or a result to the worker that waits for it.
    fn pass_on(&mut self, crew: &mut Crew, command: Option<Command>) -> Result<(), Stop> {
        let Some(mut command) = command else {
            crew.hands.fill_with(|| None);
            return self.hear(None);
        };
        let call = match &mut command {
            Command::Approve(call) | Command::Deny { call, .. } | Command::ToolResult { call, .. } => call,
            Command::SetClientTools(_) => return self.hear(Some(command)),
        };
        // The first word on a call counts; others, and those on calls that nobody made, are ignored.
        if let Some((at, theirs)) = crew.asked.remove(call) {
            self.shared.live.decided(self.recorder.run(), call);
            *call = theirs;
            if let Some(hand) = &crew.hands[at]
                && hand.try_send(command).is_err()
            {
                tracing::debug!("a command for a worker came too late or too fast");
            }
        }
        Ok(())
    }

    async fn report(&mut self, crew: &mut Crew, at: usize, news: News) -> Result<(), Stop> {
        // Two workers, or a worker and its parent, may use one id.
        let mut fresh = |theirs: &mut CallId| {
            let ours = CallId::local();
            let theirs = std::mem::replace(theirs, ours.clone());
            crew.asked.insert(ours, (at, theirs));
        };
        match news {
            News::Event(event) => self.emit(Event::Subagent(event)).await,
            News::Proposed(mut calls) => {
                calls.iter_mut().for_each(|proposed| fresh(&mut proposed.call.id));
                self.wait_for(&calls);
                self.emit(Event::ToolsProposed(calls)).await
            }
            News::Requested { mut call, timeout, worker } => {
                fresh(&mut call.id);
                self.emit(Event::ToolRequested { call, timeout, subagent: Some(worker) }).await
            }
            News::Done(Report { outcome, denied }) => {
                crew.hands[at] = None;
                crew.asked.retain(|call, (whose, _)| {
                    if *whose == at {
                        self.shared.live.decided(self.recorder.run(), call);
                    }
                    *whose != at
                });
                crew.running -= 1;
                crew.done[at] = Some(outcome);
                if denied {
                    crew.ending = AfterDenial::End;
                }
                Ok(())
            }
        }
    }
}
