//! Alt-k in real shells: the line becomes a proposal, which is not run.

use std::{fs, path::Path};

use crate::{
    fake_llama::{FakeLlama, Reply},
    pseudo_terminal::TerminalCommand,
    test_home::TestHome,
};

/// Alt-k, as a terminal sends it.
const KEY: &str = "\x1bk";

/// Starts an interactive shell on a terminal, in which the keys are bound. Returns `None` if the shell is not installed.
fn shell(home: &TestHome, program: &str, arguments: &[&str]) -> Option<TerminalCommand> {
    let program = Path::new("/usr/bin").join(program);
    if !program.exists() {
        return None;
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_kontekst"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
    let dir = home.work_dir().display().to_string();
    let variables =
        [("PATH", &*path), ("HOME", &*dir), ("TERM", "xterm"), ("PS1", "ready> "), ("LC_ALL", "C.UTF-8")];
    Some(home.program_on_terminal(&program, arguments, 100, &variables))
}

/// Checks a shell whose prompt is ready and whose keys are bound.
fn check(home: &TestHome, terminal: &mut TerminalCommand, model: &FakeLlama) {
    model.push(Reply::text("```sh\necho > made\x1b[2J && echo \"it \"ran\n```\n"));
    terminal.type_keys("make a file");
    terminal.type_keys(KEY);
    terminal.wait_for("echo > made");
    model.wait_for_chats(1);
    assert!(!home.work_dir().join("made").exists(), "a proposal is not run");
    terminal.type_keys("\n");
    terminal.wait_for("it ran");
    assert!(home.work_dir().join("made").exists(), "it is run by Enter");
    // A failed run leaves the line as it was.
    model.push(Reply::json(400, &serde_json::json!({"error": {"message": "no"}})));
    terminal.type_keys("echo sa\"me li\"ne");
    terminal.type_keys(KEY);
    model.wait_for_chats(2);
    terminal.type_keys("\n");
    terminal.wait_for("same line");
    assert_eq!(fs::read_dir(home.root().join("sessions")).unwrap().count(), 0, "no session is left");
}

fn home() -> (TestHome, FakeLlama) {
    let model = FakeLlama::start([]);
    (TestHome::new(&model.url()), model)
}

#[test]
fn bash() {
    let (home, model) = home();
    let mut terminal = shell(&home, "bash", &["--norc", "--noprofile", "-i"]).unwrap();
    terminal.wait_for("ready> ");
    terminal.type_keys("eval \"$(kontekst shell-init bash)\"; echo bo''und\n");
    terminal.wait_for("bound\r\n");
    check(&home, &mut terminal, &model);
    terminal.type_keys("exit\n");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn zsh() {
    let (home, model) = home();
    let Some(mut terminal) = shell(&home, "zsh", &["-f", "-i"]) else { return };
    terminal.wait_for("ready> ");
    terminal.type_keys("eval \"$(kontekst shell-init zsh)\"; echo bo''und\n");
    terminal.wait_for("bound\r\n");
    check(&home, &mut terminal, &model);
    terminal.type_keys("exit\n");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn fish() {
    let (home, model) = home();
    let start = "function fish_prompt; echo -n 'ready> '; end; kontekst shell-init fish | source";
    let Some(mut terminal) = shell(&home, "fish", &["--no-config", "-i", "-C", start]) else { return };
    terminal.wait_for("ready> ");
    check(&home, &mut terminal, &model);
    terminal.type_keys("exit\n");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn what_is_no_command_is_an_error_and_nothing_is_printed() {
    let (home, model) = home();
    model.push(Reply::text("I cannot do that.\nAsk somebody else."));
    let output = home.run(&["propose-line", "bash", "--", "do something"]);
    assert_eq!(output.stdout, "");
    assert!(output.fails(1).contains("the model proposed no command"));
    let system = &model.chats()[0]["messages"][0]["content"];
    assert!(system.as_str().unwrap().contains("command lines for bash"), "{system}");
    let without = TestHome::with_config("bind = 'off'\nmodel_dir = '/nowhere'\n");
    assert!(without.run(&["propose-line", "bash", "--", "ls"]).fails(1).contains("kontekst init"));
    assert!(without.daemon().is_none());
}
