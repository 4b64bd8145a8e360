//! Logs of teams: written before they are told, told once, and whole again after a crash.

use std::{fs, io::Write as _, path::PathBuf};

use super::*;

struct Bench {
    _dir: tempfile::TempDir,
    home: Home,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("home"))).unwrap();
    home.create().unwrap();
    Bench { _dir: dir, home }
}

impl Bench {
    fn team(&self) -> Arc<SubagentLog> {
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

fn append(team: &SubagentLog, worker: &str, what: SubagentEventKind) -> SubagentEvent {
    team.append(&id(worker), &id("root"), what).unwrap()
}

fn drain(cursor: &mut Cursor) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let news = cursor.read().unwrap();
        if news.is_empty() {
            return seen;
        }
        seen.extend(news.iter().map(|event| event.seq));
    }
}

#[test]
fn watchers_hear_what_was_and_what_comes_once_each() {
    let bench = bench();
    let team = bench.team();
    let mut early = team.watch(0);
    assert!(drain(&mut early).is_empty());
    assert!(!bench.path().exists(), "watching makes no file");
    append(&team, "w", started());
    append(&team, "w", turn(1));
    assert_eq!(drain(&mut early), [1, 2]);
    let (mut late, mut half) = (team.watch(0), team.watch(1));
    append(&team, "w", exited(SubagentExit::Completed));
    assert_eq!((drain(&mut early), drain(&mut late), drain(&mut half)), (vec![3], vec![1, 2, 3], vec![2, 3]));
    assert_eq!(fs::read_to_string(bench.path()).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_watcher_wakes_when_there_is_something() {
    let bench = bench();
    let team = bench.team();
    let mut cursor = team.watch(0);
    assert!(cursor.read().unwrap().is_empty());
    let waiting = tokio::spawn(async move {
        cursor.changed().await;
        cursor.read().unwrap().len()
    });
    append(&team, "w", started());
    assert_eq!(waiting.await.unwrap(), 1);
}

#[test]
fn workers_that_a_daemon_left_behind_are_interrupted() {
    let bench = bench();
    let team = bench.team();
    append(&team, "a", started());
    append(&team, "b", started());
    append(&team, "a", exited(SubagentExit::Completed));
    // Another process sees that somebody has it open.
    let seen = summarize(&SubagentLogs::new(&bench.home).read(&id("root")).unwrap());
    assert_eq!((seen[0].exit, seen[1].exit), (Some(SubagentExit::Completed), None));
    drop(team);
    let seen = summarize(&SubagentLogs::new(&bench.home).read(&id("root")).unwrap());
    assert_eq!(seen[1].exit, Some(SubagentExit::Interrupted));
    assert_eq!(fs::read_to_string(bench.path()).unwrap().lines().count(), 3, "a reader writes nothing");

    let mut cursor = bench.team().watch(0);
    assert_eq!(drain(&mut cursor), [1, 2, 3, 4]);
    drop(cursor);
    assert_eq!(drain(&mut bench.team().watch(0)), [1, 2, 3, 4], "said once");
}

#[test]
fn a_torn_end_is_cut_off_and_the_numbers_go_on() {
    let bench = bench();
    append(&bench.team(), "w", started());
    let mut file = fs::OpenOptions::new().append(true).open(bench.path()).unwrap();
    file.write_all(b"{\"seq\":2,\"wor").unwrap();
    let team = bench.team();
    assert_eq!(append(&team, "v", started()).seq, 3);
    assert_eq!(drain(&mut team.watch(0)), [1, 2, 3]);
}

#[test]
fn one_team_is_open_once() {
    let bench = bench();
    let teams = SubagentLogs::new(&bench.home);
    let (a, b) = (teams.open(&id("root")).unwrap(), teams.open(&id("root")).unwrap());
    assert!(Arc::ptr_eq(&a, &b));
    assert!(!teams.exists(&id("root")));
    append(&a, "w", started());
    assert!(teams.exists(&id("root")));
    teams.delete(&id("root")).unwrap();
    teams.delete(&id("root")).unwrap();
    assert!(!teams.exists(&id("root")));
    // The log of a session that was made again.
    append(&a, "v", started());
    assert_eq!(drain(&mut a.watch(0)), [2]);
    assert_eq!(teams.read(&id("root")).unwrap().len(), 1);
}

#[test]
fn a_long_log_is_shortened_and_no_watcher_notices() {
    let bench = bench();
    let team =
        Arc::new(SubagentLog::open(&bench.home, bench.path(), id("root")).unwrap().with_limit(16 * 1024));
    let mut fast = team.watch(0);
    let mut slow = team.watch(0);
    append(&team, "old", started());
    append(&team, "running", started());
    append(&team, "old", exited(SubagentExit::Completed));
    let mut heard = drain(&mut fast);
    for number in 0..1000 {
        append(&team, "running", turn(number));
        if number % 7 == 0 {
            heard.extend(drain(&mut fast));
        }
    }
    heard.extend(drain(&mut fast));
    assert_eq!(heard, (1..=1003).collect::<Vec<_>>());
    // One that slept all the time misses what was dropped, and no more.
    let slept = drain(&mut slow);
    assert!(slept.is_sorted() && slept.last() == Some(&1003), "{slept:?}");
    assert!(fs::metadata(bench.path()).unwrap().len() <= 17 * 1024);
    let kept = drain(&mut team.watch(0));
    assert_eq!(kept[0], 2, "the beginning of a worker that runs is kept");
    assert!(kept.windows(2).skip(1).all(|pair| pair[1] == pair[0] + 1));
}

#[test]
fn long_texts_are_cut() {
    let bench = bench();
    let team = bench.team();
    let long = "é".repeat(10_000);
    let event = append(&team, "w", SubagentEventKind::Completed { result: long.clone() });
    let SubagentEventKind::Completed { result } = event.kind else { panic!() };
    assert!(result.len() < 4100 && result.ends_with('…'));
    append(&team, &"w".repeat(128), SubagentEventKind::ToolCall { tool: long });
    assert!(fs::metadata(bench.path()).unwrap().len() < 10_000);
}

#[test]
fn what_is_no_log_is_refused() {
    let bench = bench();
    bench.home.create_teams().unwrap();
    fs::create_dir(bench.path()).unwrap();
    let teams = SubagentLogs::new(&bench.home);
    assert!(teams.open(&id("root")).is_err() && teams.read(&id("root")).is_err());
}
