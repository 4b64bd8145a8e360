//! The fake server as an executable that takes llama-server's arguments.
//!
//! The executable is a shell script that starts this test binary again as a server. So it needs no build step of its
//! own and always has the version of the tests.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::{fd::AsFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, Mode as FileMode, mkfifoat},
    process::{Pid, PidfdFlags, pidfd_open, test_kill_process},
};
use serde_json::{Value, json};

use super::{FakeLlama, Reply, Setup, TIMEOUT};
use crate::wait::wait_until;

/// The environment variable that makes this test binary a server. Its value is the directory of a [`FakeBinary`].
const DIR: &str = "FAKE_LLAMA_DIR";

/// A fake `llama-server` in its own directory, which also records its processes.
pub(crate) struct FakeBinary {
    dir: PathBuf,
    /// A pipe from which one byte can be read for each process that was started.
    launched: File,
    /// A pipe from which processes in [`Mode::Load`] read a byte before they are ready.
    go_on: File,
}

/// The behaviour of the next process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// Serves. Chat requests are answered with what [`FakeBinary::answer`] was given, else with `hello`.
    Serve,
    /// Prints an error and exits with 1 before it is ready.
    DieAtOnce,
    /// Reports that its port is taken and exits.
    PortTaken,
    /// Answers 503 and reports half the model loaded, until [`FakeBinary::finish_loading`].
    Load,
    /// Serves, and ignores SIGTERM and the end of its stdin.
    Stubborn,
}

/// One start of the executable. `environment` has the variables that begin with `LLAMA_`.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub pid: u32,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
    pub directory: PathBuf,
}

impl Launch {
    /// Returns the value of a command-line option.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|word| word == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }
}

impl FakeBinary {
    pub(crate) fn new(dir: &Path) -> Self {
        let dir = dir.join("fake-llama");
        fs::create_dir_all(&dir).unwrap();
        // Open for reading and writing, so that neither the script nor the server waits for the other end.
        let pipe = |name: &str| {
            let path = dir.join(name);
            mkfifoat(CWD, &path, FileMode::RUSR | FileMode::WUSR).unwrap();
            File::options().read(true).write(true).open(path).unwrap()
        };
        let (launched, go_on) = (pipe("launched"), pipe("go-on"));
        let binary = Self { dir, launched, go_on };
        binary.mode(Mode::Serve);
        let (dir, tests) = (binary.dir.display(), std::env::current_exe().unwrap());
        // `exec` keeps the process id, so the shell and the server have the same one.
        let script = format!(
            r#"#!/bin/sh
dir='{dir}'
if [ "$1" = --help ]; then
    echo '-h,    --help, --usage                  print usage and exit'
    for o in --host --port --ctx-size --n-gpu-layers --reasoning-format --alias --jinja -np -b -ub --no-webui; do
        echo "$o X"
    done
    exit 0
fi
for word; do printf '%s\n' "$word"; done > "$dir/arguments.$$"
env | grep '^LLAMA_' > "$dir/environment.$$"
pwd > "$dir/directory.$$"
echo $$ >> "$dir/starts"
printf . > "$dir/launched"
[ "$(cat "$dir/mode")" = Stubborn ] && trap '' TERM
{DIR}="$dir" exec '{}' --exact fake_llama::process::server_process --nocapture --test-threads 1
"#,
            tests.display()
        );
        let path = binary.path();
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        binary
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join("llama-server")
    }

    /// The directory that [`FakeBinary::path`] is in, for a `PATH`.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sets the behaviour of processes that start from now on.
    pub(crate) fn mode(&self, mode: Mode) {
        fs::write(self.dir.join("mode"), format!("{mode:?}")).unwrap();
    }

    /// Sets the answers to chat requests: `{"text": …}`, `{"hang": true}`, or `{"calls": [[name, arguments], …]}`. After
    /// the last one they begin again.
    pub(crate) fn answer(&self, answers: &Value) {
        fs::write(self.dir.join("answers"), answers.to_string()).unwrap();
    }

    /// Lets a process in [`Mode::Load`] become ready.
    pub(crate) fn finish_loading(&self) {
        (&self.go_on).write_all(&[b'.'; 64]).unwrap();
    }

    /// Waits until one more process has been started, counting from the last call.
    #[track_caller]
    pub(crate) fn wait_for_launch(&self) {
        assert!(is_ready(&self.launched), "no process was started");
        (&self.launched).read_exact(&mut [0]).unwrap();
    }

    /// Returns the requests that a process received, such as `GET /props`.
    pub(crate) fn requests(&self, pid: u32) -> Vec<String> {
        let requests = fs::read_to_string(self.dir.join(format!("requests.{pid}"))).unwrap_or_default();
        requests.lines().map(str::to_owned).collect()
    }

