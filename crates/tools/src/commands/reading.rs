//! Lines that need no question, because they only read what `read_file` and `search_files` would show without one.
//!
//! That they change nothing is for the sandbox to enforce: their working directory is read-only. What they read is judged
//! here, before they are proposed and again before they run.

use std::path::{Path, PathBuf};

use memchr::memmem;

use super::{known::Kind, line::CommandLine, rules};
use crate::{
    Effect, FileError, InnerPath, Workspace,
    protected::{holds_secrets, withheld_files},
    read_effect,
};

/// A line that needs no question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FreeReading {
    /// The files and directories that it must not read, relative to the working directory.
    pub(crate) hidden: Vec<PathBuf>,
}

/// The directories of a tree that a command reads with everything in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    No,
    /// Links in them are not followed.
    Tree,
    /// They may lead anywhere.
    Links,
}

/// Returns `None` for a line about which a person should be asked.
pub(super) fn free(line: &CommandLine, workspace: &Workspace) -> Option<FreeReading> {
    if !line.is_plain || read_effect::of_directory(workspace) != Effect::Reads {
        return None;
    }
    workspace.absolute_names().last()?;
    let mut reader = Reader { workspace, dirs: vec![String::new()] };
    let (mut searches, mut uses_git, mut shows_tracked) = (false, false, false);
    for command in &line.commands {
        let kind = rules::reading(command)?;
        let (name, arguments) = command.words.as_deref()?.split_first()?;
        let search = search_of(name, arguments);
        let is_git = name == "git";
        let named = arguments.iter().flat_map(|word| named_paths(word, is_git));
        let is_free =
            named.chain(command.input.iter().map(String::as_str)).all(|path| reader.is_free(path, is_git));
        if !is_free || search == Search::Links || (name == "diff" && reader.names_directory(arguments)) {
            return None;
        }
        if name == "cd" {
            reader.enter(arguments)?;
        }
        searches |= search == Search::Tree;
        uses_git |= is_git;
        shows_tracked |= kind == Kind::ShowsTracked;
    }
    // git finds its repository above the directory, and needs what a search must not see.
    let is_own_repository = || reader.dirs.len() == 1 && workspace.open_real_dir(Path::new(".git")).is_ok();
    if uses_git && (searches || !is_own_repository()) {
        return None;
    }
    let withheld = if searches || shows_tracked { withheld_files(workspace)? } else { Vec::new() };
    if shows_tracked && tracks_secrets(workspace, &withheld) {
        return None;
    }
    Some(FreeReading { hidden: if searches { withheld } else { Vec::new() } })
}

/// Returns what a command reads besides the files that it names.
fn search_of(name: &str, arguments: &[String]) -> Search {
    let has_letter = |letters: &[char]| {
        let is_group = |word: &&String| word.starts_with('-') && !word.starts_with("--");
        arguments.iter().filter(is_group).any(|word| word.contains(letters))
    };
    let has_option = |start: &str| arguments.iter().any(|word| word.starts_with(start));
    match name {
        "rg" => Search::Tree,
        "find" | "ls" | "du" if has_letter(&['L']) || has_option("--d") => Search::Links,
        "grep" | "egrep" | "fgrep" if has_letter(&['R', 'D', 'd']) || has_option("--d") => Search::Links,
        "diff" if has_letter(&['r']) || has_option("--r") => Search::Links,
        "grep" | "egrep" | "fgrep" if has_letter(&['r']) || has_option("--r") => Search::Tree,
        _ => Search::No,
    }
}

/// Returns all parts of an argument that may be the path of a file, at whatever letter of a group of options it begins.
fn named_paths(word: &str, is_git: bool) -> Vec<&str> {
    let mut paths: Vec<&str> = match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(option), _) => option.split_once('=').map(|(_, value)| value).into_iter().collect(),
        (None, Some(group)) => group.char_indices().skip(1).map(|(at, _)| &group[at..]).collect(),
        (None, None) => vec![word],
    };
    if is_git {
        // `HEAD:path`, `:(top)path` and `:!path`.
        let after_colon = paths.iter().filter_map(|path| path.rsplit_once(':').map(|(_, path)| path));
        let inner: Vec<&str> = after_colon
            .map(|path| path.rsplit(')').next().unwrap_or(path).trim_start_matches(['!', '^', '/']))
            .collect();
        paths.extend(inner);
    }
    paths.retain(|path| !path.is_empty());
    paths
}

