//! Subagents with the real daemon: on the terminal, on the wire, on disk, and after a crash.

use std::{
    future::Future,
    io::{BufRead as _, BufReader},
    time::Duration,
};

use kontekst_pb::{WatchWorkersRequest, WorkerEvent, worker_event::Event};

use kontekst::client;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tonic::{Code, Status, Streaming};

use crate::{
    fake_llama::{FakeLlama, Reply, gate},
    test_home::{TestHome, wait_with_output},
};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = client::runtime().unwrap();
    // The limit only keeps a hang from blocking the other tests.
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("hangs") })
}

fn spawn_reply(prompt: &str) -> Reply {
    Reply::calls([("spawn_worker", json!({"prompt": prompt}))])
}

/// Starts a model that starts a subagent, which reads a file.
fn model_for_a_reading_subagent() -> FakeLlama {
    FakeLlama::start([
        spawn_reply("look at f"),
        Reply::calls([("read_file", json!({"path": "f"}))]),
        Reply::text("f says text"),
        Reply::text("so it does"),
    ])
}

fn workers(home: &TestHome, id: &str) -> Vec<Value> {
    let out = home.run(&["sessions", "workers", id, "--json"]).success();
    serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().clone()
}

async fn watch(home: &TestHome, request: WatchWorkersRequest) -> Result<Streaming<WorkerEvent>, Box<Status>> {
    let home = kontekst_store::config::Home::find(Some(home.root())).unwrap();
    let channel = client::channel(client::ensure(&home).unwrap().stream).await.unwrap();
    Ok(client::agent(channel).watch_workers(request).await.map_err(Box::new)?.into_inner())
}

fn watch_request(session: &str) -> WatchWorkersRequest {
    WatchWorkersRequest { session_id: session.to_owned(), ..WatchWorkersRequest::default() }
}

/// Returns the events up to the exit of the first worker.
async fn events_until_exit(events: &mut Streaming<WorkerEvent>) -> Vec<WorkerEvent> {
    let mut received = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        let last = matches!(event.event, Some(Event::Exited(_)));
        received.push(event);
        if last {
            break;
        }
    }
    received
}

#[test]
fn a_subagent_is_shown_while_it_runs_and_listed_afterwards() {
    let (_model, home) = TestHome::with_server(model_for_a_reading_subagent());
    home.write("f", "text\n");
    let output = home.run(&["run", "--session", "s", "--workers", "--auto-approve", "ask a worker"]);
    assert_eq!(output.stdout, "so it does\n");
    let worker = workers(&home, "s")[0].clone();
    let id = worker["id"].as_str().unwrap().to_owned();
    let lines: Vec<&str> = output.stderr.lines().filter(|line| line.contains("worker 1")).collect();
    let started = format!("  worker 1 started (default, session {id}): look at f");
    assert_eq!(lines, [started.as_str(), "  worker 1: read_file", "  worker 1 is done"], "{}", output.stderr);
    assert_eq!(output.success(), "so it does\n");
    assert_eq!(
        (&worker["state"], &worker["turns"], &worker["tool_calls"], &worker["parent"]),
        (&json!("completed"), &json!(2), &json!(1), &json!("s"))
    );

    let listed = home.run(&["sessions"]).success();
    assert!(!listed.contains(&id) && listed.contains("Not listed: 1 of workers"), "{listed}");
    assert!(home.run(&["sessions", "list", "--all"]).success().contains(&id));
    let shown = home.run(&["sessions", "show", "s"]).success();
    assert!(shown.contains(&format!("Workers    {id} (default, completed)")), "{shown}");
    let shown = home.run(&["sessions", "show", &id]).success();
    assert!(shown.contains("Parent     s\n") && shown.contains("f says text"), "{shown}");
    assert!(home.run(&["sessions", "show", "last"]).success().starts_with("Session    s\n"));
    assert!(home.run(&["sessions", "workers", "s"]).success().contains("look at f"));

    assert_eq!(home.run(&["sessions", "delete", "s"]).success(), "deleted s and its worker\n");
    assert_eq!(home.run(&["sessions", "list", "--all", "--json"]).success().trim(), "[]");
    assert_eq!(std::fs::read_dir(home.root().join("teams")).unwrap().count(), 0);
}

#[test]
fn json_lines_include_subagent_events() {
    let (_model, home) = TestHome::with_server(model_for_a_reading_subagent());
    home.write("f", "text\n");
    let lines = home.events(&["run", "--json", "--workers", "--auto-approve", "--session", "s", "go"]);
    let event_names: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "worker")
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    let expect = [
        "started",
        "turn",
        "approval_requested",
        "approval_resolved",
        "tool_call",
        "turn",
        "completed",
        "exited",
    ];
    assert_eq!(event_names, expect);
    let asked = lines.iter().filter(|line| line["type"] == "tools_proposed");
    let askers: Vec<bool> = asked.map(|line| line["calls"][0]["worker_id"] != "").collect();
    assert_eq!(askers, [false, true]);

    // The daemon is stopped. Watching then means reading the log.
    home.run(&["daemon", "stop"]).success();
    let again = home.events(&["sessions", "workers", "s", "--watch", "--json"]);
    let first: Vec<&Value> = lines.iter().filter(|line| line["type"] == "worker").collect();
    assert_eq!(again.iter().collect::<Vec<_>>(), first);
}

