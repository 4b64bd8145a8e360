//! A parked run, and the run that goes on with it.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use super::{edit, home};
use crate::{
    fake_llama::{FakeLlama, Reply, gate},
    test_home::wait_with_output,
};

/// Returns the messages of the last request that the model got, as one text.
fn last_request(model: &FakeLlama) -> String {
    model.chats().last().unwrap()["messages"].to_string()
}

#[test]
fn a_run_that_nobody_can_be_asked_about_is_parked_and_goes_on_where_it_stopped() {
    let (model, home) = home([edit("a", "one", "two"), Reply::text("It is done.")]);
    let error = home.run(&["run", "put two there"]).fails(3);
    let parked = &home.parked()[0];
    let name = parked["run"].as_str().unwrap();
    assert!(error.contains(&format!("`kontekst approvals approve {name}` goes on with it")), "{error}");
    assert_eq!(
        (&parked["prompt"], &parked["calls"][0]["tool"], home.file("a").as_str()),
        (&json!("put two there"), &json!("edit_file"), "one\n")
    );
    let mode = |path: &str| fs::metadata(home.root().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("parked"), mode(&format!("parked/{name}.json"))), (0o700, 0o600));
    let listed = home.run(&["approvals"]).success();
    assert!(listed.contains("edit_file of \"a\" needs approval"), "{listed}");
    let shown = home.run(&["approvals", "show", &name[..20]]).success();
    for part in ["put two there", "-one", "+two", "old_str:\n  one\n", &format!("approvals approve {name}")] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // After a restart, too.
    home.run(&["daemon", "restart"]).success();
    let output = home.run(&["approvals", "approve", &name[..20]]);
    assert_eq!((output.stdout.as_str(), output.code), ("It is done.\n", 0), "{output:?}");
    assert_eq!((home.file("a").as_str(), home.parked().len()), ("two\n", 0));
    // The model has read its prompt, its call and the result, each once.
    let request = last_request(&model);
    for part in ["put two there", "old_str", "Replaced 1 occurrence"] {
        assert_eq!(request.matches(part).count(), 1, "{part}: {request}");
    }
    assert!(home.run(&["approvals", "approve", name]).fails(2).contains("no parked run"));
    let session = home.json(&["sessions", "--json"]);
    assert_eq!(session.as_array().map(Vec::len).or(session["sessions"].as_array().map(Vec::len)), Some(1));
}

#[test]
fn a_denial_with_a_reason_goes_to_the_model_and_one_without_forgets_the_run() {
    let (model, home) = home([edit("a", "one", "two"), Reply::text("I leave it."), edit("a", "one", "two")]);
    let name = home.park(&["put two there"]);
    let denied = home.run(&["approvals", "deny", &name, "--reason", "use the other file"]);
    assert_eq!(denied.success(), "I leave it.\n");
    assert!(last_request(&model).contains("use the other file"));
    let name = home.park(&["--new", "put two there"]);
    assert_eq!(home.run(&["approvals", "deny", &name]).success(), format!("denied  {name}\n"));
    assert_eq!((home.parked().len(), model.chats().len(), home.file("a").as_str()), (0, 3, "one\n"));
}

#[test]
fn a_file_that_changed_since_is_not_touched_and_the_run_waits_with_what_the_call_would_do_now() {
    let (_model, home) = home([edit("a", "one", "two"), Reply::text("done")]);
    let name = home.park(&["put two there"]);
    home.put("a", "one and more\n");
    let error = home.run(&["approvals", "approve", &name]).fails(3);
    let changed = "`edit_file` of \"a\" was not run: the file has changed since the run was parked";
    assert!(error.contains(changed) && error.contains(&format!("approvals show {name}`")), "{error}");
    assert!(!error.contains("--allow"), "{error}");
    assert_eq!(home.file("a"), "one and more\n");
    let listed = home.run(&["approvals"]).success();
    assert!(!listed.contains("interrupted"), "nothing was begun: {listed}");
    let parked = home.parked();
    assert_eq!((parked.len(), parked[0]["run"].as_str()), (1, Some(name.as_str())));
    assert!(parked[0]["calls"][0]["preview"].as_str().unwrap().contains("+two and more"), "{parked:?}");
    assert_eq!(home.run(&["approvals", "approve", &name]).success(), "done\n");
    assert_eq!((home.file("a").as_str(), home.parked().len()), ("two and more\n", 0));
}

