//! `kontekst doctor`: it finds what is wrong, and changes nothing.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _};

use kontekst_engine::gguf::header_builder::HeaderBuilder;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::{
    fake_llama::{FakeLlama, process::wait_for_exit},
    test_home::{TestHome, wait_with_output},
};

/// Returns the checks of a home, each as `level subject: message (remedy)`, and the exit code.
fn checks(home: &TestHome) -> (Vec<String>, i32) {
    let output = home.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or("none").to_owned();
    let line = |check: &Value| {
        let [level, subject, message, remedy] =
            ["level", "subject", "message", "remedy"].map(|key| text(check, key));
        format!("{level} {subject}: {message} ({remedy})")
    };
    let lines: Vec<String> = report["checks"].as_array().unwrap().iter().map(line).collect();
    let count = |level: &str| lines.iter().filter(|line| line.starts_with(level)).count();
    assert_eq!((report["problems"].as_u64(), report["warnings"].as_u64()), {
        (Some(count("problem") as u64), Some(count("warning") as u64))
    });
    assert_eq!(output.code, i32::from(count("problem") > 0), "{lines:#?}");
    (lines, output.code)
}

/// Checks that exactly one line has all of these parts.
#[track_caller]
fn has(lines: &[String], parts: &[&str]) {
    let found = lines.iter().filter(|line| parts.iter().all(|part| line.contains(part))).count();
    assert_eq!(found, 1, "{parts:?} in {lines:#?}");
}

#[test]
fn a_new_user_has_no_problem_and_nothing_is_made() {
    let home = TestHome::with_config("");
    let new = home.work_dir().join("new");
    let mut command = home.command(&["doctor"]);
    let output = wait_with_output(command.env("KONTEKST_HOME", &new).spawn().unwrap());
    let text = output.success();
    assert!(text.contains("is not there yet") && text.contains("\n0 problems, "), "{text}");
    assert!(!new.exists());
}

