//! Decides which proposed tool calls may run: by the flags, or by asking on the terminal.

use std::collections::{HashSet, VecDeque};

use tokio::sync::oneshot;

use crate::{
    cli::output::Palette,
    pb::{ApproveToolCommand, DenyToolCommand, ProposedToolCall, run_command::Command},
};

use super::approval_prompt::{ApprovalAnswer, Terminal};

/// The choice between ending the run and going on when a call is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OnDeny {
    /// The run ends
    End,
    /// The model reads that the call was denied and continues
    Continue,
}

/// The calls that need no question.
#[derive(Clone)]
pub(super) struct Policy {
    pub(super) auto_approve: bool,
    pub(super) allowed_tools: HashSet<String>,
    pub(super) on_deny: OnDeny,
}

impl Policy {
    /// Returns true if the call needs no question. A call with a caution always needs one.
    fn covers(&self, call: &ProposedToolCall) -> bool {
        call.caution.is_empty() && (self.auto_approve || self.allowed_tools.contains(&call.name))
    }
}

/// Decides on the proposals of one run.
///
/// A proposal is all calls of one turn that need approval. Subagents propose while the user still answers an
/// earlier question, so proposals wait in a queue and only one of them is asked at a time.
pub(super) struct Approver {
    policy: Policy,
    palette: Palette,
    queue: VecDeque<Question>,
    /// Delivers the answers to the proposal that is on the terminal now.
    answers: Option<oneshot::Receiver<Answers>>,
    lacked_terminal: bool,
}

/// A proposal that has to be asked on the terminal.
struct Question {
    terminal: Terminal,
    calls: Vec<ProposedToolCall>,
}

/// The user's answers to one proposal.
#[derive(Default)]
struct Answers {
    commands: Vec<Command>,
    /// Tools that need no question for the rest of the run.
    allow_always: Vec<String>,
}

impl Approver {
    pub(super) fn new(policy: Policy, palette: Palette) -> Self {
        Self { policy, palette, queue: VecDeque::new(), answers: None, lacked_terminal: false }
    }

    /// Returns true if a call was denied, and the run ended, because there was no terminal to ask on.
    pub(super) fn lacked_terminal(&self) -> bool {
        self.lacked_terminal
    }

    /// Takes the calls of a proposal and returns the decisions that need no question.
    ///
    /// If any call needs one, nothing is returned and [`Approver::answered`] has the decisions on all of them
    /// later.
    pub(super) fn propose(&mut self, calls: Vec<ProposedToolCall>) -> Vec<Command> {
        if calls.iter().all(|call| self.policy.covers(call)) {
            return calls.iter().map(approve).collect();
        }
        let Some(terminal) = Terminal::open() else {
            return calls.iter().map(|call| self.decide_without_terminal(call)).collect();
        };
        self.queue.push_back(Question { terminal, calls });
        self.ask_next();
        Vec::new()
    }

    /// Waits until the user has answered a proposal, and returns the decisions. Waits forever if nothing is
    /// asked.
    ///
    /// Nothing is lost if the returned future is dropped early.
    pub(super) async fn answered(&mut self) -> Vec<Command> {
        let Some(receiver) = &mut self.answers else { return std::future::pending().await };
        let answers = receiver.await.unwrap_or_default();
        self.answers = None;
        self.policy.allowed_tools.extend(answers.allow_always);
        self.ask_next();
        answers.commands
    }

    fn decide_without_terminal(&mut self, call: &ProposedToolCall) -> Command {
        if self.policy.covers(call) {
            return approve(call);
        }
        self.lacked_terminal |= self.policy.on_deny == OnDeny::End;
        deny(call, "there is no terminal to ask on", self.policy.on_deny)
    }

    /// Asks the first proposal of the queue, unless a question is open. The terminal is read on a thread of
    /// its own, so that the run can be interrupted meanwhile.
    fn ask_next(&mut self) {
        if self.answers.is_some() {
            return;
        }
        let Some(question) = self.queue.pop_front() else { return };
        let (sender, receiver) = oneshot::channel();
        self.answers = Some(receiver);
        let (policy, palette) = (self.policy.clone(), self.palette);
        std::thread::spawn(move || sender.send(ask(&question, policy, palette)).ok());
    }
}

/// Asks about each call that `policy` does not cover.
fn ask(question: &Question, mut policy: Policy, palette: Palette) -> Answers {
    let mut answers = Answers::default();
    for call in &question.calls {
        let answer = match policy.covers(call) {
            true => ApprovalAnswer::Yes,
            // An error means that the terminal is gone.
            false => question.terminal.ask(call, palette).unwrap_or(ApprovalAnswer::No),
        };
        answers.commands.push(match answer {
            ApprovalAnswer::Yes => approve(call),
            ApprovalAnswer::Always => {
                policy.allowed_tools.insert(call.name.clone());
                answers.allow_always.push(call.name.clone());
                approve(call)
            }
            ApprovalAnswer::No => deny(call, "the user said no", policy.on_deny),
            ApprovalAnswer::NoWithReason(reason) => deny(call, &reason, OnDeny::Continue),
        });
    }
    answers
}

fn approve(call: &ProposedToolCall) -> Command {
    Command::ApproveTool(ApproveToolCommand { call_id: call.call_id.clone() })
}

fn deny(call: &ProposedToolCall, reason: &str, on_deny: OnDeny) -> Command {
    Command::DenyTool(DenyToolCommand {
        call_id: call.call_id.clone(),
        reason: reason.to_owned(),
        continue_run: on_deny == OnDeny::Continue,
    })
}
