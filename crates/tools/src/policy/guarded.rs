//! Files that a rule allows only if it names exactly that file.

use kontekst_core::ToolFailureKind;

use crate::{
    FileError, InnerPath, WorkDir, Workspace,
    protected::{self, Access},
    workspace::Location,
};

/// Returns why a person is asked about a call of `tool` for the file of this path, if its name is the reason.
///
/// # Errors
///
/// A [`FileError`] if the path leads out of the working directory, where no tool reaches a file.
pub fn caution_of_path(tool: &str, path: &str, work_dir: &WorkDir) -> Result<Option<String>, FileError> {
    let access = match tool {
        "read_file" => Some(Access::UnapprovedRead),
        "edit_file" | "write_file" => Some(Access::Write),
        _ => None,
    };
    let found = work_dir.run_sandboxed(|workspace| {
        let path = workspace.path(path)?;
        let location = workspace.locate(&path)?;
        Ok(access.and_then(|access| protected::caution(workspace, &path, &location, access)))
    });
    match found {
        Err(error) if is_outside(&error) => Err(error),
        Err(_) => Ok(None),
        Ok(caution) => Ok(caution),
    }
}

fn is_outside(error: &FileError) -> bool {
    error.failure_kind() == ToolFailureKind::OutsideWorkspace
}

/// Says whether a person must approve a call although a rule allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guarded {
    No,
    /// Only a rule that names exactly this file covers it. The caution is that of a protected name, if there is one.
    Protected(Option<String>),
    /// It is a file of kontekst itself.
    Own,
}

impl Guarded {
    pub(super) fn of(tool: &str, workspace: &Workspace, path: &InnerPath, location: &Location) -> Self {
        if workspace.is_own(location).unwrap_or(true) {
            return Self::Own;
        }
        let caution = |access| protected::caution(workspace, path, location, access);
        match tool {
            "read_file" => match caution(Access::Read) {
                Some(caution) => Self::Protected(Some(caution)),
                None if caution(Access::UnapprovedRead).is_some() => Self::Protected(None),
                None => Self::No,
            },
            _ => caution(Access::Write).map_or(Self::No, |caution| Self::Protected(Some(caution))),
        }
    }

    /// Returns why a rule does not count.
    pub(super) fn note(self, path: &InnerPath, is_exact: bool) -> String {
        match self {
            Self::Own => format!("{path} is in the data directory of kontekst, which no rule allows"),
            _ if is_exact => format!("{path} leads to a protected file of another name"),
            _ => format!("{path} is a protected name, which only a rule with exactly this path allows"),
        }
    }
}
