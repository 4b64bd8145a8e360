//! Completion in real shells, with what is on this machine.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::{fake_llama::Reply, test_home::TestHome};

/// Returns a home with an agent, a skill and two sessions, which no daemon serves.
fn home() -> TestHome {
    let home = TestHome::with_config("bind = \"off\"\n");
    home.write("agents/coder/agent.md", "You write code.");
    home.write(
        "skills/review.md",
        "---\nname: review\ndescription: Reviews a change\n---\nReview $ARGUMENTS",
    );
    home.write("sessions/book.jsonl", "{\"role\":\"user\",\"content\":\"the \\u001b[2Jthird: chapter\"}\n");
    home.write("jobs/news.toml", "");
    home.write("sessions/diary.jsonl", "{\"role\":\"user\",\"content\":\"today\"}\n");
    home
}

/// Returns what a shell prints, line by line, with kontekst on its PATH. Returns `None` if the shell is not installed.
fn shell(home: &TestHome, shell: &str, script: &str) -> Option<Vec<String>> {
    let binary = Path::new(env!("CARGO_BIN_EXE_kontekst"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
    let mut command = Command::new(shell);
    command.args(["-c", script]).env_clear().env("PATH", path).env("HOME", home.work_dir());
    let output = command.env("KONTEKST_HOME", home.root()).current_dir(home.work_dir()).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// Returns what bash offers for the last of the words.
fn bash(home: &TestHome, words: &[&str], kind: u32) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "eval \"$(kontekst completions bash)\"; COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE={kind}; _kontekst; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1
    );
    let mut lines = shell(home, "bash", &script).unwrap();
    lines.retain(|line| !line.is_empty());
    lines
}

#[test]
fn bash_offers_what_is_on_this_machine() {
    let home = home();
    let check = |words: &[&str], expect: &[&str]| assert_eq!(bash(&home, words, 9), expect, "{words:?}");
    check(&["kontekst", "run", "--agent", "co"], &["coder"]);
    check(&["kontekst", "run", "--session", "bo"], &["book"]);
    check(&["kontekst", "sessions", "show", "d"], &["diary"]);
    check(&["kontekst", "run", "--allow", "edit"], &["edit_file"]);
    check(&["kontekst", "run", "/re"], &["/review"]);
    check(&["kontekst", "chat", "--agent", "co"], &["coder"]);
    check(&["kontekst", "chat", "--session", "bo"], &["book"]);
    check(&["kontekst", "chat", "--allow", "edit"], &["edit_file"]);
    check(&["kontekst", "every", "1d", "/re"], &["/review"]);
    check(&["kontekst", "jobs", "run", "n"], &["news"]);
    check(&["kontekst", "sess"], &["sessions"]);
    check(&["kontekst", "run", "--auto"], &["--auto-approve"]);
    // A prompt can be anything, also the name of a file, which bash itself completes.
    check(&["kontekst", "run", "no"], &[]);
    for hidden in ["exec", "spawned", "complete-", "render"] {
        check(&["kontekst", hidden], &[]);
    }
    assert!(home.daemon().is_none(), "no daemon is started");
}

#[test]
fn keys_and_the_titles_that_a_person_gave_are_offered() {
    let home = home();
    home.run(&["sessions", "rename", "diary", "My days (2026)"]).success();
    let check = |words: &[&str], expect: &[&str]| assert_eq!(bash(&home, words, 9), expect, "{words:?}");
    // bash inserts a value as it is, and hands over what was typed.
    for typed in ["My", "My\\ d"] {
        check(&["kontekst", "sessions", "show", typed], &["My\\ days\\ \\(2026\\)"]);
    }
    // The beginning of a prompt is no name of a session.
    check(&["kontekst", "run", "--session", "the"], &[]);
    check(&["kontekst", "config", "get", "tools.timeout"], &["tools.timeout_seconds"]);
    check(&["kontekst", "config", "unset", "agents.coder.mod"], &["agents.coder.model"]);
    let tools = bash(&home, &["kontekst", "config", "get", "tools."], 9);
    assert!(tools.len() > 1 && tools.iter().all(|key| key.starts_with("tools.")), "{tools:?}");
    if let Some(lines) =
        shell(&home, "fish", "kontekst completions fish | source; complete -C 'kontekst sessions show My'")
    {
        assert_eq!(lines, ["My days (2026)\tdiary"]);
    }
}

#[test]
fn titles_stand_beside_the_sessions_and_hold_no_control_characters() {
    let home = home();
    let mut listed = bash(&home, &["kontekst", "sessions", "show", ""], 63);
    listed.sort();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].starts_with("book  (the third: chapter") && listed[1].starts_with("diary  (today"));
    assert!(!listed.concat().chars().any(char::is_control), "{listed:?}");
}

#[test]
fn fish_shows_descriptions() {
    let home = home();
    let script = "kontekst completions fish | source; complete -C 'kontekst sessions show bo'; \
                  complete -C 'kontekst run /re'";
    let Some(lines) = shell(&home, "fish", script) else { return };
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("book\tthe third: chapter"), "{lines:?}");
    assert_eq!(lines[1], "/review\tReviews a change");
}

#[test]
fn the_names_of_parked_runs_are_offered() {
    let call = Reply::calls([("write_file", json!({"path": "a", "content": "x"}))]);
    let (_model, home) = TestHome::with_model([call]);
    home.run(&["run", "write it"]).fails(3);
    let file = std::fs::read_dir(home.root().join("parked")).unwrap().next().unwrap().unwrap().file_name();
    let name = file.to_str().unwrap().trim_end_matches(".json").to_owned();
    for action in ["approve", "show", "deny"] {
        let offered = bash(&home, &["kontekst", "approvals", action, &name[..4]], 9);
        assert_eq!(offered, [name.as_str()], "{action}");
        let short = &name[name.len() - 8..];
        assert_eq!(bash(&home, &["kontekst", "approvals", action, &short[..4]], 9), [short], "{action}");
    }
}
