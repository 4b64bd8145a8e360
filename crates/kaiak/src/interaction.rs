//! A question to the user and its one answer.

use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use kontekst_core::Mutex;

use super::error::{Code, RpcError};

/// The longest text, in bytes, that a user may answer with.
const MAX_TEXT: usize = 1024 * 1024;

/// The kind of a question, which decides on the kind of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InteractionKind {
    Approval,
    Choice { options: Vec<String>, multiple: bool },
    Input,
}

/// The user's answer. It has the kind of its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Approved,
    Refused {
        comment: Option<String>,
    },
    /// Indices of the options, each at most once.
    Chosen(Vec<usize>),
    Text(String),
}

/// An answer, and where to send what came of it.
pub(super) struct SubmittedReply {
    pub(crate) reply: Reply,
    pub(crate) result_sender: oneshot::Sender<Result<(), RpcError>>,
}

/// A question that was sent to the client.
pub(super) struct Interaction {
    pub(crate) id: String,
    kind: InteractionKind,
    phase: Mutex<Phase>,
}

enum Phase {
    Pending(oneshot::Sender<SubmittedReply>),
    Closed(CloseReason),
}

/// A reason why a question can no longer be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    Responded,
    Expired,
    Cancelled,
}

impl InteractionKind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Choice { .. } => "choice",
            Self::Input => "input",
        }
    }

    /// Parses an answer to a question of this kind.
    ///
    /// # Errors
    ///
    /// Says why it is not a valid answer.
    fn read(&self, response_type: &str, data: &Value) -> Result<Reply, String> {
        if response_type != self.name() {
            return Err(format!("response_type is not `{}`", self.name()));
        }
        match self {
            Self::Approval => match data.get("approved").and_then(Value::as_bool) {
                Some(true) => Ok(Reply::Approved),
                Some(false) => {
                    let comment = data.get("comment").and_then(Value::as_str).map(str::to_owned);
                    Ok(Reply::Refused { comment })
                }
                None => Err("approved is not true or false".to_owned()),
            },
            Self::Choice { options, multiple } => {
                let bad = || format!("selected_indices are not indices of {} options", options.len());
                let items = data.get("selected_indices").and_then(Value::as_array).ok_or_else(bad)?;
                // Checked first, because the check for duplicates below is quadratic.
                if items.len() > options.len() {
                    return Err(bad());
                }
                let mut chosen = Vec::new();
                for item in items {
                    let index = item.as_u64().and_then(|index| usize::try_from(index).ok());
                    let index = index.filter(|index| *index < options.len()).ok_or_else(bad)?;
                    if chosen.contains(&index) {
                        return Err(format!("index {index} is given twice"));
                    }
                    chosen.push(index);
                }
                if chosen.len() != 1 && !multiple {
                    return Err("exactly one option can be chosen".to_owned());
                }
                Ok(Reply::Chosen(chosen))
            }
            Self::Input => match data.get("text").and_then(Value::as_str) {
                Some(text) if text.len() <= MAX_TEXT => Ok(Reply::Text(text.to_owned())),
                Some(_) => Err("text is longer than 1 MiB".to_owned()),
                None => Err("text is not a string".to_owned()),
            },
        }
    }
}

impl Interaction {
    /// Makes a question and the receiver of its answer.
    pub(super) fn new(kind: InteractionKind) -> (Self, oneshot::Receiver<SubmittedReply>) {
        let (sender, receiver) = oneshot::channel();
        let id = format!("int-{}", Uuid::new_v4());
        (Self { id, kind, phase: Mutex::new(Phase::Pending(sender)) }, receiver)
    }

