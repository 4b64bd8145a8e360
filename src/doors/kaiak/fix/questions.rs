//! Questions to the user, and the time they take.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::core::{ToolCall, ToolFailureKind, ToolOutcome};

use super::{
    super::{
        Shared, convert,
        interaction::{CloseReason, Interaction, InteractionKind, Reply, SubmittedReply},
        notifier::Correlation,
        proposal::Proposal,
    },
    FixTask, Stop,
};

/// What the user is asked.
pub(super) struct Question {
    prompt: String,
    kind: InteractionKind,
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

/// Closes a question that nobody waits for any more, however the waiting ends.
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

impl FixTask {
    /// Asks and waits for the answer; `None` when none came in time, which the client is told.
    pub(super) async fn ask(&mut self, question: Question) -> Result<Option<SubmittedReply>, Stop> {
        let patience = Duration::from_secs(self.shared.core.config().kaiak.approval_timeout_seconds);
        let name = question.kind.name();
        let content = |id: &str| question.content(id, patience);
        let (interaction, mut answer) = Interaction::new(question.kind.clone());
        let interaction = Arc::new(interaction);
        self.shared.interactions.insert(&interaction.id, Arc::clone(&interaction));
        let open = OpenInteraction { shared: Arc::clone(&self.shared), interaction };
        let id = &open.interaction.id;
        self.count.interactions += 1;
        let began = tokio::time::Instant::now();
        self.voice.notify("user_interaction", Correlation::Interaction(id), content(id)).await?;
        let answered = tokio::select! {
            biased;
            () = self.request.cancel.cancelled() => return Err(Stop::Cancelled),
            answered = &mut answer => Some(answered.map_err(|_| Stop::Cancelled)?),
            () = tokio::time::sleep(patience) => {
                // An answer that came at the same moment counts.
                if open.interaction.close(CloseReason::Expired) { None } else { answer.await.ok() }
            }
        };
        // The model's time is not the user's.
        self.deadline += began.elapsed();
        if answered.is_none() {
            let default = if name == "approval" { "deny" } else { "cancel" };
            let summary = json!({
                "interaction_id": id, "default_action": default, "interaction_type": name,
            });
            self.voice.system_event("interaction_timeout", "timeout_processed", summary).await?;
        }
        Ok(answered)
    }

    /// Runs a call of the tool by which the model asks.
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
        let Some(answer) = self.ask(Question { prompt, kind, proposal: None }).await? else {
            return Ok(ToolOutcome::failed(ToolFailureKind::Other, "the user did not answer in time"));
        };
        let outcome = match answer.reply {
            Reply::Chosen(chosen) => {
                let picked: Vec<&str> =
                    chosen.iter().filter_map(|at| options.get(*at)).map(String::as_str).collect();
                ToolOutcome::Done(format!("the user chose: {}", picked.join("; ")))
            }
            Reply::Text(text) => ToolOutcome::Done(text),
            Reply::Approved | Reply::Refused { .. } => {
                unreachable!("an answer is of its question's kind")
            }
        };
        answer.result_sender.send(Ok(())).ok();
        Ok(outcome)
    }
}
