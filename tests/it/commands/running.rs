//! Commands of `kontekst run`.

use std::{fs, process::Child};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Events, Fifo, command, exists, home, home_with, result, without_sandbox, write};
use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::{TestHome, wait_with_output},
};

const ALLOW_ALL: [&str; 4] = ["run", "--allow", "run_command", "go"];

#[test]
fn the_model_reads_the_exit_status_and_the_output_and_the_run_goes_on() {
    let (model, home) = without_sandbox([
        command("echo out; echo err >&2; exit 3"),
        command("true"),
        command("cd /; pwd; read line; echo \"<$line>\""),
        command("no-such-program"),
        Reply::text("seen"),
    ]);
    let output = home.run(&ALLOW_ALL);
    let without_time = |text: &str| {
        let (head, rest) = text.split_once(" after ").unwrap();
        let (_, rest) = rest.split_once(" s").unwrap();
        format!("{head}{rest}")
    };
    let results: Vec<String> = model.results().iter().map(|text| without_time(text)).collect();
    assert_eq!(results[..3], ["exit status 3\nout\nerr", "exit status 0, no output", "exit status 0\n/\n<>"]);
    assert!(results[3].starts_with("exit status 127 (command not found)\n"), "{results:?}");
    assert!(!output.stderr.contains("failed"), "{output:?}");
    assert_eq!(output.success(), "seen\n");
}