#[test]
fn one_call_can_be_approved_alone_and_settings_of_the_run_are_kept() {
    let both = Reply::calls([
        ("edit_file", json!({"path": "a", "old_str": "one", "new_str": "two"})),
        ("write_file", json!({"path": "b", "content": "new\n"})),
        ("write_file", json!({"path": "c", "content": "new\n"})),
    ]);
    let (model, home) = home([both, Reply::text("half")]);
    let name = home.park(&["--allow", "edit_file", "--system", "Be brief in all things.", "go"]);
    let calls = home.parked()[0]["calls"].as_array().unwrap().clone();
    // The call that --allow covers did not wait, and it has not run either.
    assert_eq!((calls.len(), home.file("a").as_str()), (3, "one\n"));
    let id = calls[1]["call"].as_str().unwrap();
    assert!(home.run(&["approvals", "approve", &name, "--call", "zz"]).fails(2).contains("no call"));
    assert_eq!(home.run(&["approvals", "approve", &name, "--call", id]).success(), "half\n");
    assert!(home.work_dir().join("b").exists() && !home.work_dir().join("c").exists());
    let request = last_request(&model);
    assert!(request.contains("Be brief in all things.") && request.contains("approved only other calls"));
}

#[test]
fn a_rule_that_denies_by_now_wins() {
    let (model, home) = home([edit("a", "one", "two"), Reply::text("forbidden, then")]);
    let name = home.park(&["put two there"]);
    home.write("policy.toml", "deny = [\"edit_file\"]\n");
    assert_eq!(home.run(&["approvals", "approve", &name]).success(), "forbidden, then\n");
    assert_eq!(home.file("a"), "one\n");
    assert!(last_request(&model).contains("a rule of the user forbids it"));
}

#[test]
fn it_can_wait_again_and_keeps_its_name() {
    let (model, home) =
        home([edit("a", "one", "two"), edit("a", "two", "three"), Reply::text("now it is three")]);
    let name = home.park(&["put two there twice"]);
    home.run(&["approvals", "approve", &name]).fails(3);
    assert_eq!((home.file("a").as_str(), home.parked()[0]["run"].as_str()), ("two\n", Some(name.as_str())));
    assert_eq!(home.run(&["approvals", "approve", &name]).success(), "now it is three\n");
    assert_eq!(home.file("a"), "three\n");
    let request = last_request(&model);
    assert_eq!(request.matches("Replaced 1 occurrence").count(), 2, "{request}");
    assert_eq!(request.matches("put two there twice").count(), 1, "{request}");
}

#[test]
fn other_runs_may_use_the_session_meanwhile() {
    let (model, home) =
        home([Reply::text("hello"), edit("a", "one", "two"), Reply::text("other"), Reply::text("done")]);
    home.run(&["run", "--session", "s", "hi"]).success();
    let name = home.park(&["--session", "s", "put two there"]);
    assert_eq!(home.run(&["run", "--session", "s", "what now?"]).success(), "other\n");
    let output = home.run(&["approvals", "approve", &name]);
    assert!(output.stderr.contains("goes on in a copy of it"), "{output:?}");
    assert_eq!(output.success(), "done\n");
    assert_eq!(home.file("a"), "two\n");
    let request = last_request(&model);
    assert!(request.contains("hello") && request.contains("put two there") && !request.contains("what now?"));
    // The other conversation has none of it.
    assert!(!home.read("sessions/s.jsonl").contains("done\""));
}

#[test]
fn one_of_two_terminals_goes_on_and_the_other_is_refused() {
    let (wait, key) = gate();
    let (model, home) =
        home([edit("a", "one", "two"), Reply::text("half ").then_wait(wait).then_text("whole")]);
    let name = home.park(&["put two there"]);
    let first = home.spawn(&["approvals", "approve", &name]);
    model.wait_for_chats(2);
    assert!(home.run(&["approvals", "approve", &name]).fails(2).contains("another client goes on"));
    assert!(home.run(&["approvals", "deny", &name]).fails(1).contains("another client goes on"));
    key.open();
    assert_eq!(wait_with_output(first).success(), "half whole\n");
    assert_eq!((home.file("a").as_str(), home.parked().len()), ("two\n", 0));
}

#[test]
fn a_run_that_could_not_go_on_stays_parked() {
    let (_model, home) = home([edit("a", "one", "two"), Reply::error(400, "no"), Reply::text("done")]);
    let name = home.park(&["put two there"]);
    home.run(&["approvals", "approve", &name]).fails(1);
    // The call has run, and only the answer is missing.
    assert_eq!((home.file("a").as_str(), home.parked().len()), ("two\n", 1));
    assert!(home.run(&["approvals"]).success().contains("begun and interrupted"));
    home.put("a", "one\n");
    assert_eq!(home.run(&["approvals", "approve", &name]).success(), "done\n");
    assert_eq!((home.file("a").as_str(), home.parked().len()), ("one\n", 0), "it ran once");
}

