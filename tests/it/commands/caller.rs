//! The environment of the shell in which a run is started: commands and checks have that, and not the one of the daemon.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::json;

use super::{command, home_with, new_names::has_sandbox, result, without_sandbox};
use crate::{
    fake_llama::Reply,
    test_home::{Output, TestHome, wait_with_output},
};

/// Runs kontekst with these variables and this umask, as a shell that has them does.
fn run_from(home: &TestHome, umask: &str, variables: &[(&str, &str)], words: &[&str]) -> Output {
    let kontekst = home.command(words);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "umask $0; exec \"$@\"", umask]).arg(kontekst.get_program()).args(kontekst.get_args());
    shell.env_clear().envs(kontekst.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.envs(variables.iter().copied()).current_dir(home.work_dir());
    shell.stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    wait_with_output(shell.spawn().unwrap())
}

/// Makes a directory with a program `tool` that prints `text`, as a virtual environment has it, and returns its search path.
fn environment(home: &TestHome, text: &str) -> String {
    let dir = home.work_dir().parent().unwrap().join(text);
    fs::create_dir_all(dir.join("bin")).unwrap();
    fs::create_dir_all(dir.join("lib")).unwrap();
    fs::write(dir.join("lib/text"), format!("{text}\n")).unwrap();
    let tool = dir.join("bin/tool");
    fs::write(&tool, "#!/bin/sh\ncat \"${0%/*}/../lib/text\"\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}/bin:/usr/bin:/bin", dir.display())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

const SHOW: &str = "tool; echo \"$VIRTUAL_ENV|$TZ|$LC_ALL|$MINE|$OTHER|$API_KEY|$HOME\"";

#[test]
fn each_project_has_the_environment_of_its_own_shell() {
    for config in ["sandbox = \"off\"\nenvironment = [\"MINE\"]\n", "environment = [\"MINE\"]\n"] {
        let (model, home) = home_with(config, (0..2).flat_map(|_| [command(SHOW), Reply::text("done")]));
        if config.starts_with("environment") && !has_sandbox(&home) {
            continue;
        }
        let words = ["run", "--new", "--allow", "run_command", "go"];
        for (name, zone) in [("first", "Asia/Kathmandu"), ("second", "UTC")] {
            let path = environment(&home, name);
            let variables = [
                ("PATH", &*path),
                ("VIRTUAL_ENV", name),
                ("TZ", zone),
                ("LC_ALL", "C"),
                ("MINE", name),
                ("OTHER", "other"),
                ("API_KEY", "secret"),
            ];
            run_from(&home, "022", &variables, &words).success();
            let user = home.root().parent().unwrap().display().to_string();
            let seen = format!("\n{name}\n{name}|{zone}|C|{name}|||{user}\n");
            assert!(format!("{}\n", result(&model)).contains(&seen), "{config}: {}", result(&model));
        }
    }
}

#[test]
fn a_check_has_the_environment_of_the_shell() {
    let write = || Reply::calls([("write_file", json!({"path": "new.txt", "content": "x\n"}))]);
    let (_model, home) = without_sandbox([Reply::text("hello"), write(), Reply::text("done")]);
    run_from(&home, "077", &[("PATH", &environment(&home, "first"))], &["run", "hello"]).success();
    let check = "test \"$(tool)\" = second && touch checked";
    let words = ["run", "--new", "--auto-approve", "--check", check, "write it"];
    run_from(&home, "002", &[("PATH", &environment(&home, "second"))], &words).success();
    assert_eq!(mode(&home.work_dir().join("checked")), 0o664);
    assert_eq!(mode(&home.work_dir().join("new.txt")), 0o664);
}

#[test]
fn new_files_have_the_umask_of_the_shell() {
    let line = "echo x > file; mkdir dir; echo x > script; chmod +x script";
    for config in ["", "sandbox = \"auto\"\n"] {
        for (umask, file, dir) in [("022", 0o644, 0o755), ("027", 0o640, 0o750), ("002", 0o664, 0o775)] {
            let write = Reply::calls([("write_file", json!({"path": "made/written", "content": "x\n"}))]);
            let (_model, home) = home_with(config, [command(line), write, Reply::text("done")]);
            let words = ["run", "--allow", "run_command", "--allow", "write_file", "go"];
            run_from(&home, umask, &[("PATH", "/usr/bin:/bin")], &words).success();
            let modes = ["file", "dir", "script", "made", "made/written"];
            let modes = modes.map(|name| format!("{:o}", mode(&home.work_dir().join(name))));
            let expected = [file, dir, dir, dir, file].map(|mode| format!("{mode:o}"));
            assert_eq!(modes, expected, "umask {umask}, {config}");
        }
    }
}

/// Whoever goes on with it has another shell, and the person who has started it knows which one it was.
#[test]
fn a_parked_run_keeps_the_environment_of_its_shell() {
    let (_model, home) = without_sandbox([command("tool > out; echo \"$TZ\" >> out"), Reply::text("done")]);
    let (first, second) = (environment(&home, "first"), environment(&home, "second"));
    run_from(&home, "027", &[("PATH", &first), ("TZ", "Asia/Kathmandu")], &["run", "go"]).fails(3);
    let parked = fs::read_dir(home.root().join("parked")).unwrap().next().unwrap().unwrap();
    assert_eq!(mode(&parked.path()) & 0o077, 0, "it holds the environment");
    let name = parked.file_name().into_string().unwrap();
    let words = ["approvals", "approve", name.trim_end_matches(".json")];
    run_from(&home, "077", &[("PATH", &second), ("TZ", "UTC")], &words).success();
    let out = home.work_dir().join("out");
    assert_eq!(fs::read_to_string(&out).unwrap(), "first\nAsia/Kathmandu\n");
    assert_eq!(mode(&out), 0o640);
}

#[test]
fn a_command_that_fails_at_what_it_does_not_see_says_how_it_is_shown() {
    let line = "cat ../letters/one";
    let script = || [command(line), Reply::text("done")];
    let (model, home) = home_with("sandbox = \"auto\"\n", script().into_iter().chain(script()));
    if !has_sandbox(&home) {
        return;
    }
    let letters = home.root().parent().unwrap().join("letters");
    fs::create_dir(&letters).unwrap();
    fs::write(letters.join("one"), "Dear Ada\n").unwrap();
    let words = ["run", "--new", "--allow", "run_command", "go"];
    home.run(&words).success();
    let read = result(&model);
    assert!(!read.contains("Dear Ada") && read.contains("readable` under [commands]"), "{read}");
    home.run(&["config", "set", "commands.readable", "[\"~/letters\"]"]).success();
    home.run(&["daemon", "restart"]).success();
    home.run(&words).success();
    let read = result(&model);
    assert!(read.contains("Dear Ada") && !read.contains("readable`"), "{read}");
}
