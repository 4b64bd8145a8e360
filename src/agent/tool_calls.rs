//! The calls of one turn: proposed together, decided one by one, run in order.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use serde_json::Value;

use crate::{
    core::{CallId, Message, ToolCall, ToolFailureKind, ToolOutcome, ToolResult},
    tools::{
        Concurrency, Executor, Proposal, Tool,
        schema::{CheckedCall, check},
    },
};

use super::{
    ApprovalBatching,
    bridge::blocking,
    protocol::{AfterDenial, Command, Event, FailureKind, Outcome, ProposedCall, RunError},
    run_loop::{RunLoop, Stop},
    spawn_tool::SPAWN_WORKER,
};

/// A call and what is to become of it.
struct Pending {
    call: ToolCall,
    ruling: Ruling,
}

enum Ruling {
    /// Runs here without asking.
    Free {
        tool: Arc<dyn Tool>,
        args: Value,
        proposal: Proposal,
    },
    /// Runs here once somebody has said yes.
    Asked {
        tool: Arc<dyn Tool>,
        args: Value,
        proposal: Proposal,
    },
    /// Runs at the client.
    Client {
        timeout: Duration,
        order: Concurrency,
    },
    /// Does not run; the model reads why.
    Refused(String),
    Denied {
        reason: String,
    },
}

impl Pending {
    /// May run while others of its kind do.
    fn is_free(&self) -> bool {
        matches!(self.ruling, Ruling::Client { order: Concurrency::Parallel, .. })
    }

    /// Approved, and starts a worker.
    fn is_worker(&self) -> bool {
        self.call.name == SPAWN_WORKER && matches!(self.ruling, Ruling::Asked { .. })
    }

    /// The call that starts a worker, if it is one.
    fn worker(self) -> Result<(ToolCall, Value), Box<Self>> {
        match self {
            Self { call, ruling: Ruling::Asked { args, .. } } if call.name == SPAWN_WORKER => {
                Ok((call, args))
            }
            other => Err(Box::new(other)),
        }
    }
}

/// A call that is out at the client.
struct Out {
    call: ToolCall,
    timeout: Duration,
    outcome: Option<ToolOutcome>,
}

