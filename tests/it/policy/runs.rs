//! The policy in `kontekst run`, and what `kontekst policy` says about it.

use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::TestHome,
};

fn write(path: &str) -> Reply {
    Reply::calls([("write_file", json!({"path": path, "content": "x\n"}))])
}

fn command(line: &str) -> Reply {
    Reply::calls([("run_command", json!({"command": line}))])
}

/// Returns a home whose commands run without a sandbox, with this policy.
fn home(model: &FakeLlama, policy: &str) -> TestHome {
    let endpoint = model.url();
    let home = TestHome::with_config(&format!(
        "provider = \"endpoint\"\nendpoint = \"{endpoint}\"\nbind = \"off\"\n[commands]\nsandbox = \"off\"\n"
    ));
    home.write("policy.toml", policy);
    home
}

/// Starts a model that answers with `script`, and returns it with such a home.
fn home_with(policy: &str, script: impl IntoIterator<Item = Reply>) -> (FakeLlama, TestHome) {
    let model = FakeLlama::start(script);
    let home = home(&model, policy);
    (model, home)
}

fn exists(home: &TestHome, name: &str) -> bool {
    home.work_dir().join(name).exists()
}

#[test]
fn a_call_that_a_rule_allows_runs_without_a_terminal() {
    let (_model, home) = home_with(
        "[headless]\nallow = [\"write_file(*.txt)\", \"run_command(touch)\"]\n",
        [write("a.txt"), command("touch made"), Reply::text("done")],
    );
    assert_eq!(home.run(&["run", "go"]).success(), "done\n");
    assert!(exists(&home, "a.txt") && exists(&home, "made"));
}

#[test]
fn a_denied_call_never_runs_and_the_user_and_the_model_read_which_rule_it_was() {
    for flags in [&["--auto-approve"][..], &["--allow", "write_file,run_command(git push)"], &[]] {
        let (model, home) = home_with(
            "deny = [\"write_file\",\n  \"run_command(git push)\"]\n",
            [write("a.txt"), command("git push"), Reply::text("done")],
        );
        let output = home.run(&[&["run"], flags, &["go"]].concat());
        assert!(!exists(&home, "a.txt"));
        let file = home.root().join("policy.toml").display().to_string();
        let rules =
            [format!("deny `write_file` ({file}:1)"), format!("deny `run_command(git push)` ({file}:2)")];
        for (rule, result) in rules.iter().zip(model.results()) {
            assert!(result.contains(rule), "{result}");
            assert!(output.stderr.contains(rule), "{output:?}");
        }
        assert_eq!(output.success(), "done\n");
    }
}

#[test]
fn a_rule_that_asks_counts_more_than_free_reading_and_less_than_the_flags() {
    let read = || Reply::calls([("read_file", json!({"path": "a.txt"}))]);
    let policy = "ask = [\"read_file(a.txt)\"]\n";
    let (_model, refusing) = home_with(policy, [read()]);
    std::fs::write(refusing.work_dir().join("a.txt"), "content").unwrap();
    let error = refusing.run(&["run", "go"]).fails(3);
    assert!(error.contains("a rule asks about it: ask `read_file(a.txt)`"), "{error}");
    let (model, allowing) = home_with(policy, [read(), Reply::text("done")]);
    std::fs::write(allowing.work_dir().join("a.txt"), "content").unwrap();
    allowing.run(&["run", "--allow", "read_file", "go"]).success();
    assert_eq!(model.results(), ["1: content"]);
}

#[test]
fn no_tool_shows_what_a_rule_keeps_from_being_read() {
    let (model, home) = home_with(
        "deny = [\"read_file(kept/)\"]\nallow = [\"edit_file\"]\n",
        [
            Reply::calls([("search_files", json!({"pattern": "needle"}))]),
            Reply::calls([(
                "edit_file",
                json!({"path": "kept/a.txt", "old_str": "nothing", "new_str": "x"}),
            )]),
            Reply::text("done"),
        ],
    );
    std::fs::create_dir(home.work_dir().join("kept")).unwrap();
    std::fs::write(home.work_dir().join("kept/a.txt"), "needle hidden\n").unwrap();
    std::fs::write(home.work_dir().join("b.txt"), "needle open\n").unwrap();
    home.run(&["run", "look at kept/a.txt"]).success();
    let requests = model.chats().iter().map(Value::to_string).collect::<String>();
    assert!(requests.contains("needle open") && !requests.contains("needle hidden"), "{requests}");
}

