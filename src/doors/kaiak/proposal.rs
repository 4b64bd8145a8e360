//! A change of a file as an editor is shown it. Pure.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    core::{ToolFailureKind, ToolOutcome},
    tools::Change,
};

use super::{
    convert::StreamError,
    error::{Code, RpcError},
};

/// The largest file, before and after, in bytes. Source: the seed's "Maximum 1MB per file".
pub(super) const MAX_FILE: u64 = 1024 * 1024;

/// The largest message, in bytes. Source: the seed's "Maximum 1MB per message".
pub(super) const MAX_MESSAGE: usize = 1024 * 1024;

/// What the message adds to its content: ids, a number, a time.
const ENVELOPE: usize = 2048;

/// A change that the user decides on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    pub id: String,
    pub path: String,
    pub question: String,
    pub content: Value,
}

impl Proposal {
    /// `about` says why, in a few words.
    ///
    /// # Errors
    ///
    /// What cannot be shown in whole is not proposed.
    pub(super) fn new(change: &Change, about: &str, caution: Option<&str>) -> Result<Self, StreamError> {
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
            Some(caution) => format!("{about} (look closely: {caution})"),
            None => about.to_owned(),
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

    /// The answer to an approval whose write did not happen.
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
    use super::*;
    use crate::tools::FileError;

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
    fn what_cannot_be_shown_is_not_proposed() {
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
    fn why_nothing_was_written_is_told() {
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