impl RunLoop<'_> {
    /// Proposes, decides and runs the calls of a turn. `Some` ends the run.
    pub(super) async fn use_tools(&mut self, calls: Vec<ToolCall>) -> Result<Option<Outcome>, Stop> {
        let at_once = match self.pace {
            ApprovalBatching::WholeTurn => calls.len(),
            ApprovalBatching::OneByOne => 1,
        };
        let mut calls = calls.into_iter();
        let mut ending = AfterDenial::Continue;
        loop {
            let some: Vec<ToolCall> = calls.by_ref().take(at_once).collect();
            if some.is_empty() {
                break;
            }
            match self.use_some(some).await {
                Ok(AfterDenial::Continue) => {}
                Ok(AfterDenial::End) => ending = AfterDenial::End,
                Err(stop) => {
                    self.answer_rest(&mut calls).await;
                    return Err(stop);
                }
            }
        }
        self.emit(Event::ToolsCompleted).await?;
        Ok((ending == AfterDenial::End).then_some(Outcome::Denied))
    }

    /// Proposes, decides and runs those that are proposed together.
    async fn use_some(&mut self, calls: Vec<ToolCall>) -> Result<AfterDenial, Stop> {
        let mut pending = self.rule(calls).await?;
        let proposed: Vec<ProposedCall> = pending.iter().filter_map(proposed).collect();
        let mut ending = AfterDenial::Continue;
        if !proposed.is_empty() {
            self.wait_for(&proposed);
            self.emit(Event::ToolsProposed(proposed)).await?;
            let decided = self.decide(&mut pending).await;
            self.shared.live.settled(self.recorder.run());
            ending = match decided {
                Ok(ending) => ending,
                Err(stop) => {
                    self.answer_rest(&mut pending.into_iter().map(|pending| pending.call)).await;
                    return Err(stop);
                }
            };
        }
        let mut pending = pending.into_iter().peekable();
        while let Some(next) = pending.next() {
            let result = if next.is_free() {
                let mut group = vec![next];
                group.extend(std::iter::from_fn(|| pending.next_if(Pending::is_free)));
                self.run_at_client(group).await
            } else {
                match next.worker() {
                    Ok(first) => {
                        let mut calls = vec![first];
                        while let Some(more) = pending.next_if(Pending::is_worker) {
                            calls.extend(more.worker());
                        }
                        self.run_workers(&calls).await.map(|after| {
                            if after == AfterDenial::End {
                                ending = AfterDenial::End;
                            }
                        })
                    }
                    Err(next) => self.run_call(*next).await,
                }
            };
            if let Err(stop) = result {
                self.answer_rest(&mut pending.map(|pending| pending.call)).await;
                return Err(stop);
            }
        }
        Ok(ending)
    }

    /// Looks each call up and reads its preview from the real files.
    async fn rule(&self, calls: Vec<ToolCall>) -> Result<Vec<Pending>, Stop> {
        let (tools, place) = (self.tools.clone(), Arc::clone(&self.place));
        let mut ruling = blocking(move || {
            let defs = tools.defs();
            let rule = |call: ToolCall| {
                // What is shown and run is the call as it was understood; what the model reads again is
                // the call as it was written.
                let CheckedCall { name, args, arguments } = match check(&call, &defs) {
                    Ok(sound) => sound,
                    Err(fault) => return Pending { call, ruling: Ruling::Refused(fault.reason) },
                };
                let call = ToolCall { id: call.id, name, arguments };
                let ruling = match tools.find(&call.name).expect("`check` found it") {
                    Executor::Client { timeout, concurrency: order } => {
                        Ruling::Client { timeout: *timeout, order: *order }
                    }
                    Executor::Daemon(tool) => {
                        let (tool, proposal) = (Arc::clone(tool), tool.propose(&args, &place));
                        if tool.needs_approval() {
                            Ruling::Asked { tool, args, proposal }
                        } else {
                            Ruling::Free { tool, args, proposal }
                        }
                    }
                };
                Pending { call, ruling }
            };
            calls.into_iter().map(rule).collect()
        });
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
            pending = ruling.join() => Ok(pending?),
        }
    }

    /// Waits until every proposed call has a decision. The first decision on a call counts; ids that
    /// were not proposed are ignored.
    async fn decide(&mut self, pending: &mut [Pending]) -> Result<AfterDenial, Stop> {
        let mut ending = AfterDenial::Continue;
        let mut decided: Vec<bool> =
            pending.iter().map(|p| !matches!(p.ruling, Ruling::Asked { .. })).collect();
        while decided.contains(&false) {
            let command = if self.can_hear() {
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => return Err(Stop::Cancelled),
                    () = self.emitter.closed() => return Err(Stop::Cancelled),
                    command = self.command() => command,
                }
            } else {
                None
            };
            let find = |id: &CallId| pending.iter().zip(&decided).position(|(p, d)| !d && p.call.id == *id);
            match command {
                // Nobody can decide any more: the end of input means no.
                None => {
                    self.hear(None)?;
                    for (call, decided) in pending.iter_mut().zip(&mut decided).filter(|(_, d)| !**d) {
                        call.ruling = Ruling::Denied { reason: "nobody was there to approve".to_owned() };
                        *decided = true;
                    }
                    ending = AfterDenial::End;
                }
                Some(Command::Approve(id)) => {
                    if let Some(at) = find(&id) {
                        self.shared.live.decided(self.recorder.run(), &id);
                        decided[at] = true;
                    }
                }
                Some(Command::Deny { call, reason, then }) => {
                    if let Some(at) = find(&call) {
                        self.shared.live.decided(self.recorder.run(), &call);
                        decided[at] = true;
                        pending[at].ruling = Ruling::Denied { reason };
                        if then == AfterDenial::End {
                            ending = AfterDenial::End;
                        }
                    }
                }
                Some(other) => self.hear(Some(other))?,
            }
        }
        Ok(ending)
    }

    async fn run_call(&mut self, pending: Pending) -> Result<(), Stop> {
        let Pending { call, ruling } = pending;
        let outcome = match ruling {
            Ruling::Denied { reason } => {
                // A denied call reports nothing; its result is for the model.
                let outcome = ToolOutcome::failed(ToolFailureKind::Denied, format!("denied: {reason}"));
                return self.answer(&call, &outcome).await;
            }
            Ruling::Refused(reason) => ToolOutcome::failed(ToolFailureKind::InvalidArguments, reason),
            ruling @ Ruling::Client { .. } => {
                return self.run_at_client(vec![Pending { call, ruling }]).await;
            }
            Ruling::Free { tool, args, proposal } | Ruling::Asked { tool, args, proposal } => {
                self.run_here(&call, tool, args, proposal).await?
            }
        };
        self.answer(&call, &outcome).await?;
        self.emit(Event::ToolFinished { call: call.id, outcome }).await
    }

    async fn run_here(
        &mut self,
        call: &ToolCall,
        tool: Arc<dyn Tool>,
        args: Value,
        proposal: Proposal,
    ) -> Result<ToolOutcome, Stop> {
        if tool.needs_approval() {
            self.recorder.intend(call.id.clone()).await?;
        }
        self.emit(Event::ToolStarted { call: call.id.clone(), name: call.name.clone() }).await?;
        let place = Arc::clone(&self.place);
        let stop = self.cancel.child();
        let mut work = {
            let stop = stop.clone();
            blocking(move || tool.execute(&args, &place, &proposal, &stop))
        };
        let limit = Duration::from_secs(self.tool_timeout());
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        let outcome = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break Err(Stop::Cancelled),
                () = self.emitter.closed() => break Err(Stop::Cancelled),
                outcome = work.join() => break Ok(outcome.unwrap_or_else(|error| ToolOutcome::failed(ToolFailureKind::Other, error.message))),
                () = &mut deadline => {
                    stop.cancel();
                    let message = format!("timed out after {} s", limit.as_secs());
                    break Ok(ToolOutcome::failed(ToolFailureKind::TimedOut, message));
                }
                command = self.command() => self.hear(command)?,
            }
        };
        if outcome.is_err() {
            let cut = ToolOutcome::failed(
                ToolFailureKind::Cancelled,
                "cancelled while it ran; its outcome is unknown",
            );
            self.answer(call, &cut).await.ok();
        }
        outcome
    }

    /// Has the client run these calls, all of them at the same time. Results may come in any order; the
    /// model reads them in its own.
    async fn run_at_client(&mut self, group: Vec<Pending>) -> Result<(), Stop> {
        let mut out: Vec<Out> = Vec::with_capacity(group.len());
        for Pending { call, ruling } in group {
            if let Ruling::Client { timeout, .. } = ruling {
                out.push(Out { call, timeout, outcome: None });
            }
        }
        let waited = self.wait_for_client(&mut out).await;
        for Out { call, outcome, .. } in out {
            let reported = outcome.is_some();
            let outcome = outcome.unwrap_or_else(|| {
                ToolOutcome::failed(ToolFailureKind::Cancelled, "cancelled; its outcome is unknown")
            });
            self.answer(&call, &outcome).await?;
            if reported && waited.is_ok() {
                self.emit(Event::ToolFinished { call: call.id, outcome }).await?;
            }
        }
        waited
    }

    async fn wait_for_client(&mut self, out: &mut [Out]) -> Result<(), Stop> {
        for Out { call, timeout, .. } in &*out {
            self.emit(Event::ToolRequested { call: call.clone(), timeout: *timeout, subagent: None }).await?;
        }
        let began = Instant::now();
        loop {
            let open = out.iter().filter(|out| out.outcome.is_none());
            let Some(next) = open.map(|out| out.timeout).min() else { return Ok(()) };
            if !self.can_hear() {
                for out in out.iter_mut().filter(|out| out.outcome.is_none()) {
                    out.outcome = Some(ToolOutcome::failed(ToolFailureKind::Other, "the client is gone"));
                }
                return Ok(());
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Stop::Cancelled),
                () = self.emitter.closed() => return Err(Stop::Cancelled),
                () = tokio::time::sleep_until(began + next) => {
                    for out in out.iter_mut().filter(|out| out.outcome.is_none() && out.timeout <= next) {
                        let late = format!("the client gave no result within {} s", out.timeout.as_secs());
                        out.outcome = Some(ToolOutcome::failed(ToolFailureKind::Other, late));
                    }
                }
                command = self.command() => match command {
                    Some(Command::ToolResult { call, outcome }) => {
                        let asked = out.iter_mut().find(|out| out.outcome.is_none() && out.call.id == call);
                        if let Some(asked) = asked {
                            asked.outcome = Some(outcome);
                        }
                    }
                    other => self.hear(other)?,
                },
            }
        }
    }

    /// Stores a call's result and shows it to the model in the next turn, cut to what the window holds.
    pub(super) async fn answer(&mut self, call: &ToolCall, outcome: &ToolOutcome) -> Result<(), Stop> {
        let mut result = ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            output: self.noted(call, outcome.text()),
            is_error: outcome.is_error(),
        };
        let (provider, recorder, cancel) =
            (Arc::clone(&self.provider), self.recorder.clone(), self.cancel.clone());
        let limit = self.window.output_limit();
        let mut storing = blocking(move || {
            let tokens = fit(&mut result.output, limit, &|text| provider.count_tokens(&[text], &cancel)[0]);
            let mut message = Message::result(result);
            message.tokens = tokens;
            recorder.sign(&mut message);
            recorder.append_blocking(std::slice::from_ref(&message)).map(|()| message)
        });
        let message = storing.join().await??;
        self.window.push(message);
        Ok(())
    }

    /// Answers the calls that will not run because the run is over, so that the stored conversation
    /// has no open ends.
    async fn answer_rest(&mut self, calls: &mut (dyn Iterator<Item = ToolCall> + Send)) {
        for call in calls {
            let outcome = ToolOutcome::failed(ToolFailureKind::Cancelled, "cancelled before it ran");
            if let Err(Stop::Failed(RunError { kind: FailureKind::Storage, message, .. })) =
                self.answer(&call, &outcome).await
            {
                tracing::warn!(message, "an open call could not be answered on disk");
                return;
            }
        }
    }
}