#[test]
fn a_file_with_a_mistake_refuses_the_run() {
    let (_model, broken) = home_with("allow = [\"edit_fil\"]\n", []);
    let error = broken.run(&["run", "go"]).fails(2);
    assert!(error.contains("policy.toml, line 1, column 10: no tool is called `edit_fil`"), "{error}");
    broken.run(&["policy", "check", "edit_file", "x"]).fails(2);
}

#[test]
fn the_project_can_tighten_and_a_line_that_may_be_denied_is_not_approved_automatically() {
    let (_model, tightened) = home_with("allow = [\"write_file\"]\n", [write("a.txt")]);
    std::fs::create_dir(tightened.work_dir().join(".kontekst")).unwrap();
    std::fs::write(tightened.work_dir().join(".kontekst/policy.toml"), "ask = [\"write_file\"]\n").unwrap();
    tightened.run(&["run", "go"]).fails(3);
    let (_model, unclear) =
        home_with("deny = [\"run_command(git push)\"]\n", [command("V=push; git $V; touch made")]);
    let error = unclear.run(&["run", "--auto-approve", "go"]).fails(3);
    assert!(error.contains("what the line runs is not certain"), "{error}");
    assert!(!exists(&unclear, "made"));
}

#[test]
fn a_subagent_has_the_rules_of_its_parent() {
    let spawn = Reply::calls([("spawn_worker", json!({"prompt": "write"}))]);
    let model =
        FakeLlama::start([spawn, write("a.txt"), write("b.md"), Reply::text("seen"), Reply::text("done")]);
    let home = home(&model, "allow = [\"spawn_worker\", \"write_file\"]\ndeny = [\"write_file(*.md)\"]\n");
    home.run(&["run", "--workers", "go"]).success();
    assert!(exists(&home, "a.txt") && !exists(&home, "b.md"));
}

#[test]
fn a_denied_host_is_not_connected_to() {
    let other = FakeLlama::start([]);
    let port = other.url().rsplit(':').next().unwrap().to_owned();
    let (model, home) = home_with(
        "deny = [\"web_fetch(localhost)\"]\n",
        [
            Reply::calls([("web_fetch", json!({"url": format!("http://localhost:{port}/x")}))]),
            Reply::text("done"),
        ],
    );
    home.run(&["run", "--auto-approve", "go"]).success();
    assert!(model.results()[0].contains("deny `web_fetch(localhost)`"));
    assert!(other.requests().is_empty());
}

