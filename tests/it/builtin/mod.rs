//! The built-in engine, driven by the real binary: real inference without any other server.

mod default_model;
mod hostile_templates;
mod readme;
mod routing;
mod starter_probes;
mod starter_promises;
mod tiny_model;

use std::{fs, io::Read as _};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    test_home::{TestHome, wait_with_output},
    wait::wait_until,
};

/// Returns a home whose only model is the tiny one for tests. `more` is appended to its configuration.
fn home_with(more: &str) -> TestHome {
    let home = TestHome::with_config("");
    let models = home.work_dir().join("models");
    fs::create_dir(&models).unwrap();
    home.write(
        "config.toml",
        &format!("provider = \"builtin\"\nbind = \"off\"\nmodel_dir = \"{}\"\n{more}\n", models.display()),
    );
    home.write(
        "agents/default/config.toml",
        "model = \"tiny\"\ntool_role = true\n[sampling]\ntemperature = 0.0\nmax_tokens = 2000\n",
    );
    home.write("agents/default/agent.md", "You are a test.\n");
    fs::write(home.work_dir().join("README.md"), "# A readme\n").unwrap();
    tiny_model::write(&models.join("tiny.gguf"), "llama");
    home
}

fn home() -> TestHome {
    home_with("")
}

fn event_types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.retain(|kind| !matches!(*kind, "prefill" | "loading" | "writing"));
    types.dedup(); // the number of text pieces depends on timing
    types
}

fn status(home: &TestHome) -> Value {
    home.json(&["status", "--json"])
}

/// Returns the cached tokens and the prompt tokens of each turn.
fn cached(events: &[Value]) -> Vec<(u64, u64)> {
    let turns = events.iter().filter(|event| event["type"] == "turn_completed");
    let count = |turn: &Value, key: &str| turn["context"][key].as_u64().unwrap();
    turns.map(|turn| (count(turn, "cached_tokens"), count(turn, "prompt_tokens"))).collect()
}

#[test]
fn a_model_answers_and_stdout_has_the_answer_only() {
    let home = home();
    let output = home.run_with(&["run", "which line comes first?"], b"alpha\nbeta\n");
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str(), output.code),
        ("It works.\n", "no file was changed\n", 0)
    );
}

#[test]
fn a_tool_is_called_and_its_result_read_without_reading_the_prompt_again() {
    let home = home();
    let events = home.events(&["run", "--json", "--auto-approve", "!tool"]);
    assert_eq!(
        event_types(&events).join(" "),
        "started turn_completed tools_proposed tool_started tool_completed tools_completed token \
         turn_completed facts completed"
    );
    let find = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(find("tools_proposed")["calls"][0]["arguments_json"], "{\"path\": \"README.md\"}");
    assert!(find("tool_completed")["output"].as_str().unwrap().contains("# A readme"));
    assert_eq!(events.last().unwrap()["content"], "It works.");
    let shown: Vec<_> = events.iter().filter(|event| event["type"] == "token").collect();
    assert!(!shown.iter().any(|event| event.to_string().contains('<')), "markup of the call: {shown:?}");
    let turns = cached(&events);
    assert_eq!(turns[0].0, 0);
    assert!(turns[1].0 >= turns[0].1, "the second turn reads only what is new: {turns:?}");
}

#[test]
fn reasoning_is_separated_from_the_answer() {
    let home = home();
    let events = home.events(&["run", "--json", "!think"]);
    let last = events.last().unwrap();
    assert_eq!((&last["reasoning"], &last["content"]), (&"Let me see.".into(), &"It works.".into()));
    assert!(events.iter().any(|event| event["type"] == "reasoning"));
}

#[test]
fn an_answer_is_held_to_a_schema_also_after_a_call() {
    let home = home();
    for words in [&["--no-tools", "hello"][..], &["--auto-approve", "!tool"]] {
        let stdout = home.run(&[&["run", "--new", "--schema", "name"], words].concat()).success();
        let answer: Value = serde_json::from_str(&stdout).unwrap();
        assert!(answer["name"].is_string() && answer.as_object().unwrap().len() == 1, "{answer}");
    }
}

