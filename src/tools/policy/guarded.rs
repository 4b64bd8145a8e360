//! Files that a rule allows only if it names exactly that file.

use crate::tools::{
    InnerPath, Workspace,
    protected::{self, Access},
    workspace::Location,
};

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
