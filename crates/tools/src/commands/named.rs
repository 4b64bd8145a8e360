//! The protected names that a command line itself has in it, so that whoever approves it sees them.

use std::path::Path;

use kontekst_store::journal::FileState;

use super::line::{CommandLine, SimpleCommand};

use crate::{WorkDir, protected};

/// Returns the protected paths that the line names and that do not exist, or that it has to change, relative to the working
/// directory, with the reasons for which they are protected as the rests of sentences. A path that only comes about in the
/// shell, as in `.env${x}`, is not among them.
pub(super) fn new_names(line: &CommandLine, work_dir: &WorkDir) -> Vec<(String, &'static str)> {
    let workspace = work_dir.workspace();
    let mut found: Vec<(String, &'static str)> = Vec::new();
    for word in line.commands.iter().flat_map(words) {
        // The value of an option such as `--output=.envrc`.
        let value =
            if word.starts_with('-') { word.split_once('=').map_or("", |(_, value)| value) } else { word };
        let Ok(path) = workspace.path(value.trim_end_matches('/')) else { continue };
        let Some(reason) = protected::reason(workspace, Path::new(path.as_str())) else { continue };
        let place = workspace.place(Path::new(path.as_str()));
        let is_new = match place.map(|place| place.map(|place| place.glance())) {
            Ok(None) => true,
            Ok(Some(Ok(found))) => found.state == FileState::Missing,
            Ok(Some(Err(_))) | Err(_) => false,
        };
        if is_new && found.iter().all(|(known, _)| known != path.as_str()) {
            found.push((path.to_string(), reason));
        }
    }
    for name in line
        .commands
        .iter()
        .filter_map(|command| command.words.as_ref())
        .flat_map(|words| changed_by_git(words))
    {
        let reason = protected::reason(workspace, Path::new(name));
        if found.iter().all(|(known, _)| known != name) {
            found.extend(reason.map(|reason| ((*name).to_owned(), reason)));
        }
    }
    found
}

/// Returns the protected files that a `git submodule` changes, which does nothing where it may not.
fn changed_by_git(words: &[String]) -> &'static [&'static str] {
    const BOTH: &[&str] = &[".gitmodules", ".git/config"];
    let mut words = words.iter().map(String::as_str);
    if words.next() != Some("git") {
        return &[];
    }
    let mut arguments = words.skip_while(|word| *word != "submodule").skip(1);
    let action = arguments.find(|word| !word.starts_with('-'));
    match action {
        Some("add" | "set-url" | "set-branch") => BOTH,
        Some("init" | "deinit" | "sync") => &BOTH[1..],
        Some("update") if arguments.any(|word| word == "--init") => &BOTH[1..],
        _ => &[],
    }
}

/// Returns the arguments of the command and the files into which its output goes.
fn words(command: &SimpleCommand) -> impl Iterator<Item = &str> {
    let arguments = command.words.iter().flat_map(|words| words.iter().skip(1));
    arguments.chain(&command.written).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::line::read, *};

    #[test]
    fn protected_names_that_a_line_would_make_are_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".env"), "").unwrap();
        let work_dir = WorkDir::without_home(dir.path()).unwrap();
        let root = work_dir.workspace().absolute_names()[0].clone();
        let absolute = format!("touch '{root}/CLAUDE.md'");
        for (line, expect) in [
            ("echo x > .envrc", &[".envrc"][..]),
            ("cat <<E > .envrc\nx\nE", &[".envrc"]),
            ("cp a ./sub/../.npmrc && mkdir .vscode/", &[".npmrc", ".vscode"]),
            (
                "mkdir -p .github/workflows; touch .github/workflows/ci.yml",
                &[".github/workflows", ".github/workflows/ci.yml"],
            ),
            (absolute.as_str(), &["CLAUDE.md"]),
            ("openssl genrsa --out=test.key", &["test.key"]),
            ("git -c a.b=c submodule --quiet add --name x ../x", &[".gitmodules", ".git/config"]),
            ("cd x && git submodule update --recursive --init", &[".git/config"]),
            ("git submodule update; git log submodule; git submodule status --init", &[]),
            ("cat .env > out", &[]),
            ("cp x .env", &[]),
            ("cp x $HOME/.envrc; touch '.env*x/y' src/main.rs Makefile; mkdir -p .github ..", &[]),
        ] {
            let found = new_names(&read(line).unwrap(), &work_dir);
            let names: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
            assert_eq!(names, expect, "{line}");
        }
    }
}
