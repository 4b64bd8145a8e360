//! Commands that the request asks for, such as the tests.

use std::fs;

use serde_json::json;

use super::{command, home};
use crate::fake_llama::{FakeLlama, Reply};

const NOT_RUN: &str = "a command was to be run, and none was";
const NOT_COMMITTED: &str = "the changes were to be committed, and no command did that";

/// Returns the last message of each request to the model.
fn last_messages(model: &FakeLlama) -> Vec<String> {
    let last = |chat: &serde_json::Value| {
        let messages = chat["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    model.chats().iter().map(last).collect()
}

#[test]
fn an_answer_without_the_command_is_asked_for_again() {
    let script = [Reply::text("All tests pass."), command("echo 1 failed"), Reply::text("One test fails.")];
    let model = FakeLlama::start(script);
    let home = home(&model, "");
    let prompt = "Run the tests and tell me if they pass";
    let output = home.run(&["run", "--auto-approve", prompt]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "One test fails.\n"), "{output:?}");
    assert_eq!(
        last_messages(&model)[1],
        format!("The request is not done: {NOT_RUN}. Do this now with run_command: Run the tests")
    );
}

#[test]
fn a_run_without_the_command_fails() {
    for (prompt, fact) in [("Run the tests", NOT_RUN), ("Commit the changes", NOT_COMMITTED)] {
        let model = FakeLlama::start((0..3).map(|_| Reply::text("Done.")));
        let output = home(&model, "").run(&["run", "--auto-approve", prompt]);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        assert!(output.stderr.contains(fact), "{output:?}");
    }
}

#[test]
fn another_command_commits_nothing() {
    let script = [
        command("echo tested"),
        Reply::text("Committed."),
        command("echo commit"),
        Reply::text("Now it is."),
    ];
    let model = FakeLlama::start(script);
    let prompt = "Run the tests, and commit the changes";
    assert_eq!(home(&model, "").run(&["run", "--auto-approve", prompt]).success(), "Now it is.\n");
    assert!(last_messages(&model)[2].contains(NOT_COMMITTED));
}

#[test]
fn nothing_is_left_to_commit_where_git_says_so() {
    let clean = command("echo nothing to commit, working tree clean; exit 1");
    let model = FakeLlama::start([clean, Reply::text("There is nothing to commit.")]);
    let output = home(&model, "").run(&["run", "--auto-approve", "commit it"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "There is nothing to commit.\n"), "{output:?}");
}

#[test]
fn an_answer_in_a_format_needs_no_word_for_a_failure() {
    let report = || Reply::text(r#"{"passed":false}"#);
    // The last one is in the format.
    let model = FakeLlama::start([command(FAILING), report(), report()]);
    let schema = r#"{"type":"object","properties":{"passed":{"type":"boolean"}},"required":["passed"]}"#;
    let home = home(&model, "");
    fs::write(home.work_dir().join("schema.json"), schema).unwrap();
    let answer = home.run(&["run", "--auto-approve", "--schema", "schema.json", "Run the tests"]).success();
    assert_eq!(answer.trim(), r#"{"passed":false}"#);
}

#[test]
fn a_command_that_fails_commits_nothing() {
    let script =
        [command("echo commit; exit 1")].into_iter().chain((0..3).map(|_| Reply::text("Committed.")));
    let model = FakeLlama::start(script);
    let output = home(&model, "").run(&["run", "--auto-approve", "commit it"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains(NOT_COMMITTED), "{output:?}");
}

#[test]
fn nothing_is_asked_for_after_a_denial_or_where_checks_run_the_tests() {
    let model = FakeLlama::start([command("make test"), Reply::text("I may not.")]);
    let denied = home(&model, "");
    denied.write("policy.toml", "deny = [\"run_command(make)\"]\n");
    assert_eq!(denied.run(&["run", "run the tests"]).success(), "I may not.\n");

    let model = FakeLlama::start([Reply::text("They pass.")]);
    let checked = home(&model, "");
    fs::write(checked.work_dir().join("a.txt"), "a\n").unwrap();
    assert_eq!(checked.run(&["run", "--check", "true", "run the tests"]).success(), "They pass.\n");
}

#[test]
fn the_line_that_commits_the_changed_files_is_named() {
    let write = |path: &str| Reply::calls([("write_file", json!({"path": path, "content": "a\n"}))]);
    for (path, expected) in [
        ("a.txt", ", for example `git add a.txt && git commit -m 'Change a.txt'`: commit it"),
        ("a b.txt", ": commit it"),
    ] {
        let script =
            [write(path), Reply::text("Committed."), command("echo commit"), Reply::text("Now it is.")];
        let model = FakeLlama::start(script);
        let prompt = "Create the file with an a, and commit it";
        home(&model, "").run(&["run", "--auto-approve", prompt]).success();
        let start = format!("The request is not done: {NOT_COMMITTED}. Do this now with run_command");
        assert_eq!(last_messages(&model)[2].strip_prefix(&start), Some(expected));
    }
}

fn edit() -> Reply {
    Reply::calls([("edit_file", json!({"path": "a.txt", "old_str": "1", "new_str": "2"}))])
}

/// A command line that fails as tests do.
const FAILING: &str = "echo tests: 1 failed; exit 1";

#[test]
fn an_answer_that_hides_that_the_tests_failed_is_asked_for_again() {
    let script = [command(FAILING), Reply::text("All tests pass."), Reply::text("One test fails.")];
    let model = FakeLlama::start(script);
    assert_eq!(
        home(&model, "").run(&["run", "--auto-approve", "Run the tests"]).success(),
        "One test fails.\n"
    );
    assert_eq!(
        last_messages(&model)[2],
        format!("`{FAILING}` failed (exit status 1). Say in the answer that it failed, and why.")
    );

    let script = [command(FAILING)].into_iter().chain((0..3).map(|_| Reply::text("All tests pass.")));
    let output = home(&FakeLlama::start(script), "").run(&["run", "--auto-approve", "Run the tests"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    let fact = format!("the answer does not say that `{FAILING}` failed (exit status 1)");
    assert!(output.stderr.contains(&fact), "{output:?}");
}

#[test]
fn a_model_has_to_repair_the_file_before_it_may_say_that_the_tests_fail() {
    let passes = || command("echo tests: ok");
    let script = [command(FAILING), Reply::text("Done."), edit(), passes(), Reply::text("Repaired.")];
    let model = FakeLlama::start(script);
    let home = home(&model, "");
    fs::write(home.work_dir().join("a.txt"), "1\n").unwrap();
    let prompt = "Fix the number in a.txt, and run the tests";
    assert_eq!(home.run(&["run", "--auto-approve", prompt]).success(), "Repaired.\n");
    assert_eq!(
        last_messages(&model)[2],
        format!(
            "`{FAILING}` failed (exit status 1), and no file has been changed yet. Change the file now with edit_file or \
             write_file, and run it again."
        )
    );
}

#[test]
fn tests_that_are_older_than_the_last_change_are_run_again() {
    let script = [
        command("echo tests: ok"),
        edit(),
        Reply::text("The tests pass."),
        command("echo tests: ok"),
        Reply::text("The tests pass with 2, too."),
    ];
    let model = FakeLlama::start(script);
    let home = home(&model, "");
    fs::write(home.work_dir().join("a.txt"), "1\n").unwrap();
    let prompt = "Replace 1 by 2 in a.txt, and run the tests";
    assert_eq!(home.run(&["run", "--auto-approve", prompt]).success(), "The tests pass with 2, too.\n");
    assert_eq!(
        last_messages(&model)[3],
        "The request is not done: files were changed after the last run of `echo tests: ok`. Run it again now with \
         run_command."
    );
}
