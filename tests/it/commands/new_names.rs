//! Protected names that a command makes are taken back when it has ended.

use std::fs;

use super::{command, exists, home_with, result};
use crate::{fake_llama::Reply, test_home::TestHome};

const SANDBOX: &str = "sandbox = \"auto\"\n";
const ALLOW: [&str; 4] = ["run", "--allow", "run_command", "go"];

/// Returns true if commands need no approval of their own here, which they do where a layer of the sandbox is missing.
pub(super) fn has_sandbox(home: &TestHome) -> bool {
    home.run(&["daemon", "restart"]).success();
    let status = home.json(&["status", "--json"]);
    status["commands"].as_str().unwrap().starts_with("In the sandbox")
}

#[test]
fn what_a_command_makes_under_a_protected_name_is_removed_and_said() {
    let (model, home) = home_with(
        SANDBOX,
        [
            command(
                "d=.github; mkdir -p $d/workflows sub; echo x > $d/workflows/ci.yml; n=.envrc; echo x > sub/$n; echo y > fine",
            ),
            Reply::text("done"),
        ],
    );
    if !has_sandbox(&home) {
        return;
    }
    let output = home.run(&ALLOW);
    assert!(output.stderr.contains("took back"), "{output:?}");
    let read = result(&model);
    assert!(read.contains("the names are protected") && read.contains("sub/.envrc"), "{read}");
    assert!(!exists(&home, "sub/.envrc") && !exists(&home, ".github/workflows"));
    assert_eq!(fs::read_to_string(home.work_dir().join("fine")).unwrap(), "y\n");
    // The command as a whole can be taken back, and what was removed stays so.
    home.run(&["undo", "--yes"]).success();
    assert!(!exists(&home, "fine") && !exists(&home, "sub"));
}

