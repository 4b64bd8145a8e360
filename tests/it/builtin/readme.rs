//! Every command of README.md and of the pages on installing and on prompts, and the requests with curl of docs/doors.md, run as they stand on an empty home.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::test_home::{Output, TestHome, wait_with_output};

/// The pages whose commands are run.
const PAGES: &[&str] = &["README.md", "docs/install.md", "docs/run.md"];

/// Beginnings of commands that need a network, a build, a terminal, a larger model or a change.
const NOT_RUN: &[&str] = &[
    "cargo build ",
    "cargo rustc ",
    "cargo test",
    "install ",
    "rustup target add ",
    "kontekst  ",
    "kontekst run --schema ",
    "kontekst undo ",
];

/// Commands that ask for an approval on a terminal, which a test does not have.
const ASKS: &[&str] = &["kontekst run \"fix the typo in greet.py: replace nmae with name\""];

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the lines of the indented code blocks. Of a session in a terminal, these are the lines after `$`.
fn commands(markdown: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_session = false;
    for line in markdown.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            in_session &= line.is_empty();
            continue;
        };
        match line.strip_prefix("$ ") {
            Some(command) => {
                in_session = true;
                commands.push(command.to_owned());
            }
            None if !in_session => commands.push(line.to_owned()),
            None => {}
        }
    }
    commands
}

/// Returns a home without a model, and a working directory with the files that the commands name.
fn home() -> TestHome {
    let home = TestHome::with_config(
        "bind = \"off\"\nmodel_dir = \"/nonexistent\"\n[http]\nlisten = \"127.0.0.1:0\"\n",
    );
    let work_dir = home.work_dir();
    fs::write(work_dir.join("README.md"), document("README.md")).unwrap();
    fs::write(work_dir.join("greet.py"), "def greet(name):\n    return \"Hello \" + nmae\n").unwrap();
    fs::create_dir(work_dir.join("src")).unwrap();
    fs::write(work_dir.join("src/main.rs"), "fn main() {}\n").unwrap();
    home
}

/// Runs a command line in a shell that finds the tested program as `kontekst`.
fn shell(home: &TestHome, line: &str) -> Output {
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_kontekst"));
    let path = format!("{}:/usr/bin:/bin", programs.parent().unwrap().display());
    let mut command = Command::new("setsid");
    command.args(["bash", "-o", "pipefail", "-c", line]).env_clear().env("PATH", path);
    command.env("HOME", home.work_dir().parent().unwrap()).env("KONTEKST_HOME", home.root());
    // What runs on this machine, and the models that are on it, are none of a test's business.
    command.env("KONTEKST_PORTS", "").env("OLLAMA_MODELS", home.work_dir());
    command.current_dir(home.work_dir()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wait_with_output(command.spawn().unwrap())
}

fn is_installed(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success()
}

#[test]
fn every_command_of_the_readme_works() {
    if !["setsid", "bash"].into_iter().all(is_installed) {
        return;
    }
    let home = home();
    let all: Vec<String> = PAGES.iter().flat_map(|page| commands(&document(page))).collect();
    let (mut ran, mut asked) = (0, 0);
    for command in all.iter().map(|line| line.replace("cargo run --release --", "kontekst")) {
        let needs_missing =
            ["git", "jq"].iter().any(|name| command.contains(&format!("{name} ")) && !is_installed(name));
        if needs_missing || NOT_RUN.iter().any(|beginning| command.starts_with(beginning)) {
            continue;
        }
        // There is no repository here, and the difference may be empty.
        let line = command.replace("git diff |", "(git diff || true) |");
        let output = shell(&home, &line);
        let asks = ASKS.contains(&command.as_str());
        asked += usize::from(asks);
        ran += 1;
        // The starter model declines what only a larger one can do.
        let declines = output.stderr.contains("error: The small built-in model ") && output.stdout.is_empty();
        let expected = if asks { 3 } else { i32::from(declines) };
        assert_eq!(output.code, expected, "{command}: {output:#?}");
    }
    assert!(ran > 8 && asked == ASKS.len(), "{ran} {asked} {all:#?}");
    for exception in NOT_RUN {
        assert!(all.iter().any(|line| line.starts_with(exception)), "no command starts with {exception}");
    }
}

#[test]
fn the_requests_with_curl_are_answered_on_an_empty_home() {
    if !["setsid", "bash", "curl"].into_iter().all(is_installed) {
        return;
    }
    let home = home();
    let config = home.read("config.toml");
    home.write("config.toml", &format!("{config}[tools]\nworking_dir = {:?}\n", home.work_dir()));
    let page = home.run(&["web", "--no-open"]).success();
    let address = page.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let requests: Vec<_> =
        commands(&document("docs/doors.md")).into_iter().filter(|line| line.starts_with("curl ")).collect();
    assert!(requests.len() > 1);
    for request in requests {
        let output = shell(&home, &request.replace("127.0.0.1:8787", address));
        assert_eq!(output.code, 0, "{request}: {output:#?}");
        assert!(
            output.stdout.contains("event: done") || output.stdout.contains("\"output\":\""),
            "{output:#?}"
        );
    }
}
