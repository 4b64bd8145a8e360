//! Workers of the real daemon: on the terminal, on the wire, on disk, and after a crash.

use std::{
    future::Future,
    io::{BufRead as _, BufReader},
    time::Duration,
};

use kontekst::{
    client,
    pb::{WatchWorkersRequest, WorkerEvent, worker_event::Event},
};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tonic::{Code, Status, Streaming};

use crate::{
    fake_llama::{FakeLlama, Reply, gate},
    home::{Home, finish},
};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = client::runtime().unwrap();
    // Nothing here takes long; a hang must not hold the suite.
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("hangs") })
}

fn spawn(prompt: &str) -> Reply {
    Reply::calls([("spawn_worker", json!({"prompt": prompt}))])
}

/// A worker that reads a file and says so.
fn reading() -> FakeLlama {
    FakeLlama::start([
        spawn("look at f"),
        Reply::calls([("read_file", json!({"path": "f"}))]),
        Reply::text("f says text"),
        Reply::text("so it does"),
    ])
}

fn workers(home: &Home, id: &str) -> Vec<Value> {
    let out = home.run(&["sessions", "workers", id, "--json"]).success();
    serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().clone()
}

async fn watch(home: &Home, request: WatchWorkersRequest) -> Result<Streaming<WorkerEvent>, Box<Status>> {
    let home = kontekst::config::Home::find(Some(home.root())).unwrap();
    let channel = client::channel(client::ensure(&home).unwrap().stream).await.unwrap();
    Ok(client::agent(channel).watch_workers(request).await.map_err(Box::new)?.into_inner())
}

fn of(session: &str) -> WatchWorkersRequest {
    WatchWorkersRequest { session_id: session.to_owned(), ..WatchWorkersRequest::default() }
}

/// Up to the end of the first worker.
async fn first_exit(events: &mut Streaming<WorkerEvent>) -> Vec<WorkerEvent> {
    let mut heard = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        let last = matches!(event.event, Some(Event::Exited(_)));
        heard.push(event);
        if last {
            break;
        }
    }
    heard
}

#[test]
fn a_worker_is_seen_while_it_works_and_found_afterwards() {
    let model = reading();
    let home = Home::new(&model.url());
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
    assert!(shown.contains(&format!("Workers   {id} (default, completed)")), "{shown}");
    let shown = home.run(&["sessions", "show", &id]).success();
    assert!(shown.contains("Parent    s\n") && shown.contains("f says text"), "{shown}");
    assert!(home.run(&["sessions", "show", "last"]).success().starts_with("Session   s\n"));
    assert!(home.run(&["sessions", "workers", "s"]).success().contains("look at f"));

    assert_eq!(home.run(&["sessions", "delete", "s"]).success(), "deleted s and its worker\n");
    assert_eq!(home.run(&["sessions", "list", "--all", "--json"]).success().trim(), "[]");
    assert_eq!(std::fs::read_dir(home.root().join("teams")).unwrap().count(), 0);
    model.assert_clean();
}

#[test]
fn json_lines_have_the_workers_events() {
    let model = reading();
    let home = Home::new(&model.url());
    home.write("f", "text\n");
    let out = home.run(&["run", "--json", "--workers", "--auto-approve", "--session", "s", "go"]).success();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<&str> = lines
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
    assert_eq!(told, expect);
    let asked = lines.iter().filter(|line| line["type"] == "tools_proposed");
    let askers: Vec<bool> = asked.map(|line| line["calls"][0]["worker_id"] != "").collect();
    assert_eq!(askers, [false, true]);

    // The daemon stopped: nobody works, and watching is reading.
    home.run(&["daemon", "stop"]).success();
    let watched = home.run(&["sessions", "workers", "s", "--watch", "--json"]).success();
    let again: Vec<Value> = watched.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first: Vec<&Value> = lines.iter().filter(|line| line["type"] == "worker").collect();
    assert_eq!(again.iter().collect::<Vec<_>>(), first);
}

