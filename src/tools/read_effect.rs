//! Decides whether a call only reads what a person would show without a thought.

use super::{
    Effect, InnerPath, Workspace,
    protected::{self, Access},
};

/// Returns [`Effect::Reads`], or [`Effect::Unknown`] if a person should be asked before the model reads the file.
pub(super) fn of_file(workspace: &Workspace, path: &InnerPath) -> Effect {
    let Ok(location) = workspace.locate(path) else { return Effect::Unknown };
    let asks = protected::caution(workspace, path, &location, Access::UnapprovedRead).is_some()
        || [path.as_str(), &location.real_path()]
            .into_iter()
            .any(|path| protected::hidden_character_caution(path).is_some());
    if asks { Effect::Unknown } else { Effect::Reads }
}

/// Returns [`Effect::Reads`], or [`Effect::Unknown`] if the whole working directory is one that holds secrets or
/// settings, such as `~/.ssh`.
pub(super) fn of_directory(workspace: &Workspace) -> Effect {
    if protected::is_protected_root(workspace) { Effect::Unknown } else { Effect::Reads }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::WorkDir;

    #[test]
    fn secrets_and_settings_are_not_read_without_a_question() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".env"), "KEY=1").unwrap();
        std::os::unix::fs::symlink(".env", dir.path().join("notes.txt")).unwrap();
        let work_dir = WorkDir::without_home(dir.path()).unwrap();
        let effect = |path: &str| of_file(work_dir.workspace(), &work_dir.workspace().path(path).unwrap());
        for path in [
            ".env",
            "notes.txt",
            "sub/.env.local",
            "prod.env",
            ".git/config",
            ".ssh/config",
            "id_rsa",
            "deploy/id_ed25519.pub",
            "tls/server.key",
            "cert.PEM",
            "Credentials.json",
            "secrets.yaml",
            ".netrc",
            ".git-credentials",
            "terraform.tfstate",
            "token.txt",
            "etc/shadow",
            ".github/workflows/ci.yml",
        ] {
            assert_eq!(effect(path), Effect::Unknown, "{path}");
        }
        for path in
            ["README.md", "src/main.rs", "src/token_counter.rs", "key.rs", "secretary.txt", "missing/x"]
        {
            assert_eq!(effect(path), Effect::Reads, "{path}");
        }
    }

    #[test]
    fn nothing_is_read_without_a_question_in_a_directory_of_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join(".ssh");
        std::fs::create_dir(&keys).unwrap();
        let work_dir = WorkDir::without_home(&keys).unwrap();
        assert_eq!(of_directory(work_dir.workspace()), Effect::Unknown);
    }
}