/// The place that a path of a line leads to.
enum Target {
    /// The working directory itself.
    Root,
    Inside(InnerPath),
    /// Somewhere else, or it is no path.
    Outside,
}

struct Reader<'a> {
    workspace: &'a Workspace,
    /// The directories in which a command of the line may be, relative to the working directory.
    dirs: Vec<String>,
}

impl Reader<'_> {
    fn target(&self, dir: &str, path: &str) -> Target {
        // The kernel does not go back the way on which it came to a directory behind a link.
        if path.split('/').any(|name| name == "..") {
            return Target::Outside;
        }
        let joined =
            if dir.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("{dir}/{path}") };
        match self.workspace.path(joined.trim_end_matches('/')) {
            Ok(path) => Target::Inside(path),
            Err(FileError::Directory(_)) => Target::Root,
            Err(_) => Target::Outside,
        }
    }

    /// Returns true if a person need not be asked before the file is shown, if it is one. With `in_history`, its name
    /// counts also where there is no such file now.
    fn is_free(&self, path: &str, in_history: bool) -> bool {
        path == "/dev/null"
            || self.dirs.iter().all(|dir| match self.target(dir, path) {
                Target::Root => true,
                Target::Outside => !self.may_exist(dir, path),
                Target::Inside(path) => {
                    let may_exist = in_history || self.may_exist("", path.as_str());
                    !may_exist || read_effect::of_file(self.workspace, &path) == Effect::Reads
                }
            })
    }

    /// Returns false if it is certain that there is nothing at the path.
    fn may_exist(&self, dir: &str, path: &str) -> bool {
        use std::io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        let Some(root) = self.workspace.absolute_names().last() else { return true };
        let found = Path::new(root).join(dir).join(path).symlink_metadata();
        !found.is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory | InvalidFilename))
    }

    fn names_directory(&self, arguments: &[String]) -> bool {
        let is_directory = |dir: &String, path: &String| match self.target(dir, path) {
            Target::Inside(path) => self.workspace.open_dir(path.as_str()).is_ok(),
            Target::Root | Target::Outside => true,
        };
        let mut operands = arguments.iter().filter(|word| !word.starts_with('-'));
        operands.any(|path| self.dirs.iter().any(|dir| is_directory(dir, path)))
    }

    /// Follows a `cd`. `None` if it is not known where it leads to.
    fn enter(&mut self, arguments: &[String]) -> Option<()> {
        let [path] = arguments else { return None };
        if path.starts_with('-') {
            return None;
        }
        for dir in self.dirs.clone() {
            let entered = match self.target(&dir, path) {
                Target::Root => String::new(),
                Target::Inside(path) => path.as_str().to_owned(),
                Target::Outside => return None,
            };
            if !self.dirs.contains(&entered) {
                self.dirs.push(entered);
            }
        }
        Some(())
    }
}