#[test]
fn every_mistake_has_its_file_and_line_and_nothing_changes() {
    let config = "endpont = 1\nmax_turns = 0\nbind = 'off'\n[tools]\ntimout_seconds = 3\n";
    let home = TestHome::with_config(config);
    home.write("agents/coder/config.toml", "name = 'x'\nmodel = 5\n");
    home.write("agents/prose/agent.md", "You write.");
    fs::set_permissions(home.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let (lines, code) = checks(&home);
    assert_eq!(code, 1);
    has(&lines, &["warning", "config.toml:1: unknown key `endpont`", "(write `endpoint`)"]);
    has(&lines, &["problem", "config.toml:2: `max_turns`: must be from 1 to 100000, not 0"]);
    has(&lines, &["warning", "config.toml:5: unknown key `tools.timout_seconds`"]);
    has(&lines, &["problem", "agents/coder/config.toml:2: `model`: invalid type"]);
    has(&lines, &["warning data directory", "/home is open to other users (mode 755)", "chmod 700"]);
    assert_eq!(home.read("config.toml"), config);
    assert!(home.daemon().is_none() && !home.root().join("run").exists());
    assert_eq!(fs::metadata(home.root()).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn who_has_a_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let home = TestHome::with_config(&format!("bind = 'off'\n[http]\nlisten = '{address}'\n"));
    let (lines, _) = checks(&home);
    let process = format!("process {} (", std::process::id());
    has(
        &lines,
        &["problem HTTP", &process, &address.to_string(), "kontekst config set http.listen 127.0.0.1:"],
    );
    drop(taken);
    has(&checks(&home).0, &["ok HTTP", &format!("{address} is free")]);
}

#[test]
fn it_says_what_would_answer() {
    let server = FakeLlama::start([]);
    let check = |config: &str, model: &str, parts: &[&str]| {
        let home = TestHome::with_config(&format!("bind = 'off'\n{config}"));
        if !model.is_empty() {
            home.write("agents/default/config.toml", &format!("model = '{model}'\n"));
        }
        has(&checks(&home).0, parts);
        assert!(home.daemon().is_none());
    };
    let endpoint = format!("endpoint = '{}'\n", server.url());
    check(&endpoint, "", &["ok model", &server.url(), "16384 tokens"]);
    check(&format!("{endpoint}context_size = 99999\n"), "", &["warning model", "asks for 99999 tokens"]);
    let gone = "provider = 'endpoint'\nendpoint = 'http://127.0.0.1:1'\n";
    check(gone, "", &["problem model", "http://127.0.0.1:1", "change `endpoint`"]);
    check(
        "",
        "",
        &["warning model", "built-in model answers", "no model file is on this machine", "kontekst "],
    );
    check("", "absent", &["problem model", "there is no model absent.gguf in "]);
    check("", "builtin", &["ok model", "as the agent `default` asks"]);
    let models = tempfile::tempdir().unwrap();
    let header = HeaderBuilder::default().text("general.architecture", "llama").tensor(&[32, 1000], 0);
    fs::write(models.path().join("cut.gguf"), header.bytes()).unwrap();
    let model_dir = format!("model_dir = '{}'\n", models.path().display());
    check(&model_dir, "cut", &["problem model", "cut.gguf is not whole", "models pull"]);
    let mut whole = header.bytes();
    whole.resize(whole.len() + 200_000, 0);
    fs::write(models.path().join("cut.gguf"), whole).unwrap();
    check(&model_dir, "cut", &["ok model", "cut.gguf answers", "of memory"]);
}

#[test]
fn that_only_the_starter_model_answers_is_said_with_a_daemon_and_without() {
    let home = TestHome::with_config("bind = 'off'\n");
    let parts =
        ["warning model", "only the small built-in model answers", "no model file is on this machine"];
    has(&checks(&home).0, &parts);
    assert!(home.run(&["status"]).fails(6).contains(parts[2]));
    home.run(&["daemon", "restart"]).success();
    has(&checks(&home).0, &parts);
    home.run(&["run", "hello"]).success();
    has(&checks(&home).0, &parts);
    let status = home.run(&["status"]).success();
    let is_said =
        |line: &str| line.starts_with("warning ") && parts[1..].iter().all(|part| line.contains(part));
    assert_eq!(status.lines().filter(|line| is_said(line)).count(), 1, "{status}");

    // The model that `kontekst init` offers is the one that the remedy fetches.
    let offered = home.run(&["init"]).success();
    let remedies = checks(&home).0;
    match offered.split_once("suits this machine: ").and_then(|(_, rest)| rest.split(['(', ')']).nth(1)) {
        Some(source) => has(&remedies, &["warning model", &format!("models pull --use {source}`")]),
        None => has(&remedies, &["warning model", "no model of a useful size fits"]),
    }

    home.write("agents/default/config.toml", "model = 'builtin'\n");
    assert!(!home.run(&["status"]).success().contains("only the small"));
    has(&checks(&home).0, &["ok model", "as the agent `default` asks"]);
}

#[test]
fn the_daemon_is_looked_at_and_left_alone() {
    let home = TestHome::new("http://127.0.0.1:1");
    has(&checks(&home).0, &["ok daemon", "it is not running"]);
    home.run(&["daemon", "restart"]).success();
    let pid = home.daemon().unwrap();
    has(&checks(&home).0, &["ok daemon", &format!("(pid {})", pid.as_raw_nonzero())]);
    let socket = home.root().join("run/daemon.sock");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    has(&checks(&home).0, &["problem daemon", "open to other users", "chmod 600"]);
    assert_eq!(home.daemon(), Some(pid));
    kill_process(pid, Signal::KILL).unwrap();
    wait_for_exit(pid.as_raw_nonzero().get().unsigned_abs());
    has(&checks(&home).0, &["ok daemon", "what is left of an earlier one"]);
    assert!(socket.exists());
}

#[test]
fn a_restart_names_mistakes_and_does_not_stop_a_daemon_that_could_not_start_again() {
    let home = TestHome::with_config("bind = 'off'\n\nendpont = 'x'\n");
    home.write("agents/coder/config.toml", "modle = 'x'\n");
    let stderr = home.run(&["daemon", "restart"]).stderr;
    assert!(
        stderr.contains("config.toml:3: unknown key `endpont`, which has no effect (write `endpoint`)"),
        "{stderr}"
    );
    assert!(stderr.contains("agents/coder/config.toml:1: unknown key `modle`"), "{stderr}");
    assert_eq!(stderr.matches("endpont").count(), 1, "{stderr}");
    let pid = home.daemon();
    home.write("config.toml", "max_turns = 0\n");
    let stderr = home.run(&["daemon", "restart"]).fails(2);
    assert!(stderr.contains("line 1") && stderr.contains("the daemon was not stopped"), "{stderr}");
    assert_eq!(home.daemon(), pid);
}