#[test]
fn commands_are_allowed_by_their_first_words() {
    for (flags, config) in [
        (&["--allow", "run_command(touch made)"][..], ""),
        (&["--allow", "edit_file,run_command(touch)"], ""),
        (&[], "sandbox = \"off\"\nallow = [\"ls\", \"touch made\"]\n"),
        (&["--auto-approve"], ""),
    ] {
        let (_model, home) = home_with(config, [command("touch made -c; touch made"), Reply::text("done")]);
        let mut words = vec!["run"];
        words.extend(flags);
        words.push("go");
        home.run(&words).success();
        assert!(exists(&home, "made"), "{flags:?} {config}");
    }
    for line in [
        "touch made; touch other",
        "touch made > other",
        "touch made $(touch other)",
        "X=1 touch made",
        "sh -c 'touch made'",
        "touch made &",
        "touch 'made",
    ] {
        let (_model, home) = without_sandbox([command(line)]);
        home.run(&["run", "--allow", "run_command(touch made)", "--allow", "run_command(sh)", "go"]).fails(3);
        assert!(!exists(&home, "made") && !exists(&home, "other"), "{line}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_never_approved_automatically() {
    let (_model, home) = without_sandbox([command("touch 'made")]);
    home.run(&["run", "--auto-approve", "go"]).fails(3);
}

#[test]
fn output_comes_while_the_command_runs() {
    let (_model, home) = without_sandbox([command("echo started; cat pipe"), Reply::text("done")]);
    let pipe = Fifo::new(&home, "pipe");
    let mut run = home.spawn(&["run", "--json", "--allow", "run_command", "go"]);
    let mut events = Events::of(&mut run);
    events.wait_for_output("started\n");
    write(pipe.wait_for_reader(), "more\n");
    let rest = events.rest();
    let output: String = rest
        .iter()
        .filter(|event| event["type"] == "tool_output")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(output, "more\n");
    let completed = rest.iter().find(|event| event["type"] == "tool_completed").unwrap();
    assert!(completed["output"].as_str().unwrap().ends_with("\nstarted\nmore"), "{completed}");
    assert!(run.wait().unwrap().success());
}

/// Two processes that never end by themselves, one of them in the background.
const ENDLESS: &str = "cat left & echo started; cat right";

/// Checks that a command has ended, with all that it started, after `end` was done. Returns the exit code of the run.
fn end_of_endless(end: impl FnOnce(&TestHome, &Child)) -> Option<i32> {
    let (_model, home) = without_sandbox([command(ENDLESS)]);
    let pipes = ["left", "right"].map(|name| Fifo::new(&home, name));
    let mut run = home.spawn(&["run", "--json", "--allow", "run_command", "go"]);
    let mut events = Events::of(&mut run);
    events.wait_for_output("started\n");
    let _writers = pipes.each_ref().map(Fifo::wait_for_reader);
    end(&home, &run);
    pipes.iter().for_each(Fifo::wait_for_no_reader);
    events.rest();
    run.wait().unwrap().code()
}

#[test]
fn ctrl_c_ends_a_command_and_what_it_started() {
    let interrupt = |_: &TestHome, run: &Child| kill_process(Pid::from_child(run), Signal::INT).unwrap();
    assert_eq!(end_of_endless(interrupt), Some(130));
}

#[test]
fn a_daemon_that_stops_ends_commands() {
    for stop in [&["daemon", "stop"][..], &["daemon", "stop", "--force"]] {
        let code = end_of_endless(|home, _| drop(home.run(stop).success()));
        assert_ne!(code, Some(0), "{stop:?}");
    }
}

#[test]
fn a_killed_daemon_leaves_no_command_behind() {
    end_of_endless(|home, _| kill_process(home.daemon().unwrap(), Signal::KILL).unwrap());
}

#[test]
fn a_command_ends_at_its_time_limit_with_what_it_wrote() {
    let call = ("run_command", json!({"command": "echo started; cat pipe", "timeout_seconds": 1}));
    let (model, home) = without_sandbox([Reply::calls([call]), Reply::text("done")]);
    let pipe = Fifo::new(&home, "pipe");
    home.run(&ALLOW_ALL).success();
    assert_eq!(result(&model), "stopped after 1 s, its time limit\nstarted");
    pipe.wait_for_no_reader();
}

#[test]
fn a_flood_of_output_is_bounded_for_the_client_and_for_the_model() {
    let (model, home) = without_sandbox([
        command("echo first; head -c 100000000 /dev/zero | tr '\\000' x; echo last"),
        command("head -c 10000000 /dev/zero | tr '\\000' x; echo last"),
        Reply::text("done"),
    ]);
    let output = wait_with_output(home.spawn(&["run", "--json", "--allow", "run_command", "go"]));
    assert!(output.stdout.len() < 2_000_000, "{}", output.stdout.len());
    let read = &model.chats()[1]["messages"].to_string();
    assert!(read.len() < 40_000 && read.contains("stopped after 64 MiB of output\\nfirst"), "{}", read.len());
    let second = result(&model);
    assert!(
        second.starts_with("exit status 0 after ") && second.ends_with("xxlast"),
        "{}",
        &second[second.len() - 100..]
    );
    output.success();
}

#[test]
fn commands_get_no_keys_and_no_terminal() {
    let (model, home) = without_sandbox([command("env; test -t 0 || echo no-terminal"), Reply::text("done")]);
    let mut run = home.command(&ALLOW_ALL);
    run.env("SOME_API_KEY", "hidden").env("LANG", "C.UTF-8");
    wait_with_output(run.spawn().unwrap()).success();
    let env = result(&model);
    assert!(env.contains("LANG=C.UTF-8") && env.contains("no-terminal"), "{env}");
    assert!(!env.contains("hidden") && !env.contains("KONTEKST"), "{env}");
}

#[test]
fn the_sandbox_holds_commands_and_they_may_run_without_a_question() {
    let (model, home) = home_with(
        "approval = \"sandboxed\"\n",
        [
            command(
                "echo in > made; echo out > ../outside; cat ../home/config.toml; dir=.git/hooks; echo hook > $dir/x; pwd",
            ),
            Reply::text("done"),
        ],
    );
    fs::create_dir_all(home.work_dir().join(".git/hooks")).unwrap();
    let output = home.run(&["run", "go"]);
    let confined =
        home.run(&["status"]).success().contains("In the sandbox: it writes only in the working directory");
    if !confined {
        // This machine lacks a layer, so each command asks.
        output.fails(3);
        assert!(!exists(&home, "made"));
        return;
    }
    output.success();
    assert!(exists(&home, "made") && !exists(&home, "../outside") && !exists(&home, ".git/hooks/x"));
    let result = result(&model);
    assert!(!result.contains("provider") && result.ends_with("/work"), "{result}");
}

/// As the test above, with the policy in place of the configuration.
#[test]
fn the_policy_lets_lines_run_that_the_whole_sandbox_holds() {
    for (policy, line, code) in [
        ("commands = \"sandboxed\"\n", "x=1; echo $x > made", 0),
        ("commands = \"sandboxed\"\ndeny = [\"run_command(touch)\"]\n", "touch made", 3),
        ("commands = \"sandboxed\"\nask = [\"run_command(touch)\"]\n", "touch made", 3),
        ("commands = \"sandboxed\"\n", "echo 'made", 3),
        ("commands = \"sandboxed\"\n", "touch .envrc; touch made", 3),
        ("[dir.\"/elsewhere\"]\ncommands = \"sandboxed\"\n", "touch made", 3),
        ("", "touch made", 3),
    ] {
        let (_model, home) =
            home_with("sandbox = \"auto\"\n", [command(line), Reply::text("done"), Reply::text("done")]);
        if !super::new_names::has_sandbox(&home) {
            return;
        }
        home.write("policy.toml", policy);
        let output = home.run(&["run", "go"]);
        assert_eq!(exists(&home, "made"), code == 0, "{policy} {line}: {output:?}");
        let denied = policy.contains("deny");
        assert_eq!(output.code, if denied { 0 } else { code }, "{policy} {line}: {output:?}");
    }
    // Without a sandbox each command is asked about.
    let (_model, home) = home_with("sandbox = \"off\"\n", [command("touch made")]);
    home.write("policy.toml", "commands = \"sandboxed\"\n");
    home.run(&["run", "go"]).fails(3);
    assert!(!exists(&home, "made"));
}

#[test]
fn an_approval_can_be_remembered_for_the_directory() {
    let model = FakeLlama::start([]).always(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"] == "tool" {
            true => Reply::text("done"),
            false => command("touch made; cat made"),
        }
    });
    let home = home(&model, "");
    let mut run = home.on_terminal(&["run", "go"]);
    let question = run.wait_for("or type a reason to refuse: ");
    assert!(question.contains("$ touch made; cat made"), "{question}");
    assert!(
        question.contains("[a]lways `run_command(=touch made)` and `run_command(cat)` in this directory"),
        "{question}"
    );
    run.type_keys("a\n");
    assert_eq!(run.end().0, 0);
    // The next run needs no terminal, here but not elsewhere.
    home.run(&["run", "--new", "go"]).success();
    let elsewhere = home.work_dir().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    home.run(&["run", "--new", "-C", elsewhere.to_str().unwrap(), "go"]).fails(3);
    assert!(!elsewhere.join("made").exists());
}

#[test]
fn the_terminal_shows_output_as_plain_text() {
    let model =
        FakeLlama::start([command("printf 'one\\n\\033]0;title\\007two\\n'; seq 1000"), Reply::text("done")]);
    let home = home(&model, "");
    let screen = home.on_terminal(&ALLOW_ALL).ends_with(0);
    assert!(screen.contains("$ printf") && screen.contains("one") && screen.contains("two"), "{screen}");
    assert!(!screen.contains("\u{1b}]0;"), "{screen}");
    assert!(screen.contains("more output is not shown") && !screen.contains("999"), "{screen}");
    assert!(screen.contains("exit status 0 after"), "{screen}");
}
