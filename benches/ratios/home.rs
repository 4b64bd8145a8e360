//! A data directory and a working directory for kontekst.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tempfile::TempDir;

use crate::{Failure, process};

/// Both directories, and the path of the binary. The daemon is stopped when this is dropped.
pub(crate) struct BenchHome {
    pub data_dir: PathBuf,
    /// An empty directory that the tools run in, and files for their stdin.
    pub work_dir: PathBuf,
    kontekst: PathBuf,
    _dir: TempDir,
}

impl BenchHome {
    /// `config` is the text of `config.toml`.
    pub(crate) fn new(kontekst: &Path, config: &str) -> Result<Self, Failure> {
        let dir = tempfile::tempdir()?;
        let (data_dir, work_dir) = (dir.path().join("home"), dir.path().join("work"));
        fs::create_dir(&data_dir)?;
        fs::create_dir(&work_dir)?;
        fs::write(data_dir.join("config.toml"), config)?;
        Ok(Self { data_dir, work_dir, kontekst: kontekst.to_owned(), _dir: dir })
    }

    /// Creates an agent with a system prompt of one sentence.
    pub(crate) fn agent(&self, name: &str, config: &str) -> Result<(), Failure> {
        let agent = self.data_dir.join("agents").join(name);
        fs::create_dir_all(&agent)?;
        fs::write(agent.join("config.toml"), config)?;
        Ok(fs::write(agent.join("agent.md"), "You are a helpful assistant.\n")?)
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("HOME", &self.work_dir).env("KONTEKST_HOME", &self.data_dir);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(&self.work_dir).stdin(Stdio::null());
        command
    }

    pub(crate) fn kontekst(&self, words: &[&str]) -> Command {
        let mut command = self.command(&self.kontekst);
        command.args(words);
        command
    }

    /// Returns the process id of the running daemon.
    pub(crate) fn daemon(&self) -> Option<u32> {
        #[derive(Deserialize)]
        struct Info {
            pid: u32,
        }
        let text = fs::read(self.data_dir.join("run/daemon.json")).ok()?;
        let info: Info = serde_json::from_slice(&text).ok()?;
        // The file outlives a killed daemon, and another process may have its id by now.
        let running = fs::read_link(format!("/proc/{}/exe", info.pid)).ok()?;
        (running.file_name() == self.kontekst.file_name()).then_some(info.pid)
    }

    /// Stops the daemon and waits until its process is gone.
    pub(crate) fn stop_daemon(&self) -> Result<(), Failure> {
        let Some(pid) = self.daemon() else { return Ok(()) };
        process::run(self.kontekst(&["daemon", "stop"]))?;
        let deadline = Instant::now() + Duration::from_secs(15);
        while Path::new(&format!("/proc/{pid}")).exists() {
            if Instant::now() > deadline {
                return Err("the daemon does not stop".into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Returns the number of stored sessions.
    pub(crate) fn sessions(&self) -> usize {
        let Ok(files) = fs::read_dir(self.data_dir.join("sessions")) else { return 0 };
        files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "jsonl")).count()
    }
}

impl Drop for BenchHome {
    fn drop(&mut self) {
        if self.stop_daemon().is_err()
            && let Some(pid) = self.daemon().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
        {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}
