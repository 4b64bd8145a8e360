//! Asks the user and waits for the answer. The time for this does not count against the request's timeout.

use std::{future::pending, sync::Arc, time::Duration};

use serde_json::{Value, json};

use kontekst_core::{ToolCall, ToolFailureKind, ToolOutcome};

use super::{
    super::{
        Shared, convert,
        interaction::{CloseReason, Interaction, InteractionKind, Reply, SubmittedReply},
        notifier::Correlation,
        proposal::Proposal,
    },
    FixTask, Stop,
};

/// A question to the user.
pub(super) struct Question {
    prompt: String,
    kind: InteractionKind,
    /// The id of the proposal that the question is about.
    proposal: Option<String>,
}

impl Question {
    pub(super) fn approval(proposal: &Proposal) -> Self {
        Self {
            prompt: proposal.question.clone(),
            kind: InteractionKind::Approval,
            proposal: Some(proposal.id.clone()),
        }
    }

    /// Returns the content of `stream/user_interaction`.
    fn content(&self, interaction: &str, timeout: Duration) -> Value {
        let mut content = json!({
            "interaction_type": self.kind.name(),
            "interaction_id": interaction,
            "prompt": self.prompt,
            "timeout": timeout.as_secs(),
        });
        if let Some(proposal) = &self.proposal {
            content["proposal_id"] = json!(proposal);
        }
        if let InteractionKind::Choice { options, multiple } = &self.kind {
            content["options"] = json!(options);
            content["multiple"] = json!(multiple);
        }
        content
    }
}

/// Closes its interaction when dropped, so that no answer is accepted after the wait has ended.
struct OpenInteraction {
    shared: Arc<Shared>,
    interaction: Arc<Interaction>,
}

impl Drop for OpenInteraction {
    fn drop(&mut self) {
        self.interaction.close(CloseReason::Cancelled);
        self.shared.interactions.retire(&self.interaction.id);
    }
}

/// The end of a question.
pub(super) enum Answer<T> {
    Submitted(SubmittedReply),
    /// The client has been told.
    TimedOut,
    /// Something else made the answer unnecessary.
    Other(T),
}

impl FixTask {
    /// Asks the user and waits for the answer, or until `other` resolves.
    pub(super) async fn ask_unless<T>(
        &mut self,
        question: Question,
        other: impl Future<Output = T>,
    ) -> Result<Answer<T>, Stop> {
        let timeout = Duration::from_secs(self.shared.core.config().kaiak.approval_timeout_seconds);
        let name = question.kind.name();
        let content = |id: &str| question.content(id, timeout);
        let (interaction, mut receiver) = Interaction::new(question.kind.clone());
        let interaction = Arc::new(interaction);
        self.shared.interactions.insert(&interaction.id, Arc::clone(&interaction));
        let open = OpenInteraction { shared: Arc::clone(&self.shared), interaction };
        let id = &open.interaction.id;
        self.counters.interactions += 1;
        let began = tokio::time::Instant::now();
        self.notifier.notify("user_interaction", Correlation::Interaction(id), content(id)).await?;
        let answer = tokio::select! {
            biased;
            () = self.request.cancel.cancelled() => return Err(Stop::Cancelled),
            answer = &mut receiver => Answer::Submitted(answer.map_err(|_| Stop::Cancelled)?),
            other = other => Answer::Other(other),
            () = tokio::time::sleep(timeout) => {
                // If the interaction is closed already, an answer came at the same moment and counts.
                let late = if open.interaction.close(CloseReason::Expired) { None } else { receiver.await.ok() };
                late.map_or(Answer::TimedOut, Answer::Submitted)
            }
        };
        // The timeout of the request is for the model, so the user's time is added to it.
        self.deadline += began.elapsed();
        if matches!(answer, Answer::TimedOut) {
            let default = if name == "approval" { "deny" } else { "cancel" };
            let summary = json!({
                "interaction_id": id, "default_action": default, "interaction_type": name,
            });
            self.notifier.system_event("interaction_timeout", "timeout_processed", summary).await?;
        }
        Ok(answer)
    }

    /// Runs a call of [`convert::ask_tool`].
    pub(super) async fn ask_user(&mut self, call: &ToolCall) -> Result<ToolOutcome, Stop> {
        let question = call.parse_arguments().and_then(|arguments| convert::parse_question(&arguments));
        let (prompt, kind) = match question {
            Ok(question) => question,
            Err(why) => return Ok(ToolOutcome::failed(ToolFailureKind::InvalidArguments, why)),
        };
        let options = match &kind {
            InteractionKind::Choice { options, .. } => options.clone(),
            InteractionKind::Approval | InteractionKind::Input => Vec::new(),
        };
        let question = Question { prompt, kind, proposal: None };
        let Answer::Submitted(answer) = self.ask_unless(question, pending::<()>()).await? else {
            return Ok(ToolOutcome::failed(ToolFailureKind::Other, "the user did not answer in time"));
        };
        let outcome = match answer.reply {
            Reply::Chosen(chosen) => {
                let chosen: Vec<&str> =
                    chosen.iter().filter_map(|index| options.get(*index)).map(String::as_str).collect();
                ToolOutcome::done(format!("the user chose: {}", chosen.join("; ")))
            }
            Reply::Text(text) => ToolOutcome::done(text),
            Reply::Approved | Reply::Refused { .. } => {
                unreachable!("a reply has the kind of its question")
            }
        };
        answer.result_sender.send(Ok(())).ok();
        Ok(outcome)
    }
}
