//! `edit_file`: replaces text in a file.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::{
    Failure, args, not_found_hint, outcome,
    target_file::{TargetError, TargetFile},
};
use crate::{
    core::{Cancel, CopyArgument, CopyKind, ToolDef, ToolFailureKind, ToolOutcome},
    tools::{Proposal, Tool, WorkDir, Workspace},
};

/// The maximum number of line numbers that an error lists.
const MAX_LISTED: usize = 10;

pub(super) struct EditFile {
    /// The maximum size of the file before and after the edit, in bytes.
    pub limit: u64,
}

/// The result of a successful replacement.
#[derive(Debug)]
struct Replacement {
    /// The whole new content of the file.
    content: String,
    /// The result of the call, as the model reads it.
    message: String,
}

/// The occurrences of the text that are replaced.
#[derive(Clone, Copy)]
enum Occurrence {
    /// The only occurrence. It is an error if there are more.
    Only,
    All,
    /// One of several, counted from 1.
    Nth(usize),
}

impl Tool for EditFile {
    fn def(&self) -> ToolDef {
        ToolDef {
            copy: vec![
                CopyArgument::new("path", CopyKind::Path),
                CopyArgument::new("old_str", CopyKind::OldText),
                CopyArgument::new("new_str", CopyKind::NewText),
            ],
            name: "edit_file".into(),
            description: "Replace text in a file. old_str must be in the file exactly, spaces and line \
                          breaks included, without the line numbers of read_file, and only once: add \
                          lines around it until it is unique, or give occurrence."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the working directory"},
                    "old_str": {"type": "string", "description": "The text to replace"},
                    "new_str": {"type": "string", "description": "The text to put there"},
                    "occurrence": {"type": "integer", "description": "Which match, from 1; 0 is all"},
                },
                "required": ["path", "old_str", "new_str"],
            }),
        }
    }

    fn propose(&self, args: &Value, work_dir: &WorkDir) -> Proposal {
        work_dir.run_sandboxed(|workspace| match self.target(args, workspace) {
            Ok(target) => match self.replacement(args, &target) {
                Ok(replacement) => target.proposal(Ok(&replacement.content)),
                Err(failure) => target.proposal(Err(&failure.message)),
            },
            Err(error) => error.proposal(),
        })
    }

    fn execute(&self, args: &Value, work_dir: &WorkDir, approved: &Proposal, _: &Cancel) -> ToolOutcome {
        outcome(work_dir.run_sandboxed(|workspace| {
            let target = self.target(args, workspace)?;
            // This comes before the replacement is made again. If the text is no longer found because
            // the file changed, the error must say that the file changed.
            target.check_unchanged(approved)?;
            let replacement = self.replacement(args, &target)?;
            if target.old() == Some(replacement.content.as_bytes()) {
                return Ok(format!("no change: old_str and new_str are the same in {}", target.path()));
            }
            target.write(&replacement.content, approved)?;
            Ok(replacement.message)
        }))
    }
}

impl EditFile {
    fn target<'a>(&self, args: &Value, workspace: &'a Workspace) -> Result<TargetFile<'a>, TargetError> {
        let path = args::text(args, "path")?;
        let target = TargetFile::find(workspace, path, self.limit)?;
        match target.old() {
            Some(_) => Ok(target),
            None => Err(TargetError::Call(Failure {
                kind: ToolFailureKind::NotFound,
                message: format!("file does not exist: {}", target.path()),
            })),
        }
    }

    fn replacement(&self, args: &Value, target: &TargetFile<'_>) -> Result<Replacement, Failure> {
        let old = args::text(args, "old_str")?;
        let new = args::text(args, "new_str")?;
        let path = target.path();
        let content = std::str::from_utf8(target.old().unwrap_or_default())
            .ok()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| Failure::other(format!("{path} is not UTF-8 text and cannot be edited")))?;
        let occurrence = match args::number(args, "occurrence") {
            Some(0) => Occurrence::All,
            None if args::switch(args, "replace_all") => Occurrence::All,
            None => Occurrence::Only,
            Some(n) => Occurrence::Nth(
                usize::try_from(n).map_err(|_| "occurrence must be 0 or more; 0 replaces all".to_owned())?,
            ),
        };
        let chosen = occurrences(content, old, occurrence, path.as_str())?;
        let times = chosen.clone().count();
        let message = match occurrence {
            Occurrence::Nth(n) => format!("Replaced occurrence {n} in {path}"),
            Occurrence::Only | Occurrence::All => format!("Replaced {times} occurrence(s) in {path}"),
        };
        Ok(Replacement { content: replace(content, old, new, &chosen, self.limit)?, message })
    }
}

/// Returns the numbers, from 1, of the occurrences of `old` that are to be replaced.
fn occurrences(
    content: &str,
    old: &str,
    occurrence: Occurrence,
    path: &str,
) -> Result<RangeInclusive<usize>, String> {
    if old.is_empty() {
        return Err("old_str is empty; to make or replace a whole file use write_file".to_owned());
    }
    let count = content.matches(old).count();
    match occurrence {
        _ if count == 0 => {
            let hint = not_found_hint::not_found_hint(content, old);
            Err(format!("old_str not found in {path}{hint}"))
        }
        Occurrence::Only if count > 1 => {
            let lines = line_numbers_of(content, old, count);
            Err(format!(
                "old_str is {count} times in {path}, at lines {lines}; add lines around it until it is \
                 unique, or give occurrence (1 to {count}, or 0 for all)"
            ))
        }
        Occurrence::Only | Occurrence::All => Ok(1..=count),
        Occurrence::Nth(n) if n <= count => Ok(n..=n),
        Occurrence::Nth(n) => {
            Err(format!("occurrence {n} of old_str not found (only {count} occurrences exist)"))
        }
    }
}

/// Returns `content` with `new` in place of the chosen occurrences of `old`.
fn replace(
    content: &str,
    old: &str,
    new: &str,
    chosen: &RangeInclusive<usize>,
    limit: u64,
) -> Result<String, String> {
    let times = chosen.clone().count();
    // The size is checked before any memory is allocated: a short old_str that occurs often and a long
    // new_str can make a very large file out of a small call.
    let unchanged = (content.len() - times * old.len()) as u64;
    let bytes = unchanged.saturating_add((times as u64).saturating_mul(new.len() as u64));
    if bytes > limit {
        return Err(format!("the result would have {bytes} bytes, more than the limit of {limit}"));
    }
    let mut result = String::with_capacity(usize::try_from(bytes).unwrap_or(0));
    let mut from = 0;
    for (number, (at, _)) in (1..).zip(content.match_indices(old)) {
        if chosen.contains(&number) {
            result.push_str(&content[from..at]);
            result.push_str(new);
            from = at + old.len();
        }
    }
    result.push_str(&content[from..]);
    Ok(result)
}

/// Lists the numbers of the lines at which the first occurrences of `old` begin.
fn line_numbers_of(content: &str, old: &str, count: usize) -> String {
    let mut lines = Vec::new();
    let (mut line, mut from) = (1, 0);
    for (at, _) in content.match_indices(old).take(MAX_LISTED) {
        line += content[from..at].matches('\n').count();
        from = at;
        lines.push(line.to_string());
    }
    if count > MAX_LISTED {
        lines.push("…".to_owned());
    }
    lines.join(", ")
}
