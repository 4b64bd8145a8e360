//! Prompts at set times, with the real binary.

use serde_json::{Value, json as object};

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::{TestHome, wait_with_output},
    wait::wait_until,
};

fn json(home: &TestHome, words: &[&str]) -> Value {
    serde_json::from_str(&home.run(words).success()).unwrap()
}

#[test]
fn a_job_is_stored_run_by_hand_and_removed() {
    let (_model, home) =
        TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("two new letters\nfrom Ada")));
    let every =
        home.run(&["every", "mon..fri 07:30", "Any new letters, please tell me?", "--allow", "read_file"]);
    assert!(every.stderr.contains("job any-new-letters-please: mon..fri 07:30, next "), "{every:?}");
    every.success();
    let id = "any-new-letters-please";
    let file = home.root().join(format!("jobs/{id}.toml"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(home.run(&["jobs", "run", id]).success(), "two new letters\nfrom Ada\n");

    let results = json(&home, &["jobs", "results", "--json"]);
    let result = &results[0];
    assert_eq!(
        (&result["job"], &result["ending"], &result["answer"]),
        (&id.into(), &"done".into(), &"two new letters".into())
    );
    let session = result["session"].as_str().unwrap();
    assert!(home.run(&["sessions", "show", session]).success().contains("from Ada"));
    assert!(!home.root().join("active_session").exists(), "the active session is the user's");
    let page = home.run(&["jobs"]).success();
    assert!(page.contains("mon..fri 07:30") && page.contains(": done"), "{page}");

    let status = json(&home, &["status", "--json"]);
    assert!(status["stays_because"].as_str().unwrap().contains("1 job"), "{status}");
    home.run(&["jobs", "pause", id]).success();
    assert!(home.run(&["jobs"]).success().contains("paused"));
    assert_eq!(json(&home, &["status", "--json"])["stays_because"], "");
    home.run(&["jobs", "remove", id]).success();
    assert!(home.run(&["jobs", "show", id]).fails(2).contains("no job"));
}

#[test]
fn a_job_keeps_the_time_zone_of_whoever_made_it() {
    let home = TestHome::new(&FakeLlama::start([]).url());
    if !std::path::Path::new("/usr/share/zoneinfo/Asia/Kathmandu").exists() {
        return;
    }
    let run =
        |zone: &str, words: &[&str]| wait_with_output(home.command(words).env("TZ", zone).spawn().unwrap());
    home.run(&["daemon", "restart"]).success();
    let every = run("Asia/Kathmandu", &["every", "07:30", "--name", "news", "hi"]);
    assert!(every.stderr.contains("next 20") && !every.stderr.contains("Kathmandu"), "{every:?}");
    // 07:30 there is 01:45 in UTC, also for a process that is somewhere else.
    let next = json(&home, &["jobs", "list", "--json"])[0]["next_run"].as_str().unwrap().to_owned();
    assert!(next.ends_with("T01:45:00Z"), "{next}");
    let seen = run("America/New_York", &["jobs"]).success();
    assert!(seen.contains(" 07:30 Asia/Kathmandu"), "{seen}");
    assert!(home.read("jobs/news.toml").contains("time_zone = \"Asia/Kathmandu\"\n"));
    assert!(run("Asia/Kathmandu", &["jobs", "show", "news"]).success().contains(" 07:30\n"));
}

#[test]
fn a_job_does_not_run_in_another_directory_that_has_its_path() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    let [sub, other] = ["sub", "other"].map(|name| home.work_dir().join(name));
    std::fs::create_dir(&sub).unwrap();
    std::fs::create_dir(&other).unwrap();
    let dir = sub.to_str().unwrap();
    home.run(&["every", "1d", "--name", "daily", "--working-dir", dir, "hi"]).success();
    assert_eq!(home.run(&["jobs", "run", "daily"]).success(), "here\n");
    std::fs::rename(&sub, home.work_dir().join("moved")).unwrap();
    std::os::unix::fs::symlink("other", &sub).unwrap();
    let refused = home.run(&["jobs", "run", "daily"]).fails(2);
    assert!(refused.contains("is another one now"), "{refused}");
    let results = json(&home, &["jobs", "results", "--json"]);
    assert_eq!(results.as_array().unwrap().len(), 2, "{results}");
    std::fs::remove_file(&sub).unwrap();
    std::fs::rename(home.work_dir().join("moved"), &sub).unwrap();
    assert_eq!(home.run(&["jobs", "run", "daily"]).success(), "here\n");
    // What a killed `every` has left.
    home.write("jobs/.new-a1B2c3", "");
    home.run(&["jobs"]).success();
    assert!(!home.root().join("jobs/.new-a1B2c3").exists());
}