    /// Takes an answer. The receiver gets what came of it.
    ///
    /// # Errors
    ///
    /// [`Code::InteractionResponded`] if the question is closed. [`Code::ResponseValidationFailed`] if the answer is not
    /// valid, which leaves the question open.
    pub(super) fn respond(
        &self,
        response_type: &str,
        data: &Value,
    ) -> Result<oneshot::Receiver<Result<(), RpcError>>, RpcError> {
        let mut phase = self.phase.lock();
        if let Phase::Closed(closed) = &*phase {
            return Err(self.already_closed(*closed));
        }
        let reply = self.kind.read(response_type, data).map_err(|why| {
            Code::ResponseValidationFailed.with(json!({"interaction_id": self.id, "reason": why}))
        })?;
        let Phase::Pending(reply_sender) =
            std::mem::replace(&mut *phase, Phase::Closed(CloseReason::Responded))
        else {
            unreachable!("the phase was checked above");
        };
        let (result_sender, result) = oneshot::channel();
        match reply_sender.send(SubmittedReply { reply, result_sender }) {
            Ok(()) => Ok(result),
            Err(_) => {
                *phase = Phase::Closed(CloseReason::Cancelled);
                Err(self.already_closed(CloseReason::Cancelled))
            }
        }
    }

    /// Closes the question. Returns false if it was closed already.
    pub(super) fn close(&self, why: CloseReason) -> bool {
        let mut phase = self.phase.lock();
        let was_open = matches!(*phase, Phase::Pending(_));
        if was_open {
            *phase = Phase::Closed(why);
        }
        was_open
    }

    /// Returns the error for an answer that came too late.
    pub(super) fn already_closed(&self, closed: CloseReason) -> RpcError {
        let status = match closed {
            CloseReason::Responded => "responded",
            CloseReason::Expired => "expired",
            CloseReason::Cancelled => "cancelled",
        };
        Code::InteractionResponded.with(json!({"interaction_id": self.id, "status": status}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_its_question_or_leaves_it_open() {
        let choice = |multiple| InteractionKind::Choice {
            options: vec!["a".into(), "b".into(), "c".into()],
            multiple,
        };
        for (kind, response_type, data, good) in [
            (InteractionKind::Approval, "approval", json!({"approved": true, "extra": 1}), true),
            (InteractionKind::Approval, "approval", json!({"approved": "yes"}), false),
            (InteractionKind::Approval, "approval", json!({}), false),
            (InteractionKind::Approval, "choice", json!({"approved": true}), false),
            (InteractionKind::Approval, "rejection", json!({"approved": false}), false),
            (choice(false), "choice", json!({"selected_indices": [2]}), true),
            (choice(false), "choice", json!({"selected_indices": [0, 2]}), false),
            (choice(false), "choice", json!({"selected_indices": []}), false),
            (choice(true), "choice", json!({"selected_indices": [0, 2]}), true),
            (choice(true), "choice", json!({"selected_indices": [9]}), false),
            (choice(true), "choice", json!({"selected_indices": [-1]}), false),
            (choice(true), "choice", json!({"selected_indices": [0, 0]}), false),
            (choice(true), "choice", json!({"selected_indices": [1.5]}), false),
            (InteractionKind::Input, "input", json!({"text": ""}), true),
            (InteractionKind::Input, "input", json!({"text": 5}), false),
        ] {
            let (interaction, _replies) = Interaction::new(kind);
            let outcome = interaction.respond(response_type, &data);
            match outcome {
                Ok(_) => assert!(good, "{data}"),
                Err(error) => {
                    assert_eq!((error.code, good), (Code::ResponseValidationFailed, false), "{data}");
                    assert!(interaction.close(CloseReason::Expired), "it stays open");
                }
            }
        }
    }

    #[test]
    fn only_the_first_answer_counts() {
        let (interaction, mut replies) = Interaction::new(InteractionKind::Approval);
        let _result = interaction.respond("approval", &json!({"approved": false, "comment": "no"})).unwrap();
        let error = interaction.respond("approval", &json!({"approved": true})).unwrap_err();
        assert_eq!(error.code, Code::InteractionResponded);
        assert!(!interaction.close(CloseReason::Expired));
        let reply = replies.try_recv().unwrap().reply;
        assert_eq!(reply, Reply::Refused { comment: Some("no".to_owned()) });

        let (late, _replies) = Interaction::new(InteractionKind::Approval);
        late.close(CloseReason::Expired);
        let error = late.respond("approval", &json!({"approved": true})).unwrap_err();
        assert_eq!(error.data.unwrap()["status"], "expired");
    }
}
