//! Lines that only read run without a question, and can do nothing else.

use std::{fs, process::Command};

use serde_json::Value;

use super::{command, exists, home_with};
use crate::{fake_llama::Reply, test_home::TestHome};

/// Puts files into the working directory, one with a secret among them.
fn fill(home: &TestHome) {
    for (name, text) in [("a.txt", "needle\n"), ("sub/b.txt", "a needle\n"), (".env", "KEY=needle\n")] {
        let path = home.work_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn git(home: &TestHome, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(home.work_dir());
    assert!(git.output().unwrap().status.success(), "{arguments:?}");
}

#[test]
fn a_line_that_only_reads_needs_no_question_and_sees_no_secrets() {
    let lines = [
        "ls -a; cat a.txt sub/b.txt | wc -l",
        "grep -rn needle . | sort",
        "git status -s && git log --oneline",
    ];
    let (model, home) =
        home_with("sandbox = \"require\"\n", lines.map(command).into_iter().chain([Reply::text("done")]));
    fill(&home);
    git(&home, &["init", "-q"]);
    git(&home, &["add", "a.txt"]);
    git(&home, &["commit", "-qm", "first"]);
    assert_eq!(home.run(&["run", "go"]).success(), "done\n");
    let results = model.results();
    assert!(results[0].ends_with("\n.\n..\n.env\n.git\na.txt\nsub\n2"), "{results:?}");
    assert!(results[1].contains("./a.txt:1:needle") && results[1].contains("./sub/b.txt:1:"), "{results:?}");
    assert!(!results[1].contains("KEY"), "{results:?}");
    assert!(results[2].contains("?? sub/") && results[2].ends_with(" first"), "{results:?}");
}

#[test]
fn other_lines_are_asked_about() {
    for line in
        ["cat .env", "cat /etc/passwd", "ls > made", "ls; touch made", "cat ../home/config.toml", "git push"]
    {
        let (_model, home) = home_with("sandbox = \"require\"\n", [command(line)]);
        fill(&home);
        home.run(&["run", "go"]).fails(3);
        assert!(!exists(&home, "made"), "{line}");
    }
}

#[test]
fn a_rule_or_the_network_brings_the_question_back() {
    let asks = |line: &str, flags: &[&str], policy: &str| {
        let (_model, home) = home_with("sandbox = \"require\"\n", [command(line), Reply::text("done")]);
        fill(&home);
        home.write("policy.toml", policy);
        let run = home.run(&[&["run"][..], flags, &["go"]].concat());
        let check = home.run(&["policy", "check", "run_command", line]);
        (run.code, check.code)
    };
    assert_eq!(asks("ls -la", &[], ""), (0, 0));
    assert_eq!(asks("ls -la", &[], "ask = [\"run_command\"]"), (3, 3));
    assert_eq!(asks("ls -la", &[], "deny = [\"run_command(ls)\"]").1, 4);
    assert_eq!(asks("ls -la", &["--network"], "").0, 3);
    assert_eq!(asks("cat sub/b.txt", &[], "deny = [\"read_file(a.txt)\"]"), (0, 0));
    assert_eq!(asks("cat sub/b.txt", &[], "deny = [\"read_file(sub/)\"]"), (3, 3));
}

#[test]
fn what_git_itself_starts_can_write_nothing() {
    let (model, home) = home_with("sandbox = \"require\"\n", [command("git diff"), Reply::text("done")]);
    fill(&home);
    fs::write(home.work_dir().join(".gitattributes"), "*.txt diff=shown\n").unwrap();
    git(&home, &["init", "-q"]);
    git(&home, &["config", "diff.shown.textconv", "sh -c 'touch made .git/made; echo shown; cat \"$0\"'"]);
    git(&home, &["add", "a.txt"]);
    fs::write(home.work_dir().join("a.txt"), "changed\n").unwrap();
    assert_eq!(home.run(&["run", "go"]).success(), "done\n");
    let results = model.results();
    assert!(results[0].contains("+changed") && results[0].contains("shown"), "{results:?}");
    assert!(!exists(&home, "made") && !exists(&home, ".git/made"));
}

#[test]
fn clients_that_decide_themselves_are_asked() {
    let (_model, home) = home_with("sandbox = \"require\"\n", [command("ls"), Reply::text("done")]);
    let shown = home.run(&["run", "--json", "go"]).success();
    let events = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let proposed = events.filter(|event| event["type"] == "tools_proposed").count();
    assert_eq!(proposed, 1, "{shown}");
}
