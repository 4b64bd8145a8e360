//! Tests of the logs: events are written before they are shown, shown once, and a log is whole again after a
//! crash.

use std::{fs, io::Write as _, path::PathBuf};

use super::*;

struct TestHome {
    _dir: tempfile::TempDir,
    home: Home,
}

fn test_home() -> TestHome {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("home"))).unwrap();
    home.create().unwrap();
    TestHome { _dir: dir, home }
}

impl TestHome {
    fn log(&self) -> Arc<SubagentLog> {
        SubagentLogs::new(&self.home).open(&id("root")).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.home.teams().join("root.jsonl")
    }
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn started() -> SubagentEventKind {
    SubagentEventKind::Started { agent: "default".into(), prompt: "do it".into(), depth: 1 }
}

fn exited(how: SubagentExit) -> SubagentEventKind {
    SubagentEventKind::Exited { how }
}

fn turn(number: u32) -> SubagentEventKind {
    SubagentEventKind::Turn { number }
}

fn append(log: &SubagentLog, subagent: &str, kind: SubagentEventKind) -> SubagentEvent {
    log.append(&id(subagent), &id("root"), kind).unwrap()
}

fn drain(cursor: &mut Cursor) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let events = cursor.read().unwrap();
        if events.is_empty() {
            return seen;
        }
        seen.extend(events.iter().map(|event| event.seq));
    }
}

#[test]
fn watchers_see_old_and_new_events_once_each() {
    let test_home = test_home();
    let log = test_home.log();
    let mut early = log.watch(0);
    assert!(drain(&mut early).is_empty());
    assert!(!test_home.path().exists(), "watching makes no file");
    append(&log, "w", started());
    append(&log, "w", turn(1));
    assert_eq!(drain(&mut early), [1, 2]);
    let (mut late, mut half) = (log.watch(0), log.watch(1));
    append(&log, "w", exited(SubagentExit::Completed));
    assert_eq!((drain(&mut early), drain(&mut late), drain(&mut half)), (vec![3], vec![1, 2, 3], vec![2, 3]));
    assert_eq!(fs::read_to_string(test_home.path()).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_watcher_wakes_when_there_is_an_event() {
    let test_home = test_home();
    let log = test_home.log();
    let mut cursor = log.watch(0);
    assert!(cursor.read().unwrap().is_empty());
    let waiting = tokio::spawn(async move {
        cursor.changed().await;
        cursor.read().unwrap().len()
    });
    append(&log, "w", started());
    assert_eq!(waiting.await.unwrap(), 1);
}

#[test]
fn subagents_of_a_daemon_that_ended_are_interrupted() {
    let test_home = test_home();
    let log = test_home.log();
    append(&log, "a", started());
    append(&log, "b", started());
    append(&log, "a", exited(SubagentExit::Completed));
    // Another process sees that a daemon has the log open.
    let seen = summarize(&SubagentLogs::new(&test_home.home).read(&id("root")).unwrap());
    assert_eq!((seen[0].exit, seen[1].exit), (Some(SubagentExit::Completed), None));
    drop(log);
    let seen = summarize(&SubagentLogs::new(&test_home.home).read(&id("root")).unwrap());
    assert_eq!(seen[1].exit, Some(SubagentExit::Interrupted));
    assert_eq!(fs::read_to_string(test_home.path()).unwrap().lines().count(), 3, "a reader writes nothing");

    let mut cursor = test_home.log().watch(0);
    assert_eq!(drain(&mut cursor), [1, 2, 3, 4]);
    drop(cursor);
    assert_eq!(drain(&mut test_home.log().watch(0)), [1, 2, 3, 4], "the interruption is written once");
}

#[test]
fn an_incomplete_last_line_is_removed_and_numbering_continues() {
    let test_home = test_home();
    append(&test_home.log(), "w", started());
    let mut file = fs::OpenOptions::new().append(true).open(test_home.path()).unwrap();
    file.write_all(b"{\"seq\":2,\"wor").unwrap();
    let log = test_home.log();
    assert_eq!(append(&log, "v", started()).seq, 3);
    assert_eq!(drain(&mut log.watch(0)), [1, 2, 3]);
}

#[test]
fn a_log_is_open_at_most_once() {
    let test_home = test_home();
    let logs = SubagentLogs::new(&test_home.home);
    let (a, b) = (logs.open(&id("root")).unwrap(), logs.open(&id("root")).unwrap());
    assert!(Arc::ptr_eq(&a, &b));
    assert!(!logs.exists(&id("root")));
    append(&a, "w", started());
    assert!(logs.exists(&id("root")));
    logs.delete(&id("root")).unwrap();
    logs.delete(&id("root")).unwrap();
    assert!(!logs.exists(&id("root")));
    // The session was created again after it had been deleted.
    append(&a, "v", started());
    assert_eq!(drain(&mut a.watch(0)), [2]);
    assert_eq!(logs.read(&id("root")).unwrap().len(), 1);
}

#[test]
fn shortening_a_long_log_loses_no_event_for_a_fast_watcher() {
    let test_home = test_home();
    let log = Arc::new(
        SubagentLog::open(&test_home.home, test_home.path(), id("root")).unwrap().with_limit(16 * 1024),
    );
    let mut fast = log.watch(0);
    let mut slow = log.watch(0);
    append(&log, "old", started());
    append(&log, "running", started());
    append(&log, "old", exited(SubagentExit::Completed));
    let mut fast_seen = drain(&mut fast);
    for number in 0..1000 {
        append(&log, "running", turn(number));
        if number % 7 == 0 {
            fast_seen.extend(drain(&mut fast));
        }
    }
    fast_seen.extend(drain(&mut fast));
    assert_eq!(fast_seen, (1..=1003).collect::<Vec<_>>());
    // A watcher that did not read all the time misses the dropped events and no others.
    let slow_seen = drain(&mut slow);
    assert!(slow_seen.is_sorted() && slow_seen.last() == Some(&1003), "{slow_seen:?}");
    assert!(fs::metadata(test_home.path()).unwrap().len() <= 17 * 1024);
    let kept = drain(&mut log.watch(0));
    assert_eq!(kept[0], 2, "the start of a running subagent is kept");
    assert!(kept.windows(2).skip(1).all(|pair| pair[1] == pair[0] + 1));
}

#[test]
fn long_texts_are_cut() {
    let test_home = test_home();
    let log = test_home.log();
    let long = "é".repeat(10_000);
    let event = append(&log, "w", SubagentEventKind::Completed { result: long.clone() });
    let SubagentEventKind::Completed { result } = event.kind else { panic!() };
    assert!(result.len() < 4100 && result.ends_with('…'));
    append(&log, &"w".repeat(128), SubagentEventKind::ToolCall { tool: long });
    assert!(fs::metadata(test_home.path()).unwrap().len() < 10_000);
}

#[test]
fn a_directory_in_place_of_a_log_is_an_error() {
    let test_home = test_home();
    test_home.home.create_dirs(&[test_home.home.teams()]).unwrap();
    fs::create_dir(test_home.path()).unwrap();
    let logs = SubagentLogs::new(&test_home.home);
    assert!(logs.open(&id("root")).is_err() && logs.read(&id("root")).is_err());
}
