//! `--check`: commands of the user that decide whether what the model did is good enough.

use std::fs;

use serde_json::{Value, json};

use super::{command, home, home_with, without_sandbox};
use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::{Output, TestHome},
};

/// The check: prints the file, and passes if it does not say `bad`.
const CHECK: &str = "cat state.txt; ! grep -q bad state.txt";

fn write_file(text: &str) -> Reply {
    Reply::calls([("write_file", json!({"path": "state.txt", "content": format!("{text}\n")}))])
}

/// Runs with the check, in a home with commands outside of a sandbox. The events are those of `--json`.
fn run(script: Vec<Reply>, before: Option<&str>) -> (FakeLlama, Output, Vec<Value>) {
    let (model, home) = without_sandbox(script);
    if let Some(text) = before {
        fs::write(home.work_dir().join("state.txt"), text).unwrap();
    }
    let output = home.run(&["run", "--json", "--auto-approve", "--check", CHECK, "Make it good."]);
    let events = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (model, output, events)
}

/// Returns the round and the result of each check.
fn checks(events: &[Value]) -> Vec<(u64, bool)> {
    let checks = events.iter().filter(|event| event["type"] == "check");
    checks.map(|event| (event["round"].as_u64().unwrap(), event["passed"].as_bool().unwrap())).collect()
}

/// Returns the message that the model read last.
fn last_message(model: &FakeLlama, chat: usize) -> String {
    let chats = model.chats();
    chats[chat]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_failure_goes_to_the_model_and_the_ending_says_that_the_checks_passed() {
    let script = vec![write_file("bad"), Reply::text("Done."), write_file("good"), Reply::text("Done now.")];
    let (model, output, events) = run(script, None);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(checks(&events), [(0, true), (1, false), (2, true)]);
    let message = last_message(&model, 2);
    assert!(
        message.starts_with("The check `cat state.txt;") && message.contains("(exit 1). It printed:\nbad\n"),
        "{message}"
    );
    let completed = events.last().unwrap();
    assert_eq!((&completed["type"], &completed["checks_passed"]), (&json!("completed"), &json!(true)));
    assert_eq!(completed["content"], "Done now.");
}

#[test]
fn after_three_rounds_the_run_fails_with_the_name_of_the_check() {
    let mut script = vec![Reply::calls([("read_file", json!({"path": "state.txt"}))])];
    for text in ["bad 1", "bad 2", "bad 3"] {
        script.extend([write_file(text), Reply::text("Done.")]);
    }
    let (model, output, events) = run(script, Some("bad 0\n"));
    assert_eq!(checks(&events), [(0, false), (1, false), (2, false), (3, false)]);
    let message = last_message(&model, 3);
    assert!(message.contains("It failed before your first change as well."), "{message}");
    let failed = events.last().unwrap();
    assert_eq!((&failed["type"], &failed["kind"]), (&json!("failed"), &json!("check")));
    let stderr = output.fails(1);
    assert!(stderr.contains(&format!("check `{CHECK}` failed (exit 1) after 3 rounds")), "{stderr}");
}

#[test]
fn nothing_is_checked_where_nothing_was_changed() {
    let script = vec![command("cat state.txt"), Reply::text("It is bad.")];
    let (_model, output, events) = run(script, Some("bad\n"));
    assert_eq!((output.code, checks(&events)), (0, vec![]));
    assert_eq!(events.last().unwrap()["checks_passed"], Value::Null);
}

#[test]
fn a_run_without_changes_says_that_no_check_has_run() {
    let (_model, home) = without_sandbox([Reply::text("It is good.")]);
    let output = home.run(&["run", "--check", CHECK, "Is it good?"]);
    assert!(
        output.stderr.contains("no check has run after the answer, because no file was changed"),
        "{output:?}"
    );
    assert_eq!(output.success(), "It is good.\n");
}

#[test]
fn a_change_by_a_command_is_checked_too() {
    let script = vec![command("echo good > state.txt"), Reply::text("Done.")];
    let (_model, output, events) = run(script, Some("bad\n"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(checks(&events), [(0, false), (1, true)]);
}

#[test]
fn an_agent_can_have_checks_and_the_terminal_shows_them() {
    let (_model, home) =
        home_with("approval = \"never\"\nsandbox = \"off\"\n", [write_file("good"), Reply::text("Done.")]);
    home.write("agents/careful/config.toml", "checks = [\"grep -q good state.txt\", \"true\"]\n");
    let output = home.run(&["run", "--agent", "careful", "--auto-approve", "make it good"]);
    assert!(output.stderr.contains("· check `grep -q good state.txt` before the first change"), "{output:?}");
    assert!(output.stderr.contains("fails already: exit status 2"), "{output:?}");
    assert!(output.stderr.contains("· check `true`\n  passed: exit status 0"), "{output:?}");
    assert_eq!(output.success(), "Done.\n");
}

#[test]
fn a_directory_can_have_checks_and_a_project_cannot_name_any() {
    let model = FakeLlama::start([]).always(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"] == "tool" {
            true => Reply::text("Done."),
            false => write_file("good"),
        }
    });
    let home = home(&model, "");
    let dir = home.work_dir();
    fs::create_dir_all(dir.join("inner/.kontekst")).unwrap();
    fs::create_dir(dir.join("other")).unwrap();
    fs::write(dir.join("inner/.kontekst/config.toml"), "checks = [\"touch made\"]\n").unwrap();
    let config = fs::read_to_string(home.root().join("config.toml")).unwrap();
    let of_dirs = format!(
        "[dir.\"{0}/**\"]\nchecks = [\"true\", \"grep -q good state.txt\"]\n[dir.\"{0}/inner\"]\nchecks = [\"test -e state.txt\"]\n",
        dir.display()
    );
    home.write("config.toml", &format!("{config}\n{of_dirs}"));
    home.write("agents/default/config.toml", "checks = [\"true\"]\n");
    for (inner, expect) in [
        ("inner", &["true", "grep -q good state.txt", "test -e state.txt", "test -d ."][..]),
        ("other", &["true", "grep -q good state.txt", "test -d ."]),
        ("..", &["true", "test -d ."]),
    ] {
        let words = [
            "run",
            "--json",
            "--new",
            "--auto-approve",
            "--check",
            "test -d .",
            "-C",
            inner,
            "Make it good.",
        ];
        let output = home.run(&words);
        let events: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.last().unwrap()["checks_passed"], true, "{output:?}");
        let last = events.iter().filter(|event| event["type"] == "check" && event["round"] == 1);
        let commands: Vec<&str> = last.map(|event| event["command"].as_str().unwrap()).collect();
        assert_eq!(commands, expect, "{inner}");
    }
    assert!(!dir.join("inner/made").exists());
    let shown = home.run(&["config", "show"]).success();
    assert!(shown.contains("grep -q good state.txt"), "{shown}");
}

