//! Gives each test its own data directory and runs the real binary in it.

#![allow(dead_code, reason = "shared by tests that do not all use everything")]

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fake_llama::{FakeLlama, Reply};

const BINARY: &str = env!("CARGO_BIN_EXE_kontekst");

/// The time that a test waits for a command before it kills it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most memory that the daemon may take for a client that reads nothing, in KiB. docs/doors.md states it.
pub(crate) const CLIENT_MEMORY: u64 = 8 * 1024;

/// A new data directory, which contains only `config.toml`, and an empty working directory.
///
/// Dropping it stops its daemon.
#[must_use]
pub(crate) struct TestHome {
    dir: tempfile::TempDir,
}

/// The output and the exit code of a command.
#[must_use = "call `success` or `fails`, or compare what it wrote"]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub stdout: String,
    pub stderr: String,
    /// The exit code, or -1 if a signal ended the process.
    pub code: i32,
}

impl TestHome {
    /// Returns a home whose daemon uses the model server at `endpoint` and listens only on its unix socket.
    pub(crate) fn new(endpoint: &str) -> Self {
        Self::with_config(&format!("provider = \"endpoint\"\nendpoint = \"{endpoint}\"\nbind = \"off\"\n"))
    }

    /// Starts a model server that answers with `script`, and returns it with a home whose daemon uses it.
    pub(crate) fn with_model(script: impl IntoIterator<Item = Reply>) -> (FakeLlama, Self) {
        Self::with_server(FakeLlama::start(script))
    }

    /// Returns a model server with a home whose daemon uses it.
    pub(crate) fn with_server(model: FakeLlama) -> (FakeLlama, Self) {
        let home = Self::new(&model.url());
        (model, home)
    }

    pub(crate) fn with_config(config: &str) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(home.work_dir()).unwrap();
        home.write("config.toml", config);
        home
    }

    /// Returns the data directory, the value of `KONTEKST_HOME`.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Returns the working directory of the commands.
    pub(crate) fn work_dir(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Writes a file in the data directory and creates its parent directories.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file in the data directory.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    /// Returns a command that runs in this home, with no other environment variables, no terminal, and an empty stdin.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        // Approvals are read from /dev/tty. In a new session the command has no terminal.
        let setsid = Path::new("/usr/bin/setsid");
        let mut command = if setsid.exists() {
            let mut command = Command::new(setsid);
            command.arg(BINARY);
            command
        } else {
            Command::new(BINARY)
        };
        command.args(words).env_clear().env("KONTEKST_HOME", self.root()).current_dir(self.work_dir());
        // What runs on this machine, and the models that are on it, are none of a test's business.
        command.env("KONTEKST_PORTS", "").env("HOME", self.dir.path()).env("OLLAMA_MODELS", self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        wait_with_output(self.spawn(words))
    }

    /// Runs a command that succeeds and prints JSON.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(words).success()).unwrap()
    }

    /// Runs a command that succeeds and prints an event in each line.
    #[track_caller]
    pub(crate) fn events(&self, words: &[&str]) -> Vec<Value> {
        self.run(words).success().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs a command with `input` on a pipe.
    pub(crate) fn run_with(&self, words: &[&str], input: &[u8]) -> Output {
        let mut child = self.command(words).stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
        // A command may exit without reading its input.
        let writer = thread::spawn(move || stdin.write_all(&input).ok());
        let output = wait_with_output(child);
        writer.join().unwrap();
        output
    }

    /// Starts a command. The process id is that of kontekst itself, because `setsid` executes it.
    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).spawn().unwrap()
    }

    /// Returns a line of the status of the daemon's process, such as `VmHWM:`, in KiB.
    pub(crate) fn daemon_memory(&self, line: &str) -> u64 {
        let daemon = self.daemon().unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.as_raw_nonzero())).unwrap();
        let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Returns the process id of the running daemon of this home.
    #[expect(
        clippy::disallowed_methods,
        reason = "the path is only compared, and the build folder may be a link"
    )]
    pub(crate) fn daemon(&self) -> Option<Pid> {
        let info: serde_json::Value =
            serde_json::from_slice(&fs::read(self.root().join("run/daemon.json")).ok()?).ok()?;
        let pid = i32::try_from(info["pid"].as_i64()?).ok()?;
        // The file outlives a killed daemon, and another process may have its id by now.
        let runs = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        if fs::canonicalize(BINARY).is_ok_and(|binary| runs == binary) { Pid::from_raw(pid) } else { None }
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        if self.daemon().is_none() {
            return;
        }
        let stopped = wait_with_output(self.spawn(&["daemon", "stop"]));
        if stopped.code != 0
            && let Some(pid) = self.daemon()
        {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// Waits for the exit of a command. One that hangs is killed and gets the code -1.
pub(crate) fn wait_with_output(mut child: Child) -> Output {
    let stdout = read_in_thread(child.stdout.take().unwrap());
    let stderr = read_in_thread(child.stderr.take().unwrap());
    let mut text_of = |pipe: &mpsc::Receiver<Vec<u8>>| match pipe.recv_timeout(TIMEOUT) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_else(|error| format!("not text: {error}")),
        Err(_) => {
            child.kill().ok();
            "hangs, or left a process behind that holds the pipe".to_owned()
        }
    };
    let (stdout, stderr) = (text_of(&stdout), text_of(&stderr));
    Output { stdout, stderr, code: child.wait().unwrap().code().unwrap_or(-1) }
}

fn read_in_thread(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).ok();
        send.send(bytes).ok();
    });
    receive
}

impl Output {
    /// Checks that the command succeeded and returns its stdout.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, 0, "{self:#?}");
        self.stdout
    }

    /// Checks that the command ended with `code` and returns its stderr.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:#?}");
        self.stderr
    }
}