#[test]
fn nothing_is_parked_where_it_is_not_wanted() {
    let edits = || edit("a", "one", "two");
    let (_model, home) = home([edits(), edits(), edits(), Reply::text("without")]);
    home.run(&["run", "--park", "never", "go"]).fails(3);
    let config = home.read("config.toml");
    home.write("config.toml", &format!("{config}[approvals]\npark = \"never\"\n"));
    home.run(&["daemon", "restart"]).success();
    assert!(!home.run(&["run", "go"]).fails(3).contains("is parked"));
    assert_eq!(home.run(&["run", "--on-deny", "continue", "go"]).success(), "without\n");
    assert_eq!(home.parked().len(), 0);
}

#[test]
fn everything_can_be_forgotten_at_once_and_a_lost_session_is_said() {
    let (_model, home) = home([edit("a", "one", "two"), edit("a", "one", "two")]);
    let name = home.park(&["--session", "s", "put two there"]);
    home.park(&["--session", "t", "put two there"]);
    home.run(&["sessions", "delete", "s", "--force"]).success();
    assert!(home.run(&["approvals", "approve", &name]).fails(2).contains("no longer has the parked run"));
    home.run(&["approvals", "deny", "--all"]).success();
    assert_eq!((home.parked().len(), home.file("a").as_str()), (0, "one\n"));
    assert_eq!(home.run(&["approvals"]).success(), "nothing waits for a decision\n");
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest_one() {
    let (_model, home) = home([edit("a", "one", "two")]);
    let name = home.park(&["put two there"]);
    let wrong = format!("x{}", &name[1..13]);
    let error = home.run(&["approvals", "approve", &wrong]).fails(2);
    assert!(error.contains(&format!("did you mean `{name}`?")), "{error}");
}

#[test]
fn output_json_names_the_parked_run() {
    let (_model, home) = home([edit("a", "one", "two"), Reply::text("done")]);
    let output = home.run(&["run", "--output", "json", "put two there"]);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&result["ending"], output.code), (&json!("needs_approval"), 3));
    let name = result["parked_run_id"].as_str().unwrap();
    let resumed = home.run(&["approvals", "approve", name, "--json"]).success();
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!((&resumed["answer"], &resumed["parked_run_id"]), (&json!("done"), &Value::Null));
    assert_eq!(resumed["files_changed"], json!(["a"]));
}

#[test]
fn the_settings_of_a_command_run_are_kept_and_the_approval_is_for_this_line() {
    let call = Reply::calls([("run_command", json!({"command": "echo x >> made"}))]);
    let (_model, home) = home([call, Reply::text("ran")]);
    let name = home.park(&["go"]);
    assert!(!home.work_dir().join("made").exists());
    assert_eq!(home.run(&["approvals", "approve", &name]).success(), "ran\n");
    assert_eq!(home.file("made"), "x\n");
}

/// A call of a worker is not one at which its parent could wait.
#[test]
fn a_worker_that_needs_an_approval_is_denied_and_not_parked() {
    let spawn = Reply::calls([("spawn_worker", json!({"prompt": "write"}))]);
    let (_model, home) = home([spawn, edit("a", "one", "two")]);
    home.run(&["run", "--workers", "--allow", "spawn_worker", "go"]).fails(3);
    assert_eq!((home.parked().len(), home.file("a").as_str()), (0, "one\n"));
}

#[test]
fn a_parked_run_goes_on_only_in_its_own_directory() {
    let (_model, home) = home([edit("a", "one", "two"), Reply::text("It is done.")]);
    let name = home.park(&["put two there"]);
    let (work, moved) = (home.work_dir(), home.work_dir().with_file_name("moved"));
    fs::rename(&work, &moved).unwrap();
    let other = home.work_dir().with_file_name("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "one\n").unwrap();
    std::os::unix::fs::symlink("other", &work).unwrap();
    let refused = home.run(&["approvals", "approve", &name]).fails(2);
    assert!(refused.contains("is another one now"), "{refused}");
    assert!(home.run(&["approvals", "show", &name]).success().contains("is another one now"));
    assert_eq!(fs::read_to_string(other.join("a")).unwrap(), "one\n");
    fs::remove_file(&work).unwrap();
    fs::rename(&moved, &work).unwrap();
    assert_eq!(home.run(&["approvals", "approve", &name]).success(), "It is done.\n");
    assert_eq!(home.file("a"), "two\n");
}
