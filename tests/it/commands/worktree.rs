//! A worktree of git as the working directory: its repository is elsewhere.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{command, home_with, new_names::has_sandbox, result};
use crate::{fake_llama::Reply, test_home::TestHome};

fn git(dir: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let output = git.args(words).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with a worktree beside it.
struct Repository {
    _dir: tempfile::TempDir,
    main: PathBuf,
    tree: PathBuf,
}

impl Repository {
    fn new(within: &Path) -> Self {
        let dir = tempfile::tempdir_in(within).unwrap();
        let (main, tree) = (dir.path().join("main"), dir.path().join("tree"));
        git(dir.path(), &["init", "-q", "main"]);
        fs::write(main.join("a.txt"), "text\n").unwrap();
        git(&main, &["add", "a.txt"]);
        git(&main, &["commit", "-qm", "first"]);
        git(&main, &["worktree", "add", "-q", "../tree"]);
        Self { _dir: dir, main, tree }
    }

    fn run(&self, home: &TestHome) {
        home.run(&["run", "-C", self.tree.to_str().unwrap(), "--allow", "run_command", "go"]).success();
    }
}

const COMMIT: &str = "echo more >> a.txt; git diff --stat; git log --oneline; \
                      git -c user.name=a -c user.email=a@b commit -aqm new; echo \"commit <$?>\"";

#[test]
fn a_command_commits_in_a_worktree_and_does_not_write_what_steers_git() {
    commits_in_a_worktree(Path::new(env!("CARGO_TARGET_TMPDIR")));
}

/// Of the temporary directory, commands see nothing else.
#[test]
fn a_command_commits_in_a_worktree_in_the_temporary_directory() {
    commits_in_a_worktree(Path::new("/tmp"));
}

fn commits_in_a_worktree(within: &Path) {
    let line = format!(
        "{COMMIT}; git branch other && git tag one && git checkout -q -b third; echo \"branches <$?>\"; \
         git config a.b c; echo \"config <$?>\"; d=$(git rev-parse --git-common-dir); \
         h=hooks; echo x > $d/$h/post-commit; echo x > $d/new; git worktree add -q --detach ../more; \
         w=$(git rev-parse --git-dir); echo ../evil > $w/commondir; echo x > $w/config.worktree; mkdir $w/modules/lib; \
         mkdir $w/rebase-merge; echo 'exec touch ran' > $w/rebase-merge/git-rebase-todo; \
         git status --short; echo \"status <$?>\""
    );
    let (model, home) = home_with("sandbox = \"auto\"\n", [command(&line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    let repository = Repository::new(within);
    let (main, tree) = (&repository.main, &repository.tree);
    let before = fs::read_to_string(main.join(".git/config")).unwrap();
    repository.run(&home);
    let read = result(&model);
    for part in ["a.txt | 1 +", "first", "commit <0>", "branches <0>", "status <0>"] {
        assert!(read.contains(part), "{read}");
    }
    assert!(!read.contains("config <0>") && read.matches("Read-only file system").count() >= 6, "{read}");
    assert_eq!(git(main, &["log", "--format=%s", "tree"]), "new\nfirst\n");
    assert_eq!(git(tree, &["status", "--short", "--branch"]), "## third\n");
    let branches = git(main, &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "main\nother\nthird\ntree\n");
    assert_eq!(fs::read_to_string(main.join(".git/config")).unwrap(), before);
    assert!(!main.join(".git/hooks/post-commit").exists() && !main.join(".git/new").exists());
    assert_eq!(fs::read_to_string(main.join(".git/worktrees/tree/config.worktree")).unwrap(), "");
    assert!(read.contains("Restored after the command"), "{read}");
    let state = main.join(".git/worktrees/tree/rebase-merge");
    assert!(!state.join("git-rebase-todo").exists());
    fs::remove_dir(state).unwrap();
    // An undo takes back the files, and nothing in the repository. What is not committed then is that.
    home.run(&["undo", "--yes", "-C", tree.to_str().unwrap()]).success();
    assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "text\n");
    assert_eq!(git(tree, &["status", "--short"]), " M a.txt\n");
    git(main, &["worktree", "remove", "--force", "../tree"]);
}

/// Whoever makes a file `.git` would choose the directory that commands may write.
#[test]
fn a_repository_that_does_not_name_the_worktree_is_not_written() {
    let (model, home) = home_with("sandbox = \"auto\"\n", [command(COMMIT), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    let repository = Repository::new(Path::new("/tmp"));
    fs::write(repository.main.join(".git/worktrees/tree/gitdir"), "/elsewhere/.git\n").unwrap();
    let before = git(&repository.main, &["log", "--all", "--oneline"]);
    repository.run(&home);
    let read = result(&model);
    assert!(!read.contains("a.txt | 1 +") && !read.contains("first"), "it is not seen either: {read}");
    assert!(read.contains("not a git repository") && !read.contains("commit <0>"), "{read}");
    assert_eq!(git(&repository.main, &["log", "--all", "--oneline"]), before);
    assert_eq!(fs::read_to_string(repository.tree.join("a.txt")).unwrap(), "text\nmore\n");
}
