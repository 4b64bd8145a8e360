//! `edit_file`: one text in place of another.

use serde_json::{Value, json};

use super::{
    args, not_found_hint, outcome,
    target_file::{TargetError, TargetFile},
};
use crate::{
    core::{Cancel, ToolDef, ToolOutcome},
    tools::{Proposal, Tool, WorkDir, Workspace},
};

/// Most line numbers that an error lists.
const MAX_LISTED: usize = 10;

pub struct EditFile {
    /// Largest file, before and after, in bytes.
    pub limit: u64,
}

/// A replacement that can be made.
#[derive(Debug)]
struct Replacement {
    content: String,
    done: String,
}

/// Which of the places where the text is found are meant.
#[derive(Clone, Copy)]
enum Occurrence {
    /// The only one there is.
    Only,
    All,
    /// Counted from 1, never 0.
    Nth(usize),
}

impl Tool for EditFile {
    fn def(&self) -> ToolDef {
        ToolDef {
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

    fn propose(&self, args: &Value, place: &WorkDir) -> Proposal {
        place.run_sandboxed(|workspace| match self.target(args, workspace) {
            Ok(target) => match self.replacement(args, &target) {
                Ok(edited) => target.proposal(Ok(&edited.content)),
                Err(why) => target.proposal(Err(&why)),
            },
            Err(none) => none.proposal(),
        })
    }

    fn execute(&self, args: &Value, place: &WorkDir, approved: &Proposal, _: &Cancel) -> ToolOutcome {
        outcome(place.run_sandboxed(|workspace| {
            let target = self.target(args, workspace).map_err(|none| none.message())?;
            // Before the edit is made again: what no longer fits because the file changed should say so.
            target.check_unchanged(approved).map_err(|e| e.message())?;
            let edited = self.replacement(args, &target)?;
            if target.old() == Some(edited.content.as_bytes()) {
                return Ok(format!("no change: old_str and new_str are the same in {}", target.path()));
            }
            target.write(&edited.content, approved).map_err(|e| e.message())?;
            Ok(edited.done)
        }))
    }
}

impl EditFile {
    fn target<'a>(&self, args: &Value, workspace: &'a Workspace) -> Result<TargetFile<'a>, TargetError> {
        let path = args::text(args, "path")?;
        let target = TargetFile::find(workspace, path, self.limit)?;
        match target.old() {
            Some(_) => Ok(target),
            None => Err(format!("file does not exist: {}", target.path()).into()),
        }
    }

    fn replacement(&self, args: &Value, target: &TargetFile<'_>) -> Result<Replacement, String> {
        let (old, new) = (args::text(args, "old_str")?, args::text(args, "new_str")?);
        let path = target.path();
        let content = std::str::from_utf8(target.old().unwrap_or_default())
            .ok()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| format!("{path} is not UTF-8 text and cannot be edited"))?;
        let which = match args::number(args, "occurrence") {
            Some(0) => Occurrence::All,
            None if args::switch(args, "replace_all") => Occurrence::All,
            None => Occurrence::Only,
            Some(n) => Occurrence::Nth(
                usize::try_from(n).map_err(|_| "occurrence must be 0 or more; 0 replaces all".to_owned())?,
            ),
        };
        replace(content, old, new, which, path.as_str(), self.limit)
    }
}

fn replace(
    content: &str,
    old: &str,
    new: &str,
    which: Occurrence,
    path: &str,
    limit: u64,
) -> Result<Replacement, String> {
    if old.is_empty() {
        return Err("old_str is empty; to make or replace a whole file use write_file".to_owned());
    }
    let count = content.matches(old).count();
    let chosen = match which {
        _ if count == 0 => {
            return Err(format!(
                "old_str not found in {path}{}",
                not_found_hint::not_found_hint(content, old)
            ));
        }
        Occurrence::Only if count > 1 => {
            let lines = line_numbers_of(content, old, count);
            return Err(format!(
                "old_str is {count} times in {path}, at lines {lines}; add lines around it until it is \
                 unique, or give occurrence (1 to {count}, or 0 for all)"
            ));
        }
        Occurrence::Only | Occurrence::All => 1..=count,
        Occurrence::Nth(n) if n <= count => n..=n,
        Occurrence::Nth(n) => {
            return Err(format!("occurrence {n} of old_str not found (only {count} occurrences exist)"));
        }
    };
    let times = chosen.clone().count();
    // Before the memory is spent: a short old_str and a long new_str make much out of little.
    let kept = (content.len() - times * old.len()) as u64;
    let bytes = kept.saturating_add((times as u64).saturating_mul(new.len() as u64));
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
    let message = match which {
        Occurrence::Nth(n) => format!("Replaced occurrence {n} in {path}"),
        Occurrence::Only | Occurrence::All => format!("Replaced {times} occurrence(s) in {path}"),
    };
    Ok(Replacement { content: result, done: message })
}

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