#[test]
fn a_workers_call_needs_a_yes_of_its_own() {
    let model = FakeLlama::start([
        spawn("write x"),
        Reply::calls([("write_file", json!({"path": "x", "content": "text"}))]),
    ]);
    let home = Home::new(&model.url());
    let stderr = home.run(&["run", "--session", "s", "--workers", "--allow", "spawn_worker", "go"]).fails(3);
    assert!(stderr.contains("worker 1: denied"), "{stderr}");
    assert!(!home.work().join("x").exists());
    let worker = &workers(&home, "s")[0];
    assert_eq!((&worker["state"], &worker["failure"]), (&json!("failed"), &json!("a call of it was denied")));
}

#[test]
fn a_daemon_that_was_killed_leaves_workers_that_were_interrupted() {
    let model = FakeLlama::start([spawn("think"), Reply::text("hm").then_hang(), Reply::text("again")]);
    let home = Home::new(&model.url());
    let run = home.spawn(&["run", "--session", "s", "--workers", "--auto-approve", "go"]);
    model.wait_for_chats(2);
    assert_eq!(workers(&home, "s")[0]["state"], "running");
    kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
    finish(run).fails(6);
    assert_eq!(workers(&home, "s")[0]["state"], "interrupted");

    // The next daemon says so to those who watch, once, and the session goes on. The binary under test
    // starts it, not the test process.
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        let heard = first_exit(&mut watch(&home, of("s")).await.unwrap()).await;
        let Some(Event::Exited(exited)) = &heard.last().unwrap().event else { panic!("{heard:?}") };
        assert_eq!(exited.how, "interrupted");
        let again = first_exit(&mut watch(&home, of("s")).await.unwrap()).await;
        assert_eq!(again, heard);
    });
    assert_eq!(home.run(&["run", "--session", "s", "go on"]).success(), "again\n");
    model.assert_clean();
}

#[test]
fn watchers_hear_all_of_it_early_late_and_slow() {
    let (gate, key) = gate();
    let model = FakeLlama::start([
        spawn("look at f"),
        Reply::calls([("list_files", json!({"pattern": "*"}))]).then_wait(gate),
        Reply::text("nothing"),
        Reply::text("done"),
    ]);
    let home = Home::new(&model.url());
    let run = home.spawn(&["run", "--session", "s", "--workers", "--auto-approve", "go"]);
    model.wait_for_chats(2);
    block_on(async {
        let mut early = Vec::new();
        for _ in 0..100 {
            early.push(watch(&home, of("s")).await.unwrap());
        }
        // One that does not read is nobody's trouble.
        let slow = watch(&home, of("s")).await.unwrap();
        key.open();
        let mut told = Vec::new();
        for mut watcher in early {
            told.push(first_exit(&mut watcher).await);
        }
        let late = first_exit(&mut watch(&home, of("s")).await.unwrap()).await;
        let numbers: Vec<u64> = late.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        assert!(told.iter().all(|heard| *heard == late));
        drop(slow);

        let mut rest =
            watch(&home, WatchWorkersRequest { after: 6, past_only: true, ..of("s") }).await.unwrap();
        let mut numbers = Vec::new();
        while let Some(event) = rest.message().await.unwrap() {
            numbers.push(event.seq);
        }
        assert_eq!(numbers, [7, 8]);
    });
    assert_eq!(finish(run).success(), "done\n");
}

#[test]
fn what_is_no_session_cannot_be_watched() {
    let model = FakeLlama::start([]);
    let home = Home::new(&model.url());
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        assert_eq!(watch(&home, of("nobody")).await.unwrap_err().code(), Code::NotFound);
        for id in ["", "../s", "a b"] {
            assert_eq!(watch(&home, of(id)).await.unwrap_err().code(), Code::InvalidArgument, "{id}");
        }
    });
    assert!(!home.root().join("teams").exists());
}

#[test]
fn a_run_that_is_interrupted_ends_its_workers() {
    let model = FakeLlama::start([spawn("think"), Reply::text("hm").then_hang()]);
    let home = Home::new(&model.url());
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
