//! A worktree of git as the working directory: its repository is elsewhere.

use std::{fs, path::Path, process::Command};

use super::{command, home, new_names::has_sandbox, result};
use crate::fake_llama::{FakeLlama, Reply};

fn git(dir: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let output = git.args(words).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Commands read the repository, and cannot write it, because it is not in the working directory.
#[test]
fn a_command_reads_the_repository_of_a_worktree_and_does_not_write_it() {
    let line = "echo more >> a.txt; git diff --stat; git log --oneline; git -c user.name=a -c user.email=a@b commit -aqm new; \
                echo \"<$?>\"";
    let model = FakeLlama::start([command(line), Reply::text("done")]);
    let home = home(&model, "sandbox = \"auto\"\n");
    if !has_sandbox(&home) {
        return;
    }
    // Commands do not see what others have in /tmp.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (main, tree) = (dir.path().join("main"), dir.path().join("tree"));
    git(dir.path(), &["init", "-q", "main"]);
    fs::write(main.join("a.txt"), "text\n").unwrap();
    git(&main, &["add", "a.txt"]);
    git(&main, &["commit", "-qm", "first"]);
    git(&main, &["worktree", "add", "-q", "../tree"]);
    let before = git(&main, &["log", "--all", "--oneline"]);
    home.run(&["run", "-C", tree.to_str().unwrap(), "--allow", "run_command", "go"]).success();
    let read = result(&model);
    assert!(read.contains("a.txt | 1 +") && read.contains("first"), "{read}");
    assert!(read.contains("Read-only file system") && !read.contains("<0>"), "{read}");
    assert_eq!(git(&main, &["log", "--all", "--oneline"]), before);
    assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "text\nmore\n");
}
