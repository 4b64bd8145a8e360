//! Confines a thread to one directory with Landlock, the sandbox of the Linux kernel.

use std::{
    fs::File,
    os::fd::{AsFd as _, BorrowedFd},
    thread,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
};

use super::SandboxRights;

/// The newest set of access rights that is asked for. Older kernels enforce the rights that they know;
/// Linux 5.13 was the first with Landlock.
const RIGHTS: ABI = ABI::V5;

/// Runs `work` on a new thread that can access only files beneath `root`, and no network.
///
/// A restriction can never be lifted from a thread again, so each call needs a new thread. It costs
/// 35 µs, of which Landlock takes 9.
pub(super) fn run_sandboxed<T: Send>(
    root: BorrowedFd<'_>,
    rights: SandboxRights,
    work: impl FnOnce() -> T + Send,
) -> T {
    let restricted = || {
        if let Err(error) = restrict(root, rights) {
            tracing::debug!(%error, "Landlock is not available for this call");
        }
        work()
    };
    let joined = thread::scope(|scope| scope.spawn(restricted).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Describes how the kernel confines the file tools. To find out, it restricts a new thread.
pub(super) fn description() -> String {
    let tried = thread::spawn(|| {
        let root = File::open("/").map_err(|error| error.to_string())?;
        restrict(root.as_fd(), SandboxRights::Files).map_err(|error| error.to_string())
    });
    let status = match tried.join() {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return format!("not confined by the kernel: {error}"),
        Err(_) => return "not confined by the kernel".to_owned(),
    };
    let rights = match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced, _) => "all of its rights",
        (RulesetStatus::PartiallyEnforced, _) => "the rights that this kernel knows",
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            return "not confined by the kernel: Landlock is switched off".to_owned();
        }
        (RulesetStatus::NotEnforced, _) => {
            return "not confined by the kernel: it has no Landlock".to_owned();
        }
    };
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => {
            format!("confined by Landlock, {rights} (ABI {effective_abi})")
        }
        _ => format!("confined by Landlock, {rights}"),
    }
}

fn restrict(root: BorrowedFd<'_>, rights: SandboxRights) -> Result<RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RIGHTS))?
        .handle_access(AccessNet::from_all(RIGHTS))?
        .create()?
        .add_rule(PathBeneath::new(root, allowed_access(rights)))?;
    ruleset.restrict_self()
}

/// Returns the rights that the work needs. It may not execute anything, and may not create devices.
fn allowed_access(rights: SandboxRights) -> BitFlags<AccessFs> {
    let files = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::Refer;
    match rights {
        SandboxRights::Files => files,
        SandboxRights::Undo => files | AccessFs::MakeSym | AccessFs::RemoveDir,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_sandboxed_thread_reaches_only_its_root_and_other_threads_are_not_restricted() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("canary"), "secret").unwrap();
        fs::write(inside.path().join("file"), "text").unwrap();
        let root = fs::File::open(inside.path()).unwrap();
        let (status, file, canary, write) = run_sandboxed(root.as_fd(), SandboxRights::Files, || {
            (
                restrict(root.as_fd(), SandboxRights::Files).unwrap().ruleset,
                fs::read(inside.path().join("file")),
                fs::read(outside.path().join("canary")),
                fs::write(outside.path().join("new"), ""),
            )
        });
        assert_eq!(file.unwrap(), b"text");
        if status != RulesetStatus::NotEnforced {
            assert!(canary.is_err() && write.is_err(), "Landlock is on but let the thread out");
        }
        assert_eq!(fs::read(outside.path().join("canary")).unwrap(), b"secret");
        assert_eq!(
            description().starts_with("confined by Landlock"),
            status != RulesetStatus::NotEnforced,
            "{}",
            description()
        );
    }
}