#[test]
fn check_says_what_a_run_would_do_and_its_exit_status_says_it_too() {
    let model = FakeLlama::start([]);
    let home = home(
        &model,
        "allow = [\"edit_file(src/)\"]\nask = [\"web_fetch\"]\ndeny = [\"run_command(git push)\"]\n[headless]\nallow = [\"web_fetch(docs.rs)\"]\n",
    );
    let file = home.root().join("policy.toml").display().to_string();
    for (words, code, expected) in [
        (&["edit_file", "src/a.rs"][..], 0, format!("allow\n  allow `edit_file(src/)` ({file}:1)\n")),
        (&["edit_file", "a.rs"], 3, "ask\n  no rule is about it\n".to_owned()),
        (
            &["--headless", "edit_file", "a.rs"],
            3,
            "ask\n  no rule is about it, and without a terminal the run waits for a decision\n".to_owned(),
        ),
        (
            &["read_file", "a.rs"],
            0,
            "allow\n  no rule is about it, and reading below the working directory is free\n".to_owned(),
        ),
        (&["web_fetch", "https://docs.rs"], 3, format!("ask\n  ask `web_fetch` ({file}:2)\n")),
        (
            &["--headless", "web_fetch", "https://docs.rs"],
            0,
            format!("allow\n  allow `web_fetch(docs.rs)` ({file}:5)\n"),
        ),
        (
            &["run_command", "cargo test; git push"],
            4,
            format!("deny\n  deny `run_command(git push)` ({file}:3)\n"),
        ),
    ] {
        let output = home.run(&[&["policy", "check"], words].concat());
        assert_eq!((output.code, output.stdout.as_str()), (code, expected.as_str()), "{words:?}: {output:?}");
    }
    std::os::unix::fs::symlink("/etc", home.work_dir().join("etc")).unwrap();
    for (words, code, parts) in [
        (["read_file", "/etc/passwd"], 4, ["deny\n", "leads out of the working directory"]),
        (["write_file", "../x"], 4, ["deny\n", "leads out of the working directory"]),
        (["edit_file", "etc/passwd"], 4, ["deny\n", "leads out of the working directory"]),
        (["write_file", ".git/config"], 3, ["ask\n", "(a protected name)"]),
        (["read_file", ".env"], 3, ["ask\n", "(a protected name)"]),
        (["write_file", "notes.md"], 3, ["ask\n", "no rule is about it"]),
    ] {
        let output = home.run(&[&["policy", "check"], &words[..]].concat());
        assert_eq!(output.code, code, "{words:?}: {output:?}");
        assert!(parts.iter().all(|part| output.stdout.contains(part)), "{words:?}: {output:?}");
    }
    let json = home.run(&["policy", "check", "--json", "run_command", "git push"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["decision"], &json["rule"]["line"]), (&json!("deny"), &json!(3)));
    let error = home.run(&["policy", "check", "edit_fiel"]).fails(2);
    assert!(error.contains("did you mean `edit_file`?"), "{error}");
}

#[test]
fn show_has_every_rule_with_its_place() {
    let model = FakeLlama::start([]);
    let shown = home(&model, "allow = [\"edit_file\"]\n[headless]\ndeny = [\"web_fetch\"]\n");
    std::fs::create_dir(shown.work_dir().join(".kontekst")).unwrap();
    std::fs::write(shown.work_dir().join(".kontekst/policy.toml"), "ask = [\"edit_file\"]\n").unwrap();
    let text = shown.run(&["policy", "show"]).success();
    for line in [
        "    1  allow  edit_file",
        "    3  deny   web_fetch   [headless]",
        "(of the project: it can only ask and deny)",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let json: Value = serde_json::from_str(&shown.run(&["policy", "show", "--json"]).success()).unwrap();
    assert_eq!(json["rules"].as_array().unwrap().len(), 3);
    let none = home(&model, "");
    assert!(none.run(&["policy", "show"]).success().starts_with("No rule is about "));
}

#[test]
fn test_names_the_calls_that_are_decided_in_another_way() {
    let (_model, home) =
        home_with("allow = [\"edit_file(src/)\"]\n[headless]\nallow = [\"web_fetch\"]\n", []);
    let expected = home.work_dir().join("expected.toml");
    let right = "allow = [\"edit_file(src/a.rs)\"]\nask = [\"edit_file(b)\", \"web_fetch(https://a.example)\"]\n[headless]\nallow = [\"web_fetch(https://a.example)\"]\n";
    std::fs::write(&expected, right).unwrap();
    assert_eq!(
        home.run(&["policy", "test", "expected.toml"]).success(),
        "4 calls, 0 decided in another way\n"
    );
    std::fs::write(&expected, "deny = [\"edit_file(src/a.rs)\"]\n").unwrap();
    let output = home.run(&["policy", "test", "expected.toml"]);
    assert_eq!(output.code, 1);
    let line =
        "expected.toml:1: edit_file(src/a.rs): expected deny, decided allow\n  allow `edit_file(src/)` (";
    assert!(output.stdout.starts_with(line), "{output:?}");
    std::fs::write(&expected, "").unwrap();
    home.run(&["policy", "test", "expected.toml"]).fails(2);
}