#[test]
fn a_subagents_call_needs_its_own_approval() {
    let (_model, home) = TestHome::with_model([
        spawn_reply("write x"),
        Reply::calls([("write_file", json!({"path": "x", "content": "text"}))]),
    ]);
    let stderr = home.run(&["run", "--session", "s", "--workers", "--allow", "spawn_worker", "go"]).fails(3);
    assert!(stderr.contains("worker 1: denied"), "{stderr}");
    assert!(!home.work_dir().join("x").exists());
    let worker = &workers(&home, "s")[0];
    assert_eq!((&worker["state"], &worker["failure"]), (&json!("failed"), &json!("a call of it was denied")));
}

#[test]
fn subagents_of_a_killed_daemon_are_interrupted() {
    let (model, home) =
        TestHome::with_model([spawn_reply("think"), Reply::text("hm").then_hang(), Reply::text("again")]);
    let run = home.spawn(&["run", "--session", "s", "--workers", "--auto-approve", "go"]);
    model.wait_for_chats(2);
    assert_eq!(workers(&home, "s")[0]["state"], "running");
    kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
    wait_with_output(run).fails(6);
    assert_eq!(workers(&home, "s")[0]["state"], "interrupted");

    // The next daemon reports the interruption once, and the session can continue. The binary under test starts
    // it, not the test process.
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        let received = events_until_exit(&mut watch(&home, watch_request("s")).await.unwrap()).await;
        let Some(Event::Exited(exited)) = &received.last().unwrap().event else { panic!("{received:?}") };
        assert_eq!(exited.how, "interrupted");
        let again = events_until_exit(&mut watch(&home, watch_request("s")).await.unwrap()).await;
        assert_eq!(again, received);
    });
    assert_eq!(home.run(&["run", "--session", "s", "go on"]).success(), "again\n");
}

#[test]
fn early_late_and_slow_watchers_receive_every_event() {
    let (gate, key) = gate();
    let (model, home) = TestHome::with_model([
        spawn_reply("look at f"),
        Reply::calls([("list_files", json!({"pattern": "*"}))]).then_wait(gate),
        Reply::text("nothing"),
        Reply::text("done"),
    ]);
    let run = home.spawn(&["run", "--session", "s", "--workers", "--auto-approve", "go"]);
    model.wait_for_chats(2);
    block_on(async {
        let mut early = Vec::new();
        for _ in 0..100 {
            early.push(watch(&home, watch_request("s")).await.unwrap());
        }
        // A watcher that does not read does not delay the others.
        let slow = watch(&home, watch_request("s")).await.unwrap();
        key.open();
        let mut early_events = Vec::new();
        for mut watcher in early {
            early_events.push(events_until_exit(&mut watcher).await);
        }
        let late = events_until_exit(&mut watch(&home, watch_request("s")).await.unwrap()).await;
        let numbers: Vec<u64> = late.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        assert!(early_events.iter().all(|received| *received == late));
        drop(slow);

        let mut rest = watch(&home, WatchWorkersRequest { after: 6, past_only: true, ..watch_request("s") })
            .await
            .unwrap();
        let mut numbers = Vec::new();
        while let Some(event) = rest.message().await.unwrap() {
            numbers.push(event.seq);
        }
        assert_eq!(numbers, [7, 8]);
    });
    assert_eq!(wait_with_output(run).success(), "done\n");
}

#[test]
fn an_invalid_session_cannot_be_watched() {
    let (_model, home) = TestHome::with_model([]);
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        assert_eq!(watch(&home, watch_request("nobody")).await.unwrap_err().code(), Code::NotFound);
        for id in ["", "../s", "a b"] {
            assert_eq!(
                watch(&home, watch_request(id)).await.unwrap_err().code(),
                Code::InvalidArgument,
                "{id}"
            );
        }
    });
    assert!(!home.root().join("teams").exists());
}

#[test]
fn an_interrupted_run_cancels_its_subagents() {
    let (model, home) = TestHome::with_model([spawn_reply("think"), Reply::text("hm").then_hang()]);
    let mut run = home.spawn(&["run", "--session", "s", "--workers", "--auto-approve", "go"]);
    model.wait_for_chats(2);
    let mut watching = home.spawn(&["sessions", "workers", "s", "--watch"]);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("worker 1 started (default, session "));
    let pid = rustix::process::Pid::from_child(&run);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(lines.next().unwrap(), "worker 1 was cancelled");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert_eq!(workers(&home, "s")[0]["state"], "cancelled");
}