/// Cuts `output` to at most `limit` tokens, with a word about it, and gives its tokens.
fn fit(output: &mut String, limit: u32, count: &dyn Fn(&str) -> u32) -> u32 {
    let mut tokens = count(output).max(1);
    let whole = std::mem::take(output);
    output.clone_from(&whole);
    let mut keep = whole.len();
    // The text is not equally dense everywhere, so each round takes a tenth more than the proportion says.
    while tokens > limit && keep > 0 {
        keep = (keep as u64 * u64::from(limit) / u64::from(tokens) / 10 * 9) as usize;
        keep = whole.floor_char_boundary(keep);
        keep = whole[..keep].rfind('\n').map_or(keep, |end| end + 1);
        *output = format!(
            "{}\n[cut to fit the window: {keep} of {} bytes; ask for a smaller part]",
            &whole[..keep],
            whole.len()
        );
        tokens = count(output).max(1);
    }
    tokens
}

fn proposed(pending: &Pending) -> Option<ProposedCall> {
    let Ruling::Asked { proposal, .. } = &pending.ruling else { return None };
    Some(ProposedCall {
        call: pending.call.clone(),
        preview: proposal.preview.clone(),
        caution: proposal.caution.clone(),
        effect: proposal.effect.clone(),
        subagent: None,
    })
}

#[cfg(test)]
mod tests {
    use super::fit;

    fn bytes_by_four(text: &str) -> u32 {
        u32::try_from(text.len().div_ceil(4)).unwrap()
    }

    #[test]
    fn an_output_is_cut_at_a_line_and_says_so() {
        let mut small = "one\ntwo\n".to_owned();
        assert_eq!((fit(&mut small, 100, &bytes_by_four), small.as_str()), (2, "one\ntwo\n"));

        let mut large = "a line of text\n".repeat(1000);
        let tokens = fit(&mut large, 200, &bytes_by_four);
        assert!(tokens <= 200 && tokens > 100, "{tokens}");
        assert!(
            large.contains("text\n\n[cut to fit the window: ")
                && large.ends_with("15000 bytes; ask for a smaller part]")
        );

        let mut dense = "é".repeat(5000);
        assert!(fit(&mut dense, 100, &bytes_by_four) <= 100);
    }
}
