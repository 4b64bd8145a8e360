//! `kontekst undo`: what runs have changed is taken back.

use std::{fs, os::unix::fs::PermissionsExt as _};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply, process::wait_for_exit},
    hostile_input::{Random, rounds},
    test_home::TestHome,
    wait::wait_until,
};

/// Returns a call that writes a file.
fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit_file", json!({"path": path, "old_str": old, "new_str": new}))
}

/// Runs one prompt whose model makes these calls.
fn run(home: &TestHome, model: &FakeLlama, prompt: &str, calls: &[(&str, Value)]) {
    model.push(Reply::calls(calls.iter().map(|(name, args)| (*name, args.clone()))));
    model.push(Reply::text("done"));
    home.run(&["run", "-q", "--new", "--auto-approve", prompt]).success();
}

fn put(home: &TestHome, name: &str, content: &str) {
    fs::write(home.work_dir().join(name), content).unwrap();
}

fn content(home: &TestHome, name: &str) -> String {
    fs::read_to_string(home.work_dir().join(name)).unwrap_or_else(|_| "(missing)".to_owned())
}

fn listed(home: &TestHome) -> Vec<Value> {
    let listed = home.json(&["undo", "--list", "--json"]);
    listed["runs"].as_array().unwrap().clone()
}

#[test]
fn the_last_run_is_taken_back_and_then_the_one_before() {
    let (model, home) = TestHome::with_model([]);
    put(&home, "f", "one\n");
    fs::set_permissions(home.work_dir().join("f"), fs::Permissions::from_mode(0o755)).unwrap();
    run(&home, &model, "first", &[edit("f", "one", "two"), write("new/g", "g\n")]);
    run(&home, &model, "second", &[edit("f", "two", "three")]);

    let refused = home.run(&["undo"]);
    assert_eq!((refused.code, content(&home, "f").as_str()), (3, "three\n"), "{refused:?}");
    assert!(refused.stdout.contains("run \"second\"") && refused.stdout.contains("-three"), "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");

    let undone = home.run(&["undo", "--yes"]).success();
    assert!(undone.ends_with("took back 1 path\n"), "{undone}");
    assert_eq!(content(&home, "f"), "two\n");
    let undone = home.run(&["undo", "--yes"]).success();
    assert!(undone.contains("run \"first\"") && undone.ends_with("took back 3 paths\n"), "{undone}");
    assert_eq!(content(&home, "f"), "one\n");
    assert!(!home.work_dir().join("new").exists());
    let mode = fs::metadata(home.work_dir().join("f")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o755);
    let nothing = home.run(&["undo", "--yes"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");

    let entries = listed(&home);
    let undoes: Vec<bool> = entries.iter().map(|entry| entry["undoes"].is_string()).collect();
    assert_eq!(undoes, [true, true, false, false]);
    assert!(entries[2..].iter().all(|entry| entry["undone_by"].is_string()), "{entries:?}");
    // The undo of the first run is taken back.
    let id = entries[0]["run"].as_str().unwrap();
    home.run(&["undo", "--yes", id]).success();
    assert_eq!(content(&home, "f"), "two\n");
    assert_eq!(content(&home, "new/g"), "g\n");
}

#[test]
fn a_file_that_has_changed_since_stays_and_the_exit_status_says_so() {
    let (model, home) = TestHome::with_model([]);
    put(&home, "f", "one\n");
    put(&home, "g", "one\n");
    run(&home, &model, "go", &[edit("f", "one", "two"), edit("g", "one", "two")]);
    put(&home, "f", "mine\n");
    let undone = home.run(&["undo", "--yes"]);
    assert_eq!(undone.code, 1, "{undone:?}");
    assert!(undone.stdout.contains("f stays as it is: it was changed since"), "{undone:?}");
    assert!(undone.stderr.contains("1 path was not restored"), "{undone:?}");
    assert_eq!((content(&home, "f").as_str(), content(&home, "g").as_str()), ("mine\n", "one\n"));
}

#[test]
fn one_call_is_taken_back_by_its_id() {
    let (model, home) = TestHome::with_model([]);
    run(&home, &model, "go", &[write("f", "f\n"), write("g", "g\n")]);
    let calls = listed(&home)[0]["calls"].as_array().unwrap().clone();
    assert_eq!(calls[1]["paths"], json!(["g"]));
    home.run(&["undo", "--yes", "--call", calls[1]["call"].as_str().unwrap()]).success();
    assert_eq!((content(&home, "f").as_str(), content(&home, "g").as_str()), ("f\n", "(missing)"));
    assert_eq!(home.run(&["undo", "--yes", "--call", "nothing"]).code, 2);
    home.run(&["undo", "--yes"]).success();
    assert_eq!(content(&home, "f"), "(missing)");
}

#[test]
fn another_directory_of_the_same_path_is_left_alone() {
    let (model, home) = TestHome::with_model([]);
    run(&home, &model, "go", &[write("f", "f\n")]);
    let id = listed(&home)[0]["run"].as_str().unwrap().to_owned();
    // The old directory keeps its number while it exists.
    fs::rename(home.work_dir(), home.work_dir().with_file_name("moved")).unwrap();
    fs::create_dir(home.work_dir()).unwrap();
    put(&home, "f", "f\n");
    let refused = home.run(&["undo", "--yes", &id]);
    assert_eq!((refused.code, content(&home, "f").as_str()), (1, "f\n"), "{refused:?}");
    assert!(refused.stderr.contains("is not the directory any more"), "{refused:?}");
}

#[test]
fn the_terminal_is_asked_and_the_run_says_what_it_changed() {
    let calls = Reply::calls([write("f", "f\n")]);
    let (_model, home) = TestHome::with_model([calls, Reply::text("done")]);
    let (code, screen) = home.on_terminal(&["run", "--auto-approve", "go"]).end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("changed f; `kontekst undo` takes it back"), "{screen}");
    for (answer, expect) in [("n\n", 4), ("y\n", 0)] {
        let mut undo = home.on_terminal(&["undo"]);
        undo.wait_for("take back 1 path? [y]es [N]o: ");
        undo.type_keys(answer);
        let (code, screen) = undo.end();
        assert_eq!((code, home.work_dir().join("f").exists()), (expect, expect != 0), "{screen}");
    }
}

/// Returns a call of a command line.
fn command(line: &str) -> (&'static str, Value) {
    ("run_command", json!({"command": line}))
}

#[test]
fn without_a_question_no_older_run_is_taken_back() {
    let (model, home) = TestHome::with_model([]);
    run(&home, &model, "first", &[write("f", "f\n")]);
    run(&home, &model, "second", &[command("mkdir d && rmdir d")]);
    let refused = home.run(&["undo", "--yes"]);
    assert_eq!((refused.code, content(&home, "f").as_str()), (1, "f\n"), "{refused:?}");
    assert!(
        refused.stderr.contains("run \"second\"") && refused.stderr.contains("undo --yes "),
        "{refused:?}"
    );
    let id = listed(&home)[0]["run"].as_str().unwrap().to_owned();
    home.run(&["undo", "--yes", &id]).success();
    assert_eq!(content(&home, "f"), "(missing)");
}

#[test]
fn an_undo_that_left_something_is_the_next_one_again() {
    let (model, home) = TestHome::with_model([]);
    put(&home, "f", "one\n");
    run(&home, &model, "go", &[edit("f", "one", "two")]);
    put(&home, "f", "mine\n");
    assert_eq!(home.run(&["undo", "--yes"]).code, 1);
    put(&home, "f", "two\n");
    home.run(&["undo", "--yes"]).success();
    assert_eq!(content(&home, "f"), "one\n");
}

#[test]
fn escape_sequences_of_a_model_do_not_reach_the_terminal() {
    let calls = Reply::calls([write("f", "\u{1b}]0;title\u{7}\u{9b}31m\n")]);
    let (_model, home) = TestHome::with_model([calls, Reply::text("done")]);
    home.run(&["run", "-q", "--auto-approve", "go \u{1b}[31mred"]).success();
    let shown = home.run(&["undo"]).stdout;
    assert!(shown.contains("\\u{1b}]0;title\\u{7}\\u{9b}31m"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{9b}']), "{shown}");
}

/// A daemon that is killed at any moment leaves files that are old or new, and an undo that works.
#[test]
fn a_killed_daemon_leaves_what_can_be_taken_back() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let calls = (0..40).map(|n| edit(&format!("f{n}"), "old", "new"));
        if messages.last().unwrap()["role"] == "user" { Reply::calls(calls) } else { Reply::text("done") }
    }));
    let mut random = Random::new(7);
    for _ in 0..rounds(4, 50) {
        for n in 0..40 {
            put(&home, &format!("f{n}"), "old\n");
        }
        let mut child = home.spawn(&["run", "-q", "--new", "--auto-approve", "go"]);
        // The journal grows while the files change. It is killed after some of the changes.
        let until = random.below(40);
        wait_until("some files are new", || (0..=until).all(|n| content(&home, &format!("f{n}")) == "new\n"));
        let daemon = home.daemon().unwrap();
        kill_process(daemon, Signal::KILL).unwrap();
        wait_for_exit(daemon.as_raw_nonzero().get().unsigned_abs());
        child.kill().unwrap();
        child.wait().unwrap();
        for n in 0..40 {
            let now = content(&home, &format!("f{n}"));
            assert!(["old\n", "new\n"].contains(&&*now), "f{n}: {now:?}");
        }
        home.run(&["undo", "--yes"]).success();
        for n in 0..40 {
            assert_eq!(content(&home, &format!("f{n}")), "old\n", "f{n}");
        }
    }
}
