//! `kontekst undo` of what a command has changed, with the real binary.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use rustix::process::{Signal, kill_process};

use super::{command, home_with, without_sandbox};
use crate::{fake_llama::Reply, test_home::TestHome};

/// Everything in a directory: modes with contents, or the targets of links.
pub(super) fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut tree = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if metadata.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            tree.insert(path, (metadata.permissions().mode(), content));
        }
    }
    tree
}

fn prepare(home: &TestHome) {
    let put = |name: &str, content: &[u8]| {
        let path = home.work_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    put("text", b"one\ntwo\n");
    put("binary", &[0, 255, 10, 13, 0]);
    put("gone/deep/file", b"kept\n");
    put("script", b"#!/bin/sh\n");
    put("with a blank", b"");
    fs::set_permissions(home.work_dir().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("text", home.work_dir().join("link")).unwrap();
}

#[test]
fn what_commands_have_changed_is_taken_back_byte_for_byte() {
    for config in ["", "sandbox = \"auto\"\n"] {
        let (_model, home) = home_with(
            config,
            [
                command(
                    "printf 'x\\000' >> binary; sed -i s/one/1/ text; rm -r gone; ln -sf nowhere link; chmod 600 script",
                ),
                command(
                    "mkdir -p new/dir; echo n > new/dir/f; mv 'with a blank' moved; rm script; echo z > script",
                ),
                Reply::text("done"),
            ],
        );
        prepare(&home);
        let before = tree(&home.work_dir());
        let run = home.run(&["run", "--allow", "run_command", "go"]);
        if config.contains("auto") && run.code == 3 {
            return; // without the whole sandbox every command asks
        }
        run.success();
        let after = tree(&home.work_dir());
        assert!(
            after.len() < before.len() + 4
                && before.iter().filter(|one| after.get(one.0) != Some(one.1)).count() >= 7
        );
        home.run(&["undo", "--yes"]).success();
        assert_eq!(tree(&home.work_dir()), before);
        // The undo is taken back in turn.
        let id = home.run(&["undo", "--list", "--json"]).success();
        let listed: serde_json::Value = serde_json::from_str(&id).unwrap();
        home.run(&["undo", "--yes", listed["runs"][0]["run"].as_str().unwrap()]).success();
        assert_eq!(tree(&home.work_dir()), after);
    }
}

#[test]
fn caches_and_runs_that_changed_nothing_are_not_listed() {
    let caches =
        "mkdir -p src/__pycache__ .pytest_cache; echo x > src/__pycache__/a.pyc; echo x > .pytest_cache/b";
    let (_model, home) = without_sandbox([
        command(&format!("echo two > f; {caches}")),
        Reply::text("done"),
        command("cat f"),
        Reply::text("two"),
    ]);
    fs::create_dir(home.work_dir().join("src")).unwrap();
    for prompt in ["change it", "look at it"] {
        home.run(&["run", "--new", "--allow", "run_command", prompt]).success();
    }
    let listed = home.json(&["undo", "--list", "--json"]);
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["calls"][0]["paths"]), (1, &serde_json::json!(["f"])), "{listed}");
    // Without a question, the run that changed nothing is not passed over in silence.
    let refused = home.run(&["undo", "--yes"]).fails(1);
    assert!(refused.contains("changed nothing that undo sees"), "{refused}");
    let undone = home.run(&["undo", "--yes", runs[0]["run"].as_str().unwrap()]).success();
    assert!(undone.ends_with("took back 1 path\n"), "{undone}");
    assert!(home.work_dir().join("src/__pycache__/a.pyc").exists());
}

#[test]
fn an_undo_right_after_a_crash_finds_a_daemon() {
    let (model, home) = without_sandbox([]);
    for round in 0..5 {
        model.push(command(&format!("echo {round} > f{round}")));
        model.push(Reply::text("done"));
        home.run(&["run", "--new", "--allow", "run_command", "go"]).success();
        kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
        home.run(&["undo", "--yes"]).success();
        assert!(!home.work_dir().join(format!("f{round}")).exists());
        kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
        home.run(&["undo", "--list"]).success();
    }
}
