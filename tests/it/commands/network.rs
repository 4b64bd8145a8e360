//! `--network`: the commands of one run reach the network.

use std::fs;

use super::{command, exists, home_with, new_names::has_sandbox, result};
use crate::fake_llama::Reply;

/// Prints the network namespace of a command.
const NAMESPACE: &str = "readlink /proc/self/ns/net";

fn own_namespace() -> String {
    fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap().to_owned()
}

#[test]
fn commands_and_checks_have_the_network_in_that_run_and_in_no_other() {
    for (flags, expect) in [(&["--network"][..], true), (&[], false)] {
        let line = format!("{NAMESPACE} > made; cat made");
        let (model, home) = home_with("sandbox = \"auto\"\n", [command(&line), Reply::text("done")]);
        if !has_sandbox(&home) {
            return;
        }
        let check = format!("{NAMESPACE} > checked");
        let words = [&["run", "--allow", "run_command", "--check", &check], flags, &["go"]].concat();
        home.run(&words).success();
        assert_eq!(result(&model).contains(&own_namespace()), expect, "{flags:?}: {}", result(&model));
        let checked = fs::read_to_string(home.work_dir().join("checked")).unwrap();
        assert_eq!(checked.trim() == own_namespace(), expect, "{flags:?}: {checked}");
    }
}

#[test]
fn a_worker_has_the_network_of_its_parent() {
    let spawn = Reply::calls([("spawn_worker", serde_json::json!({"prompt": "look"}))]);
    let (_model, home) = home_with(
        "sandbox = \"auto\"\n",
        [spawn, command(&format!("{NAMESPACE} > made")), Reply::text("seen"), Reply::text("done")],
    );
    if !has_sandbox(&home) {
        return;
    }
    home.run(&["run", "--network", "--workers", "--allow", "spawn_worker,run_command", "go"]).success();
    assert_eq!(fs::read_to_string(home.work_dir().join("made")).unwrap().trim(), own_namespace());
}

#[test]
fn a_line_with_the_network_is_asked_about_and_the_question_says_so() {
    for config in ["approval = \"sandboxed\"\n", "sandbox = \"auto\"\n"] {
        let (_model, home) = home_with(config, [command("touch made"), Reply::text("done")]);
        if !has_sandbox(&home) {
            return;
        }
        home.write("policy.toml", "[headless]\ncommands = \"sandboxed\"\n");
        let mut run = home.on_terminal(&["run", "--network", "go"]);
        let question = run.wait_for("or type a reason to refuse: ");
        assert!(
            question.contains("$ touch made") && question.contains("it reaches the network"),
            "{question}"
        );
        run.type_keys("n\n");
        assert_eq!(run.end().0, 4);
        assert!(!exists(&home, "made"), "{config}");
    }
    // Without a terminal nobody can be asked, and `commands = "sandboxed"` is about lines without the network.
    for (flags, code) in [(&["--network"][..], 3), (&[], 0)] {
        let (_model, home) = home_with("sandbox = \"auto\"\n", [command("touch made"), Reply::text("done")]);
        if !has_sandbox(&home) {
            return;
        }
        home.write("policy.toml", "[headless]\ncommands = \"sandboxed\"\n");
        assert_eq!(home.run(&[&["run"], flags, &["go"]].concat()).code, code, "{flags:?}");
        assert_eq!(exists(&home, "made"), code == 0);
    }
}