#[test]
fn a_removed_file_can_be_brought_back() {
    let (_model, home) = home_with(SANDBOX, [command("n=.envrc; echo x > $n"), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    home.run(&ALLOW).success();
    let listed = home.json(&["undo", "--list", "--json"]);
    let calls = listed["runs"][0]["calls"].as_array().unwrap();
    let ids: Vec<&str> = calls.iter().filter_map(|call| call["call"].as_str()).collect();
    let removal = ids.iter().find(|id| id.ends_with(".protected")).unwrap_or_else(|| panic!("{listed}"));
    home.run(&["undo", "--yes", "--call", removal]).success();
    assert_eq!(fs::read_to_string(home.work_dir().join(".envrc")).unwrap(), "x\n");
}

#[test]
fn a_new_repository_has_no_hook_that_runs() {
    let line = "git init -q . && git config user.name x; d=.git/hooks; mkdir -p $d; echo 'touch ran' > $d/post-commit; \
                chmod +x $d/post-commit; git add -A; git -c user.email=x@x -c user.name=x commit -qm x --allow-empty";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    home.run(&ALLOW).success();
    assert!(exists(&home, ".git/HEAD") && exists(&home, ".git/config"), "{}", result(&model));
    assert!(!exists(&home, ".git/hooks/post-commit"));
}

/// Runs git in the working directory as a person does, with a name and an address.
fn git(home: &TestHome, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always"])
        .args(arguments);
    let output = git.current_dir(home.work_dir()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// Makes a repository in the working directory, and another one in `other` there.
fn repositories(home: &TestHome) {
    for dir in [".", "other"] {
        git(home, &["init", "-q", dir]);
        git(home, &["-C", dir, "commit", "-qm", "first", "--allow-empty"]);
    }
    fs::write(home.work_dir().join(".git/info/exclude"), "other\n").unwrap();
}

#[test]
fn a_further_working_tree_works() {
    let line = "git worktree add -q tree && cd tree && echo x > file && git add file && \
                git -c user.name=x -c user.email=x@x commit -qm second && n=.git && mkdir evil && \
                echo 'gitdir: ../other' > evil/$n && echo /tmp > ../$n/worktrees/tree/config.worktree";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    repositories(&home);
    home.run(&ALLOW).success();
    assert!(exists(&home, "tree/.git"), "{}", result(&model));
    git(&home, &["-C", "tree", "cat-file", "-e", "HEAD:file"]);
    assert!(!exists(&home, "tree/evil/.git") && !exists(&home, ".git/worktrees/tree/config.worktree"));
}

#[test]
fn a_submodule_can_be_added_and_updated_after_a_question() {
    let add = "git -c protocol.file.allow=always submodule add ./other lib";
    let update = "git -c protocol.file.allow=always submodule update --init";
    let (model, home) = home_with(
        SANDBOX,
        [command(add), command(add), Reply::text("added"), command(update), Reply::text("done")],
    );
    if !has_sandbox(&home) {
        return;
    }
    repositories(&home);
    // `git submodule` does not use the configuration of a person, and looks for `./other` from its own remote.
    git(&home, &["remote", "add", "origin", home.work_dir().to_str().unwrap()]);
    home.run(&ALLOW).fails(3);
    let (code, screen) = answered_with_yes(&home);
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains(".gitmodules configures version control"), "{screen}");
    assert!(exists(&home, "lib/.git") && exists(&home, ".gitmodules"), "{}", result(&model));
    git(&home, &["commit", "-qm", "second"]);
    fs::remove_dir_all(home.work_dir().join("lib")).unwrap();
    fs::remove_dir_all(home.work_dir().join(".git/modules")).unwrap();
    git(&home, &["config", "--remove-section", "submodule.lib"]);
    let (code, screen) = answered_with_yes(&home);
    assert_eq!(code, 0, "{screen}");
    assert!(exists(&home, ".git/modules/lib/config") && exists(&home, "lib/.git"), "{}", result(&model));
    git(&home, &["-C", "lib", "status"]);
}

/// Runs a prompt on a terminal, where the question is answered.
fn answered_with_yes(home: &TestHome) -> (i32, String) {
    let mut run = home.on_terminal(&ALLOW);
    run.wait_for("approve?");
    run.type_keys("y\n");
    run.end()
}

/// Gradle and Yarn keep the state of a build beside programs and settings.
#[test]
fn what_a_build_makes_in_directories_of_tools_stays() {
    let line = "g=.gradle; y=.yarn; mkdir -p $g/8.5/fileHashes $g/init.d $y/cache $y/releases; \
                touch $g/8.5/fileHashes/x.lock $g/file-system.probe $g/init.d/x.gradle $y/cache/x.zip $y/install-state.gz \
                $y/releases/yarn.cjs";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    home.run(&ALLOW).success();
    let made = [
        ".gradle/8.5/fileHashes/x.lock",
        ".gradle/file-system.probe",
        ".yarn/cache/x.zip",
        ".yarn/install-state.gz",
    ];
    for path in made {
        assert!(exists(&home, path), "{path}: {}", result(&model));
    }
    assert!(!exists(&home, ".gradle/init.d") && !exists(&home, ".yarn/releases"));
}

#[test]
fn a_file_under_another_name_is_moved_back() {
    let (model, home) = home_with(SANDBOX, [command("n=.env; mv settings $n"), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    let settings = home.work_dir().join("settings");
    fs::write(&settings, "a\n").unwrap();
    home.run(&ALLOW).success();
    assert_eq!(fs::read_to_string(settings).unwrap(), "a\n", "{}", result(&model));
    assert!(!exists(&home, ".env"));
}

#[test]
fn a_line_that_names_a_new_protected_file_is_asked_about() {
    let (_model, home) = home_with(SANDBOX, [command("echo x > .envrc"), command("echo x > .envrc")]);
    home.run(&ALLOW).fails(3);
    home.run(&["run", "--auto-approve", "go"]).fails(3);
    assert!(!exists(&home, ".envrc"));
    assert_eq!(fs::read_dir(home.work_dir()).unwrap().count(), 0);
}
