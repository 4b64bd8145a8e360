//! A question to the user and its one answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::error::{Code, RpcError};

/// The longest text that a user may answer with, in bytes.
const MAX_TEXT: usize = 1024 * 1024;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InteractionKind {
    Approval,
    Choice { options: Vec<String>, multiple: bool },
    Input,
}

/// What the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Approved,
    Refused { comment: Option<String> },
    Chosen(Vec<usize>),
    Text(String),
}

/// A reply, and where to say what came of it.
pub(super) struct SubmittedReply {
    pub reply: Reply,
    pub result_sender: oneshot::Sender<Result<(), RpcError>>,
}

pub(super) struct Interaction {
    pub id: String,
    kind: InteractionKind,
    phase: Mutex<Phase>,
}

enum Phase {
    Pending(oneshot::Sender<SubmittedReply>),
    /// Why nobody can answer any more.
    Closed(CloseReason),
}

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

    /// Reads the answer to such a question.
    ///
    /// # Errors
    ///
    /// Why it is none.
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
                // Before they are looked at one by one.
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
    /// The answer, if one comes, comes through the receiver.
    pub(super) fn new(kind: InteractionKind) -> (Self, oneshot::Receiver<SubmittedReply>) {
        let (sender, receiver) = oneshot::channel();
        let id = format!("int-{}", Uuid::new_v4());
        (Self { id, kind, phase: Mutex::new(Phase::Pending(sender)) }, receiver)
    }

    /// Takes an answer. What came of it is told through the receiver.
    ///
    /// # Errors
    ///
    /// [`Code::InteractionResponded`]; [`Code::ResponseValidationFailed`], which leaves the question open.
    pub(super) fn respond(
        &self,
        response_type: &str,
        data: &Value,
    ) -> Result<oneshot::Receiver<Result<(), RpcError>>, RpcError> {
        let mut phase = self.phase();
        if let Phase::Closed(closed) = &*phase {
            return Err(self.already_closed(*closed));
        }
        let reply = self.kind.read(response_type, data).map_err(|why| {
            Code::ResponseValidationFailed.with(json!({"interaction_id": self.id, "reason": why}))
        })?;
        let Phase::Pending(asker) = std::mem::replace(&mut *phase, Phase::Closed(CloseReason::Responded))
        else {
            unreachable!("looked at above");
        };
        let (done, told) = oneshot::channel();
        match asker.send(SubmittedReply { reply, result_sender: done }) {
            Ok(()) => Ok(told),
            Err(_) => {
                *phase = Phase::Closed(CloseReason::Cancelled);
                Err(self.already_closed(CloseReason::Cancelled))
            }
        }
    }

    /// Closes it; `false` when it was closed already.
    pub(super) fn close(&self, why: CloseReason) -> bool {
        let mut phase = self.phase();
        let was_open = matches!(*phase, Phase::Pending(_));
        if was_open {
            *phase = Phase::Closed(why);
        }
        was_open
    }

    pub(super) fn already_closed(&self, closed: CloseReason) -> RpcError {
        let status = match closed {
            CloseReason::Responded => "responded",
            CloseReason::Expired => "expired",
            CloseReason::Cancelled => "cancelled",
        };
        Code::InteractionResponded.with(json!({"interaction_id": self.id, "status": status}))
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
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
            let (interaction, _asker) = Interaction::new(kind);
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
        let (interaction, mut asker) = Interaction::new(InteractionKind::Approval);
        let _told = interaction.respond("approval", &json!({"approved": false, "comment": "no"})).unwrap();
        let error = interaction.respond("approval", &json!({"approved": true})).unwrap_err();
        assert_eq!(error.code, Code::InteractionResponded);
        assert!(!interaction.close(CloseReason::Expired));
        let reply = asker.try_recv().unwrap().reply;
        assert_eq!(reply, Reply::Refused { comment: Some("no".to_owned()) });

        let (late, _asker) = Interaction::new(InteractionKind::Approval);
        late.close(CloseReason::Expired);
        let error = late.respond("approval", &json!({"approved": true})).unwrap_err();
        assert_eq!(error.data.unwrap()["status"], "expired");
    }
}
