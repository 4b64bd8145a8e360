//! Which tool calls run: by flag, or by asking a person.

use std::collections::HashSet;

use tokio::sync::oneshot;

use crate::pb::{ApproveToolCommand, DenyToolCommand, ProposedToolCall, run_command::Command};

use super::{
    approval_prompt::{ApprovalAnswer, Terminal},
    render::Palette,
};

/// What a refusal means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OnDeny {
    End,
    Continue,
}

/// Which calls need no asking.
pub(super) struct Policy {
    auto: bool,
    allowed: HashSet<String>,
    on_deny: OnDeny,
    /// A call that ends the run was refused because there was no terminal.
    pub(super) had_no_terminal: bool,
}

impl Policy {
    pub(super) fn new(auto: bool, allowed: &[String], on_deny: OnDeny) -> Self {
        let allowed = allowed.iter().map(|name| name.trim().to_owned()).collect();
        Self { auto, allowed, on_deny, had_no_terminal: false }
    }

    /// Asks no more about these tools.
    pub(super) fn allow(&mut self, tools: Vec<String>) {
        self.allowed.extend(tools);
    }

    fn covers(&self, call: &ProposedToolCall) -> bool {
        call.caution.is_empty() && (self.auto || self.allowed.contains(&call.name))
    }

    /// Decides on the calls of a turn, asking on the terminal where the policy does not. The asking has
    /// a thread of its own, so that Ctrl-C is heard meanwhile.
    pub(super) fn decide(
        &mut self,
        calls: Vec<ProposedToolCall>,
        palette: Palette,
    ) -> oneshot::Receiver<Decisions> {
        let (sender, receiver) = oneshot::channel();
        let all_covered = calls.iter().all(|call| self.covers(call));
        let terminal = if all_covered { None } else { Terminal::open() };
        if all_covered || terminal.is_none() {
            let decided = calls.iter().map(|call| {
                if self.covers(call) {
                    return approve(call);
                }
                self.had_no_terminal |= self.on_deny == OnDeny::End;
                deny(call, "there is no terminal to ask on", self.on_deny)
            });
            sender.send(Decisions { commands: decided.collect(), always: Vec::new() }).ok();
            return receiver;
        }
        let (auto, on_deny) = (self.auto, self.on_deny);
        let allowed = self.allowed.clone();
        let terminal = terminal.expect("looked at above");
        std::thread::spawn(move || {
            let (mut commands, mut always) = (Vec::new(), Vec::new());
            for call in &calls {
                let named = allowed.contains(&call.name) || always.contains(&call.name);
                let covered = call.caution.is_empty() && (auto || named);
                let next_decisions = if covered {
                    ApprovalAnswer::Yes
                } else {
                    terminal.ask(call, palette).unwrap_or(ApprovalAnswer::No)
                };
                commands.push(match next_decisions {
                    ApprovalAnswer::Yes => approve(call),
                    ApprovalAnswer::Always => {
                        always.push(call.name.clone());
                        approve(call)
                    }
                    ApprovalAnswer::No => deny(call, "the user said no", on_deny),
                    ApprovalAnswer::NoWithReason(reason) => deny(call, &reason, OnDeny::Continue),
                });
            }
            sender.send(Decisions { commands, always }).ok();
        });
        receiver
    }
}

/// What was said to the calls of a turn.
#[derive(Default)]
pub(super) struct Decisions {
    pub(super) commands: Vec<Command>,
    /// Tools that need no asking for the rest of the run.
    pub(super) always: Vec<String>,
}

fn approve(call: &ProposedToolCall) -> Command {
    Command::ApproveTool(ApproveToolCommand { call_id: call.call_id.clone() })
}

fn deny(call: &ProposedToolCall, reason: &str, then: OnDeny) -> Command {
    Command::DenyTool(DenyToolCommand {
        call_id: call.call_id.clone(),
        reason: reason.to_owned(),
        continue_run: then == OnDeny::Continue,
    })
}

/// The decisions, once they are made; pending for ever while none are asked for.
pub(super) async fn answer(answers: &mut Option<oneshot::Receiver<Decisions>>) -> Decisions {
    match answers {
        Some(receiver) => {
            let decided = receiver.await.unwrap_or_default();
            *answers = None;
            decided
        }
        None => std::future::pending().await,
    }
}