    /// Returns every start so far.
    pub(crate) fn launches(&self) -> Vec<Launch> {
        let read = |name: &str| fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        let lines = |name: String| read(&name).lines().map(str::to_owned).collect();
        let start = |pid: &str| Launch {
            pid: pid.parse().unwrap(),
            arguments: lines(format!("arguments.{pid}")),
            environment: lines(format!("environment.{pid}")),
            directory: read(&format!("directory.{pid}")).trim_end().into(),
        };
        read("starts").lines().map(start).collect()
    }
}

/// Waits until the process has exited. Its parent need not have waited for it yet.
#[track_caller]
pub(crate) fn wait_for_exit(pid: u32) {
    // It fails when there is no such process any more.
    if let Ok(process) = pidfd_open(Pid::from_raw(pid.cast_signed()).unwrap(), PidfdFlags::empty()) {
        assert!(is_ready(&process), "process {pid} still runs");
    }
}

/// Waits until the process has exited and its parent has waited for it, so that no process has this id.
#[track_caller]
pub(crate) fn wait_until_gone(pid: u32) {
    wait_for_exit(pid);
    let id = Pid::from_raw(pid.cast_signed()).unwrap();
    wait_until("its parent has waited for the process", || test_kill_process(id).is_err());
}

/// Waits until a descriptor can be read; returns false after [`TIMEOUT`].
fn is_ready(descriptor: &impl AsFd) -> bool {
    let timeout = Timespec { tv_sec: TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)) == Ok(1)
}

/// Not a test: the process that the script starts.
#[test]
#[expect(clippy::exit, reason = "it is a process of its own")]
fn server_process() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let pid = std::process::id();
    let arguments = fs::read_to_string(dir.join(format!("arguments.{pid}"))).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    let option = |name: &str| arguments.iter().position(|word| *word == name).map(|at| arguments[at + 1]);
    let mode = fs::read_to_string(dir.join("mode")).unwrap();
    let say = |line: &str| {
        writeln!(std::io::stderr(), "{line}").ok();
    };
    match mode.as_str() {
        "DieAtOnce" => {
            say("I loading model");
            say("E llama_model_load: \u{1b}[31mnot a GGUF file");
            std::process::exit(1);
        }
        "PortTaken" => {
            fs::write(dir.join("mode"), "Serve").unwrap();
            say("E couldn't bind HTTP server socket");
            std::process::exit(1);
        }
        _ => {}
    }
    if mode != "Stubborn" && std::env::var_os("LLAMA_SERVER_ROUTER_PORT").is_some() {
        thread::spawn(|| {
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).ok();
            std::process::exit(0);
        });
    }
    let host = option("--host").unwrap_or("127.0.0.1");
    let setup = Setup {
        window: option("--ctx-size").map_or(4096, |tokens| tokens.parse().unwrap()),
        slots: option("-np").map_or(4, |slots| slots.parse().unwrap()),
        model_path: option("-m").unwrap().to_owned(),
        key: std::env::var("LLAMA_API_KEY").ok(),
        address: format!("{host}:{}", option("--port").unwrap()).parse().unwrap(),
        loading: mode == "Load",
        ..Setup::default()
    };
    let mut requests =
        File::options().append(true).create(true).open(dir.join(format!("requests.{pid}"))).unwrap();
    let log = move |request: &super::Request| {
        writeln!(requests, "{} {}", request.method, request.path).unwrap();
        None
    };
    let fake = FakeLlama::with(setup, []).replay(log).always({
        let (dir, mut count) = (dir.clone(), 0);
        move |_| {
            count += 1;
            answer(&dir, count - 1)
        }
    });
    say("I srv  llama_server: listening");
    if mode == "Load" {
        let state = json!({"state": "loading", "payload": {"stages": ["text_model"], "current": "text_model", "value": 0.5}});
        writeln!(std::io::stdout(), "\ncmd_child_to_router:state:{state}").ok();
        // This fails when the test has ended. The process is then of no use any more.
        File::open(dir.join("go-on")).unwrap().read_exact(&mut [0]).unwrap();
        fake.finish_loading();
    }
    loop {
        thread::park();
    }
}

fn answer(dir: &Path, at: usize) -> Reply {
    let answers = fs::read(dir.join("answers")).unwrap_or_default();
    let answers: Vec<Value> =
        serde_json::from_slice(&answers).unwrap_or_else(|_| vec![json!({"text": "hello"})]);
    let answer = &answers[at % answers.len()];
    if let Some(text) = answer["text"].as_str() {
        return Reply::text(text);
    }
    if answer["hang"] == true {
        return Reply::text("so ").then_hang();
    }
    let calls = answer["calls"].as_array().expect("`text`, `hang` or `calls`");
    Reply::calls(calls.iter().map(|call| (call[0].as_str().unwrap(), call[1].clone())))
}
