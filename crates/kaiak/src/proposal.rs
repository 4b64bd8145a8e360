//! A change of a file, as an editor shows it to the user. Pure.

use serde_json::{Value, json};
use uuid::Uuid;

use kontekst_core::{ToolFailureKind, ToolOutcome};
use kontekst_tools::Change;

use super::{
    convert::StreamError,
    error::{Code, RpcError},
};

/// The largest file, before and after the change, in bytes. Source: the seed's "Maximum 1MB per file".
pub(super) const MAX_FILE: u64 = 1024 * 1024;

/// The largest message, in bytes. Source: the seed's "Maximum 1MB per message".
pub(super) const MAX_MESSAGE: usize = 1024 * 1024;

/// The most bytes that a message adds to its content: ids, a number and a time.
const ENVELOPE: usize = 2048;

/// A change that the user decides on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    pub(crate) id: String,
    pub(crate) path: String,
    /// The question for the user.
    pub(crate) question: String,
    /// The content of `stream/file_modification`.
    pub(crate) content: Value,
}

impl Proposal {
    /// Makes a proposal of `change`. `reason` describes in a few words why the file is changed.
    ///
    /// # Errors
    ///
    /// A [`StreamError`] for a change that cannot be shown as a whole or that is never allowed.
    pub(super) fn new(change: &Change, reason: &str, caution: Option<&str>) -> Result<Self, StreamError> {
        let path = &change.path;
        let details = json!({"file_path": path});
        let refused = |error_code, code, message: String| {
            StreamError::recoverable(error_code, code, message, details.clone())
        };
        if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
            let message = format!("{path} is internal to git and is not changed");
            return Err(refused("PROPOSAL_REFUSED", Code::FileModificationFailed, message));
        }
        let old = change.old.as_deref().unwrap_or_default();
        let bytes = old.len().max(change.new.len()) as u64;
        if bytes > MAX_FILE {
            let message = format!("{path} has {bytes} bytes, more than the limit of {MAX_FILE}");
            return Err(refused("FILE_TOO_LARGE", Code::ResourceExhausted, message));
        }
        let Ok(old) = std::str::from_utf8(old) else {
            let message = format!("{path} is not UTF-8 text");
            return Err(refused("NOT_TEXT", Code::FileModificationFailed, message));
        };
        let (change_type, question) = match change.old {
            Some(_) => ("edit", format!("Should I apply this change to {path}?")),
            None => ("create", format!("Should I create {path}?")),
        };
        let description = match caution {
            Some(caution) => format!("{reason} (look closely: {caution})"),
            None => reason.to_owned(),
        };
        let content = json!({
            "file_path": path, "change_type": change_type, "description": description,
            "original_content": old, "proposed_content": change.new,
        });
        if content.to_string().len() + ENVELOPE > MAX_MESSAGE {
            let message =
                format!("the change of {path} does not fit into one message of {MAX_MESSAGE} bytes");
            return Err(refused("STREAM_MESSAGE_TOO_LARGE", Code::ResourceExhausted, message));
        }
        Ok(Self { id: format!("prop-{}", Uuid::new_v4()), path: path.clone(), question, content })
    }

    /// Returns the summary of the system events about this proposal.
    pub(super) fn summary(&self) -> Value {
        json!({"proposal_id": self.id, "file_path": self.path})
    }

    /// Returns the answer to an approval whose write failed with `outcome`.
    pub(super) fn write_error(&self, outcome: &ToolOutcome) -> RpcError {
        let reason = match outcome.failure_kind() {
            Some(ToolFailureKind::Stale | ToolFailureKind::NotFound) => "stale",
            Some(ToolFailureKind::OutsideWorkspace) => "outside_workspace",
            _ => "write_failed",
        };
        Code::FileModificationFailed.with(json!({
            "proposal_id": self.id, "file_path": self.path, "reason": reason, "details": outcome.text(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use kontekst_tools::FileError;

    use super::*;

    fn change(path: &str, old: Option<&[u8]>, new: &str) -> Change {
        Change { path: path.to_owned(), old: old.map(<[u8]>::to_vec), new: new.to_owned() }
    }

    #[test]
    fn a_proposal_has_both_contents() {
        let edit = Proposal::new(&change("a.rs", Some(b"old\r\n"), "new"), "d", Some("it runs")).unwrap();
        assert_eq!(
            edit.content,
            json!({"file_path": "a.rs", "change_type": "edit", "description": "d (look closely: it runs)",
                "original_content": "old\r\n", "proposed_content": "new"})
        );
        let create = Proposal::new(&change("b.rs", None, "x"), "d", None).unwrap();
        assert_eq!(
            (&create.content["change_type"], create.question.as_str()),
            (&json!("create"), "Should I create b.rs?")
        );
    }

    #[test]
    fn a_change_that_cannot_be_shown_is_not_proposed() {
        let large = "x".repeat(1024 * 1024 + 1);
        let half = "x".repeat(600_000);
        for (change, error_code) in [
            (change(".git/config", None, "x"), "PROPOSAL_REFUSED"),
            (change("sub/.GIT/hooks/pre-commit", None, "x"), "PROPOSAL_REFUSED"),
            (change("a", None, &large), "FILE_TOO_LARGE"),
            (change("a", Some(large.as_bytes()), ""), "FILE_TOO_LARGE"),
            (change("a", Some(b"\xff"), "x"), "NOT_TEXT"),
            (change("a", Some(half.as_bytes()), &half), "STREAM_MESSAGE_TOO_LARGE"),
        ] {
            assert_eq!(Proposal::new(&change, "d", None).unwrap_err().error_code, error_code);
        }
    }

    #[test]
    fn a_failed_write_is_answered_with_its_reason() {
        let proposal = Proposal::new(&change("a", Some(b"x"), "y"), "d", None).unwrap();
        let reason = |error: FileError| {
            let outcome = ToolOutcome::failed(error.failure_kind(), error.message());
            proposal.write_error(&outcome).data.unwrap()["reason"].clone()
        };
        assert_eq!(reason(FileError::Stale("a".into())), "stale");
        assert_eq!(reason(FileError::Missing("a".into())), "stale");
        assert_eq!(reason(FileError::OutsideWorkspace("a".into())), "outside_workspace");
        assert_eq!(reason(FileError::ReadOnly("a".into())), "write_failed");
    }
}