/// Returns true if git may show the content of one of the files because it tracks it.
fn tracks_secrets(workspace: &Workspace, withheld: &[PathBuf]) -> bool {
    let secret = |path: &&PathBuf| {
        let path = path.to_string_lossy();
        path != ".git"
            && (holds_secrets(&path) || holds_secrets(&format!("{path}/x")) || workspace.withholds(&path))
    };
    let mut secrets = withheld.iter().filter(secret).peekable();
    if secrets.peek().is_none() {
        return false;
    }
    let Some(mut index) = workspace.open_real(Path::new(".git/index")) else { return false };
    let mut bytes = Vec::new();
    if std::io::Read::read_to_end(&mut index, &mut bytes).is_err() {
        return true;
    }
    // Later versions cut the names, and a split index has names in another file.
    let has_whole_names = matches!(bytes.get(..8), Some([b'D', b'I', b'R', b'C', 0, 0, 0, 2 | 3]));
    !has_whole_names
        || memmem::find(&bytes, b"link").is_some()
        || secrets.any(|path| memmem::find(&bytes, path.as_os_str().as_encoded_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::{super::line::read, *};
    use crate::WorkDir;

    fn work_dir() -> (tempfile::TempDir, WorkDir) {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a.txt", "src/main.rs", "sub/.env", "sub/b.txt", "notes", ".ssh/config"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink("sub/.env", dir.path().join("link.txt")).unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("out")).unwrap();
        let work_dir = WorkDir::without_home(dir.path()).unwrap();
        (dir, work_dir)
    }

    #[test]
    fn lines_that_only_read_what_may_be_read_are_free() {
        let (dir, work_dir) = work_dir();
        let free = |line: &str| free(&read(line).unwrap(), work_dir.workspace()).is_some();
        let root = dir.path().display().to_string();
        #[rustfmt::skip]
        let lines = [
            "ls -la", "ls", "ls -la src sub", "cat a.txt src/main.rs", "head -n 5 a.txt | wc -l",
            "grep -n 'fn /api' src/main.rs", "find . -name '*.rs' -type f", "sort < a.txt | uniq -c",
            "grep password a.txt", "cat a.txt 2>/dev/null", "diff -u a.txt src/main.rs",
            "cd src && cat main.rs", "wc -l a.txt; pwd && echo done", "grep '^/usr/nothing/here' a.txt",
            "cat missing", "grep -rn x .", "rg x src",
        ];
        for line in lines {
            assert!(free(line), "{line}");
        }
        assert!(free(&format!("cd '{root}' && ls")) && free(&format!("cat '{root}/a.txt'")));
        #[rustfmt::skip]
        let lines = [
            "cat sub/.env", "cat ./sub/../sub/.env", "cat link.txt", "cat out/passwd", "cat /etc/passwd",
            "cat ../.", "cat < sub/.env", "cd sub && cat .env", "cd sub; cat b.txt; cat .env", "cd .. && ls",
            "cd && ls", "cd - && ls", "cd out && cat passwd", "ls ..", "ls /etc", "grep -f sub/.env a.txt",
            "grep -fsub/.env a.txt", "grep -nfsub/.env a.txt", "grep --file=sub/.env a.txt",
            "wc --files0-from=/etc/passwd", "grep -R x .", "grep --dereference-recursive x .",
            "grep -d recurse x .", "diff -r src sub", "diff src sub", "find . -delete", "find -L .", "ls -LR",
            "find . -exec cat {} +", "sort -o a.txt a.txt", "ls > a.txt", "ls; rm a.txt", "cat $X", "cat *",
            "cat sub/.en?", "sed -i s/a/b/ a.txt", "env", "git log", "touch x", "./ls",
            "tail -n +1 .ssh/config", "jq . a.txt", "xargs cat", "date -s 1",
        ];
        for line in lines {
            assert!(!free(line), "{line}");
        }
    }

    #[test]
    fn a_search_does_not_see_secrets() {
        let (_dir, work_dir) = work_dir();
        let free = |line: &str| free(&read(line).unwrap(), work_dir.workspace()).unwrap();
        let mut hidden = free("grep -rn x . | head").hidden;
        hidden.sort();
        assert_eq!(hidden, [PathBuf::from(".ssh"), PathBuf::from("sub/.env")]);
        assert_eq!(free("ls -la | grep x"), FreeReading::default());
    }

    #[test]
    fn git_is_free_in_its_own_repository_and_shows_no_secrets() {
        let (dir, work_dir) = work_dir();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(dir.path());
            assert!(git.output().unwrap().status.success());
        };
        git(&["init", "-q"]);
        git(&["add", "a.txt", "src"]);
        git(&["commit", "-qm", "x"]);
        let free = |line: &str| free(&read(line).unwrap(), work_dir.workspace()).is_some();
        #[rustfmt::skip]
        let lines = [
            "git status -sb", "git log --oneline -5", "git --no-pager diff HEAD", "git diff --stat",
            "git show HEAD:a.txt", "git branch -a", "git log -p -- src | head -50", "git blame a.txt",
            "git ls-files", "git status; ls",
        ];
        for line in lines {
            assert!(free(line), "{line}");
        }
        #[rustfmt::skip]
        let lines = [
            "git show HEAD:.env", "git show HEAD:sub/.env", "git log -p -- .env", "git diff ':(top)sub/.env'",
            "git diff --output=x", "git diff --no-index a.txt /etc/passwd", "git diff a.txt /etc/passwd",
            "git -C /x log", "git config -l", "git branch x", "git commit -m x", "cd src && git log",
            "git log && grep -r x .", "git grep --untracked x", "git status -v", "git fetch",
        ];
        for line in lines {
            assert!(!free(line), "{line}");
        }
        git(&["add", "-f", "sub/.env"]);
        assert!(free("git status") && free("git log --oneline") && !free("git diff") && !free("git log -p"));
    }
}