#[test]
fn a_directory_with_checks_needs_an_absolute_name() {
    let home = TestHome::with_config("bind = \"off\"\n[dir.\"app\"]\nchecks = [\"true\"]\n");
    let message = home.run(&["run", "hello"]).fails(2);
    assert!(
        message.contains("line 2") && message.contains("an absolute path, or begins with `~/`"),
        "{message}"
    );
}

#[test]
fn a_check_that_fails_before_and_after_an_answer_without_a_change_fails_the_run() {
    let answer = |text: &str| Reply::text(&json!({"tool": "answer", "text": text}).to_string());
    let (model, home) = without_sandbox([answer("It is good."), answer("All is well."), answer("Yes.")]);
    home.write("agents/small/config.toml", "tool_role = \"steps\"\nchecks = [\"grep -q good state.txt\"]\n");
    let output = home.run(&["run", "--agent", "small", "--auto-approve", "make it good"]);
    let stderr = output.fails(1);
    assert!(stderr.contains("check `grep -q good state.txt` failed (exit 2) after 3 rounds"), "{stderr}");
    let message = last_message(&model, 1);
    assert!(message.contains("still fails (exit 2). No file has been changed yet."), "{message}");
}

#[test]
fn a_model_that_works_in_steps_gets_the_failure_before_its_first_step_too() {
    let step = |value: Value| Reply::text(&value.to_string());
    let write = || step(json!({"tool": "write_file", "path": "state.txt", "what": "make it good"}));
    let (model, home) = without_sandbox([
        write(),
        Reply::text("```\nbad\n```"),
        step(json!({"tool": "done", "changed": ["state.txt"], "text": "Done."})),
        write(),
        Reply::text("```\ngood\n```"),
        step(json!({"tool": "done", "changed": ["state.txt"], "text": "Done now."})),
    ]);
    home.write("agents/small/config.toml", "tool_role = \"steps\"\nchecks = [\"grep -q good state.txt\"]\n");
    let output = home.run(&["run", "--agent", "small", "--auto-approve", "make it good"]);
    assert_eq!(output.success(), "Done now.\n");
    assert!(
        last_message(&model, 0).contains("fails before any change (exit "),
        "{}",
        last_message(&model, 0)
    );
    let content = last_message(&model, 4);
    assert!(content.contains("The check `grep -q good state.txt` fails now."), "{content}");
}