#[test]
fn the_daemon_makes_up_for_a_missed_run_once() {
    let (model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    home.run(&["every", "1d", "--name", "daily", "hi"]).success();
    home.run(&["daemon", "stop"]).success();
    // As if the machine had been off for some days.
    let file = home.read("jobs/daily.toml");
    let created = file.lines().find(|line| line.starts_with("created")).unwrap().to_owned();
    home.write("jobs/daily.toml", &file.replace(&created, "created = \"2026-01-01T00:00:00Z\""));
    home.run(&["daemon", "restart"]).success();
    let results = || json(&home, &["jobs", "results", "--json"]);
    wait_until("the missed run has ended", || results().as_array().is_some_and(|all| !all.is_empty()));
    assert_eq!(results()[0]["ending"], "done");
    let next = json(&home, &["jobs", "list", "--json"])[0]["next_run"].as_str().unwrap().to_owned();
    let handled: Value = serde_json::from_str(&home.read("jobs/daily.state.json")).unwrap();
    assert!(next.as_str() > handled["handled"].as_str().unwrap(), "{next}");
    // A second look finds nothing to do.
    home.run(&["jobs", "run", "daily", "--due"]).success();
    home.run(&["daemon", "restart"]).success();
    assert_eq!((results().as_array().unwrap().len(), model.chats().len()), (1, 1));
}

#[test]
fn a_call_that_nobody_approved_ends_a_job_and_the_result_says_so() {
    let call = || Reply::calls([("write_file", object!({"path": "x", "content": "y"}))]);
    let (model, home) = TestHome::with_server(FakeLlama::start([]).always(move |_| call()));
    home.run(&["every", "1w", "--name", "writer", "write x"]).success();
    home.run(&["jobs", "run", "writer"]).fails(3);
    let result = &json(&home, &["jobs", "inbox", "writer", "--json"])[0];
    assert_eq!(result["ending"], "needs approval");
    assert!(result["messages"].as_str().unwrap().contains("write_file"), "{result}");
    assert!(!home.work_dir().join("x").exists());
    // It waits, and the inbox says where.
    let run = result["parked_run"].as_str().unwrap();
    let inbox = home.run(&["jobs", "inbox"]).success();
    assert!(inbox.contains("parked") && inbox.contains("  `write_file` of \"x\" needs approval"), "{inbox}");
    model.push(Reply::text("written"));
    assert_eq!(home.run(&["approvals", "approve", run]).success(), "written\n");
    assert_eq!(std::fs::read_to_string(home.work_dir().join("x")).unwrap(), "y");
    assert!(json(&home, &["jobs", "inbox", "writer", "--json"])[0]["parked_run"].is_null());
}

#[test]
fn one_run_of_a_job_goes_on_at_a_time() {
    let (wait, key) = crate::fake_llama::gate();
    let (model, home) = TestHome::with_model([Reply::text("half ").then_wait(wait).then_text("whole")]);
    home.run(&["every", "1w", "--name", "slow", "--keep-session", "hi"]).success();
    let first = home.spawn(&["jobs", "run", "slow"]);
    model.wait_for_chats(1);
    assert!(home.run(&["jobs", "run", "slow"]).fails(1).contains("job `slow` is running"));
    assert!(home.run(&["jobs", "remove", "slow"]).fails(1).contains("is running"));
    key.open();
    assert_eq!(wait_with_output(first).success(), "half whole\n");
    assert!(home.root().join("sessions/job-slow.jsonl").exists());
}

#[test]
fn what_cannot_be_a_job_is_refused_with_a_hint() {
    let home = TestHome::new("http://127.0.0.1:1");
    for (words, expect) in [
        (&["every", "now", "hi"][..], "is not a time span"),
        (&["every", "1d", ""], "the prompt is empty"),
        (&["every", "1d", "--allow", "raed_file", "hi"], "read_file"),
        (&["every", "1d", "--agent", "nope", "hi"], "no agent `nope`"),
        (&["every", "1d", "-C", "/no/such/dir", "hi"], "`/no/such/dir` is no directory"),
        (&["jobs", "run", "nobody"], "no job `nobody`"),
    ] {
        let error = home.run(words).fails(2);
        assert!(error.contains(expect) && error.contains("hint:"), "{words:?} {error}");
    }
    assert!(home.daemon().is_none());
    assert!(home.run(&["jobs"]).success().contains("kontekst every"));
}

#[test]
fn a_model_without_a_file_is_refused_where_only_the_engine_answers() {
    let home = TestHome::with_config("provider = \"builtin\"\nbind = \"off\"\n");
    let error = home.run(&["every", "1d", "--model", "nope", "hi"]).fails(2);
    assert!(error.contains("there is no model `nope` in ") && error.contains("hint:"), "{error}");
    // A file elsewhere is not found by the run of the job either.
    home.run(&["every", "1d", "--model", "/etc/passwd", "hi"]).fails(2);
    assert_eq!(json(&home, &["jobs", "--json"]), object!([]));
}

#[test]
fn a_daemon_that_stops_says_what_ends_with_it() {
    let (model, home) = TestHome::with_model([Reply::text("half ").then_hang()]);
    for name in ["news", "notes", "paused"] {
        home.run(&["every", "1w", "--name", name, "hi"]).success();
    }
    home.run(&["jobs", "pause", "paused"]).success();
    let run = home.spawn(&["run", "hi"]);
    model.wait_for_chats(1);
    let stopped = home.run(&["daemon", "stop"]).fails(0);
    assert!(stopped.contains("the daemon has stopped and cancelled 1 run\n"), "{stopped}");
    assert!(stopped.contains("while no daemon runs, these jobs do not run: news, notes;"), "{stopped}");
    assert!(wait_with_output(run).fails(1).contains("the daemon cancelled the run"));
    home.run(&["daemon", "restart"]).success();
    for name in ["news", "notes"] {
        home.run(&["jobs", "remove", name]).success();
    }
    let stopped = home.run(&["daemon", "stop"]).fails(0);
    assert_eq!(stopped, "the daemon has stopped\n");
}

#[test]
fn a_job_has_the_settings_of_a_run() {
    let call = Reply::calls([("write_file", json_object())]);
    let (model, home) = TestHome::with_server(
        FakeLlama::start([call, Reply::text("written")]).always(|_| Reply::text("written")),
    );
    let words = ["every", "1d", "--name", "note", "--model", "other", "--system=--be brief", "--network"];
    let more = [
        "--check",
        "test -e state.txt",
        "--check",
        "test -s state.txt",
        "--allow",
        "write_file",
        "Make state.txt good.",
    ];
    home.run(&[&words[..], &more].concat()).success();
    let run = home.run(&["jobs", "run", "note"]);
    assert_eq!(run.code, 0, "{run:?}");
    for check in ["test -e state.txt", "test -s state.txt"] {
        assert!(run.stderr.contains(&format!("check `{check}`")), "{run:?}");
    }
    let chat = &model.chats()[0];
    assert_eq!(chat["model"], "other");
    assert!(chat["messages"][0]["content"].as_str().unwrap().contains("--be brief"), "{chat}");
    let file = home.read("jobs/note.toml");
    assert!(file.contains("network = true") && file.contains("check = ["), "{file}");
}

fn json_object() -> Value {
    object!({"path": "state.txt", "content": "good\n"})
}