#[test]
fn a_malformed_call_is_repeated_with_a_grammar() {
    let home = home();
    let events = home.events(&["run", "--json", "--auto-approve", "!broken"]);
    let proposed = events.iter().find(|event| event["type"] == "tools_proposed").unwrap();
    let arguments: Value =
        serde_json::from_str(proposed["calls"][0]["arguments_json"].as_str().unwrap()).unwrap();
    assert!(arguments["path"].is_string(), "{arguments}");
    assert_eq!(events.last().unwrap()["content"], "It works.");
}

#[test]
fn a_continued_session_uses_the_cached_prompt() {
    let home = home();
    let first = cached(&home.events(&["run", "--json", "one"]));
    let second = cached(&home.events(&["run", "-c", "--json", "two"]));
    assert!(second[0].0 >= first[0].1, "{first:?} {second:?}");
    let shown = home.run(&["sessions", "show", "--json"]).success();
    assert!(shown.contains("one") && shown.contains("two") && shown.contains("It works."), "{shown}");
}

#[test]
fn a_new_session_reuses_the_shared_prompt_prefix() {
    let home = home();
    home.write("agents/default/agent.md", &"You are a test. ".repeat(40));
    let first = cached(&home.events(&["run", "--json", "--new", "one"]));
    let second = cached(&home.events(&["run", "--json", "--new", "two"]));
    assert_eq!(first[0].0, 0);
    assert!(second[0].0 > 600, "{first:?} {second:?}");
}

#[test]
fn an_answer_cut_at_max_tokens_is_reported() {
    let home = home();
    home.write(
        "agents/default/config.toml",
        "model = \"tiny\"\ntool_role = true\n[sampling]\ntemperature = 0.0\nmax_tokens = 5\n",
    );
    let output = home.run(&["run", "!long"]);
    assert_eq!(output.stdout, " and on and on and on and on and on\n");
    assert!(output.fails(5).contains("max_tokens"));
}

#[test]
fn a_prompt_that_does_not_fit_is_an_error_with_a_hint() {
    let home = home_with("context_size = 2048");
    let stderr = home.run_with(&["run", "-"], "long words ".repeat(2000).as_bytes()).fails(5);
    assert!(stderr.contains("2048") && stderr.contains("context_size"), "{stderr}");
}

#[test]
fn an_answer_can_be_cancelled_and_the_next_run_works() {
    let home = home();
    let mut child = home.spawn(&["run", "!long"]);
    let mut first = [0; 16];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait_with_output(child).code, 130);
    assert_eq!(home.run(&["run", "--new", "hello"]).success(), "It works.\n");
}

#[test]
fn a_second_client_waits_in_the_queue_and_is_notified() {
    let home = home();
    home.write(
        "agents/slow/config.toml",
        "model = \"tiny\"\ntool_role = true\n[sampling]\ntemperature = 0.0\nmax_tokens = 12000\n[rails]\nrepeats = false\n",
    );
    let mut first = home.spawn(&["run", "--session", "a", "--agent", "slow", "!long"]);
    first.stdout.as_mut().unwrap().read_exact(&mut [0; 16]).unwrap();
    let mut second = home.spawn(&["run", "--session", "b", "--json", "hello"]);
    let mut seen = String::new();
    let stdout = second.stdout.as_mut().unwrap();
    while !seen.contains("\"type\":\"queued\"") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {seen}"));
        seen.push(char::from(byte[0]));
    }
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    assert_eq!(wait_with_output(first).code, 130);
    let output = wait_with_output(second);
    assert!(output.success().contains("\"content\":\"It works.\""));
}

#[test]
fn status_names_the_model_and_an_idle_model_is_unloaded() {
    let home = home_with("keep_warm_minutes = 0.01");
    home.run(&["run", "hello"]).success();
    let server = &status(&home)["model_server"];
    assert_eq!((&server["engine"], &server["healthy"]), (&"builtin".into(), &true.into()), "{server}");
    wait_until("the idle model is unloaded", || status(&home)["model_server"]["running"] == false);
    assert_eq!(status(&home)["model_server"]["pid"], 0);
    assert_eq!(home.run(&["run", "hello again"]).success(), "It works.\n");
}
