//! Decides on the calls that a run proposes. A change of a file becomes a proposal that the user decides on.

use tokio::sync::oneshot;

use kontekst_agent::protocol::{AfterDenial, Command, Decision, ProposedCall};
use kontekst_core::{CallId, ToolNature, ToolOutcome};
use kontekst_tools::{Change, Effect, builtin::RUN_COMMAND};

use super::{
    super::{
        error::RpcError, incident::FileGroup, interaction::Reply, notifier::Correlation, proposal::Proposal,
    },
    FixTask, Stop,
    file_run::FileRun,
    questions::{Answer, Question},
};

/// A change that the user has approved and whose write has not ended.
///
/// The user's approval is answered through `result_sender`. Dropping it answers that the request ended before.
pub(super) struct ApprovedChange {
    call: CallId,
    proposal: Proposal,
    result_sender: oneshot::Sender<Result<(), RpcError>>,
}

/// The user's decision about a change.
enum Verdict {
    Approved(ApprovedChange),
    /// The change is not made, for this reason. The model reads it.
    Denied(String),
    /// Another client has decided. The change is there if it approved.
    Elsewhere(Option<ApprovedChange>),
}

impl ApprovedChange {
    pub(super) fn is_for(&self, call: &CallId) -> bool {
        self.call == *call
    }
}

impl FixTask {
    /// Decides whether a call may run. Nothing is written unless the user has approved that change, here or through
    /// another client. Returns `None` if that one decided.
    pub(super) async fn decide_call(
        &mut self,
        proposed: ProposedCall,
        run: &mut FileRun<'_>,
    ) -> Result<Option<Command>, Stop> {
        let ProposedCall { call, nature, caution, asked_by, effect, .. } = proposed;
        let verdict = match effect {
            Effect::Change(change) if change.old.as_deref() == Some(change.new.as_bytes()) => {
                return Ok(Some(Command::Approve(call.id)));
            }
            Effect::Change(change) => self.propose(call.id.clone(), &change, caution.as_deref(), run).await?,
            Effect::Reads if call.name != RUN_COMMAND => return Ok(Some(Command::Approve(call.id))),
            Effect::Unknown if nature == ToolNature::Reads => match caution.or(asked_by) {
                None => return Ok(Some(Command::Approve(call.id))),
                // There is no question to the user for a call that only reads.
                Some(caution) => Verdict::Denied(format!("this needs an approval: {caution}")),
            },
            Effect::Unknown | Effect::Reads if call.name == RUN_COMMAND => Verdict::Denied(
                "only commands that need no approval run here; `allow` under [commands] of config.toml lists them"
                    .to_owned(),
            ),
            Effect::Unknown | Effect::Reads => Verdict::Denied("this tool is not available here".to_owned()),
            // The run does not ask about a call that would change nothing.
            Effect::Fails(why) | Effect::Refused(why) => Verdict::Denied(why),
        };
        Ok(match verdict {
            Verdict::Approved(change) => {
                self.approved = Some(change);
                Some(Command::Approve(call.id))
            }
            Verdict::Denied(reason) => {
                Some(Command::Deny { call: call.id, reason, then: AfterDenial::Continue })
            }
            Verdict::Elsewhere(change) => {
                self.approved = change;
                None
            }
        })
    }

    /// Proposes a change to the user and waits for the decision.
    async fn propose(
        &mut self,
        call: CallId,
        change: &Change,
        caution: Option<&str>,
        run: &mut FileRun<'_>,
    ) -> Result<Verdict, Stop> {
        let proposal = match Proposal::new(change, &change_description(run.group, &change.path), caution) {
            Ok(proposal) => proposal,
            Err(error) => {
                self.notifier.error(&error).await?;
                return Ok(Verdict::Denied(error.message));
            }
        };
        let description = format!("{}: a change is proposed", run.range.label);
        self.notifier.progress(run.range.at_fraction(0.8), "generating_fixes", description).await?;
        self.counters.proposals += 1;
        let question = Question::approval(&proposal);
        self.notifier
            .notify("file_modification", Correlation::Proposal(&proposal.id), proposal.content.clone())
            .await?;
        let answer = self.ask_unless(question, run.decision_elsewhere(&call)).await?;
        let reason = match answer {
            Answer::Other(Decision::Approved) => {
                // Nobody waits here for what comes of the write.
                let (result_sender, _) = oneshot::channel();
                return Ok(Verdict::Elsewhere(Some(ApprovedChange { call, proposal, result_sender })));
            }
            Answer::Other(Decision::Denied(_) | Decision::Withdrawn) => {
                self.notifier.system_event("proposal_rejected", "discarded", proposal.summary()).await?;
                return Ok(Verdict::Elsewhere(None));
            }
            Answer::Submitted(answer) if answer.reply == Reply::Approved => {
                let result_sender = answer.result_sender;
                return Ok(Verdict::Approved(ApprovedChange { call, proposal, result_sender }));
            }
            Answer::Submitted(answer) => {
                answer.result_sender.send(Ok(())).ok();
                match answer.reply {
                    Reply::Refused { comment: Some(comment) } => format!("the user refused: {comment}"),
                    _ => "the user refused this change".to_owned(),
                }
            }
            Answer::TimedOut => "the user did not answer in time".to_owned(),
        };
        self.notifier.system_event("proposal_rejected", "discarded", proposal.summary()).await?;
        Ok(Verdict::Denied(reason))
    }

    /// Reports what came of the approved change, if `call` was its write.
    pub(super) async fn resolve_approved(
        &mut self,
        call: &CallId,
        outcome: &ToolOutcome,
    ) -> Result<(), Stop> {
        let Some(approved) = self.approved.take_if(|approved| approved.call == *call) else { return Ok(()) };
        let ApprovedChange { proposal, result_sender, .. } = approved;
        if outcome.is_error() {
            result_sender.send(Err(proposal.write_error(outcome))).ok();
            return Ok(());
        }
        self.counters.applied += 1;
        result_sender.send(Ok(())).ok();
        self.notifier.system_event("proposal_applied", "applied", proposal.summary()).await?;
        Ok(())
    }
}

/// Describes in a few words why the file at `path` is changed.
fn change_description(group: &FileGroup, path: &str) -> String {
    if group.path != path {
        return format!("Part of the fix of {}", group.path);
    }
    let mut descriptions: Vec<&str> = Vec::new();
    for incident in &group.incidents {
        if descriptions.len() < 3 && !descriptions.contains(&incident.description.as_str()) {
            descriptions.push(&incident.description);
        }
    }
    let mut text = descriptions.join("; ");
    text.truncate(text.floor_char_boundary(500));
    text
}
