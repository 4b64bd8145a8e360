//! `write_file`: creates a file or replaces its whole content.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    args, help, outcome,
    target_file::{TargetError, TargetFile},
};
use crate::{
    core::{Cancel, ToolDef, ToolOutcome},
    tools::{Proposal, Tool, WorkDir, Workspace},
};

pub(super) struct WriteFile {
    /// The maximum size of the new content and of the file that it replaces, in bytes.
    pub limit: u64,
}

impl Tool for WriteFile {
    fn def(&self) -> ToolDef {
        ToolDef {
            create_only: true,
            name: "write_file".into(),
            description: "Create a file, or replace all of it. Missing directories are made. To change \
                          part of a file use edit_file."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the working directory"},
                    "content": {"type": "string", "description": "The whole file"},
                },
                "required": ["path", "content"],
            }),
        }
    }

    fn propose(&self, args: &Value, work_dir: &WorkDir) -> Proposal {
        let proposal = work_dir.run_sandboxed(|workspace| match self.target(args, workspace) {
            Ok((target, content)) => target.proposal(Ok(&content)),
            Err(error) => error.proposal(),
        });
        work_dir.with_undo_note(proposal)
    }

    fn help(&self, args: &Value, work_dir: &WorkDir, _: u32) -> String {
        work_dir.run_sandboxed(|workspace| match self.target(args, workspace) {
            Ok((target, _)) => match target.old() {
                Some(content) if help::is_small(content) => help::excerpt(workspace, target.path(), content),
                _ => String::new(),
            },
            Err(_) => String::new(),
        })
    }

    fn execute(&self, args: &Value, work_dir: &WorkDir, approved: &Proposal, _: &Cancel) -> ToolOutcome {
        outcome(work_dir.change_sandboxed(|workspace, record| {
            let (target, content) = self.target(args, workspace)?;
            let path = target.path();
            if target.old() == Some(content.as_bytes()) {
                return Ok(format!("no change: {path} already has this content"));
            }
            target.write(&content, approved, record)?;
            Ok(format!("Successfully wrote {} bytes to {path}", content.len()))
        }))
    }
}

impl WriteFile {
    fn target<'a>(
        &self,
        args: &'a Value,
        workspace: &'a Workspace,
    ) -> Result<(TargetFile<'a>, Cow<'a, str>), TargetError> {
        let path = args::text(args, "path")?;
        let content = args::text(args, "content")?;
        if content.len() as u64 > self.limit {
            let (bytes, limit) = (content.len(), self.limit);
            return Err(format!("the content has {bytes} bytes, more than the limit of {limit}").into());
        }
        let target = TargetFile::find(workspace, path, self.limit)?;
        if args::switch(args, "create_only") && target.old().is_some() {
            let path = target.path();
            return Err(format!("{path} exists already, and this call may only create it").into());
        }
        if let (None, Some(part)) = (target.old(), glob_part(path)) {
            return Err(format!("`{path}` is a pattern, because it has `{part}`; name one file").into());
        }
        let content = with_final_newline(content, target.old());
        Ok((target, content))
    }
}

/// Returns the part of the path that names of files do not have and patterns do. Brackets alone are names in some web
/// projects: `[id].tsx`.
fn glob_part(path: &str) -> Option<&'static str> {
    ["*", "?", "[!", "[a-z", "[A-Z", "[0-9"].into_iter().find(|part| path.contains(part))
}

/// Returns the content with the newline at the end that the file had. A model often leaves it out.
fn with_final_newline<'a>(content: &'a str, old: Option<&[u8]>) -> Cow<'a, str> {
    let old = old.unwrap_or_default();
    if content.is_empty() || content.ends_with('\n') || !old.ends_with(b"\n") {
        return Cow::Borrowed(content);
    }
    let crlf = old.ends_with(b"\r\n") && !content.replace("\r\n", "").contains('\n');
    Cow::Owned(format!("{content}{}", if crlf { "\r\n" } else { "\n" }))
}
