//! One model server, one data directory, and the three tools set up to talk to that server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tempfile::TempDir;

use crate::{Failure, floor, process, server::Server};

/// What every case is given.
pub struct Setup {
    pub kontekst: PathBuf,
    pub rounds: u32,
}

/// The models that cases ask for; each has an agent of the same name.
const SCRIPTS: [&str; 3] = ["t1d0", "t2000d0", "st50d20000"];

/// Everything a case runs in. Stops the daemon when dropped.
pub struct Lab {
    pub server: Server,
    pub home: PathBuf,
    /// An empty directory that the tools run in, and files for their stdin.
    pub work: PathBuf,
    kontekst: PathBuf,
    _dir: TempDir,
}

impl Lab {
    /// `window` is the number of tokens that the model sees.
    pub fn new(setup: &Setup, window: u32) -> Result<Self, Failure> {
        let dir = tempfile::tempdir()?;
        let (home, work) = (dir.path().join("home"), dir.path().join("work"));
        let server = Server::start(window)?;
        fs::create_dir(&home)?;
        fs::create_dir(&work)?;
        let config = format!(
            "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\ncontext_size = {window}\n",
            server.url()
        );
        fs::write(home.join("config.toml"), config)?;
        for script in SCRIPTS {
            let agent = home.join("agents").join(script);
            fs::create_dir_all(&agent)?;
            let config =
                format!("name = \"{script}\"\nmodel = \"{script}\"\n\n[sampling]\nmax_tokens = 2048\n");
            fs::write(agent.join("config.toml"), config)?;
            fs::write(agent.join("agent.md"), "You are a helpful assistant.\n")?;
        }
        Ok(Self { server, home, work, kontekst: setup.kontekst.clone(), _dir: dir })
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("HOME", &self.work).env("KONTEKST_HOME", &self.home);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(&self.work).stdin(Stdio::null());
        command
    }

    pub fn kontekst(&self, words: &[&str]) -> Command {
        let mut command = self.command(&self.kontekst);
        command.args(words);
        command
    }

    /// `kontekst run` in a new session, which is stored.
    pub fn ask_kontekst(&self, script: &str, prompt: &str) -> Command {
        self.kontekst(&["run", "--new", "--agent", script, prompt])
    }

    pub fn ask_curl(&self, script: &str, prompt: &str) -> Command {
        self.post_with_curl(&floor::body(script, prompt))
    }

    /// `data` is a body, or `@` and the name of a file that holds one.
    pub fn post_with_curl(&self, data: &str) -> Command {
        let mut command = self.command("curl");
        command.args(["-q", "-sS", "-N", "--fail", "-H", "Content-Type: application/json", "--data-binary"]);
        command.arg(data).arg(format!("{}/v1/chat/completions", self.server.url()));
        command
    }

    pub fn curl(&self, words: &[&str]) -> Command {
        let mut command = self.command("curl");
        command.args(words);
        command
    }

    pub fn ask_floor(&self, script: &str, prompt: &str) -> Result<Command, Failure> {
        let mut command = self.command(std::env::current_exe()?);
        command.args(["--floor", &self.server.address.to_string(), script, prompt]);
        Ok(command)
    }

    /// The process id of the daemon that runs now, if one does.
    pub fn daemon(&self) -> Option<u32> {
        #[derive(Deserialize)]
        struct Info {
            pid: u32,
        }
        let text = fs::read(self.home.join("run/daemon.json")).ok()?;
        let info: Info = serde_json::from_slice(&text).ok()?;
        // The file outlives a daemon that was killed, and its pid may be another's by now.
        let running = fs::read_link(format!("/proc/{}/exe", info.pid)).ok()?;
        (running.file_name() == self.kontekst.file_name()).then_some(info.pid)
    }

    /// Stops the daemon and waits until its process is gone.
    pub fn stop_daemon(&self) -> Result<(), Failure> {
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

    /// How many sessions are stored.
    pub fn sessions(&self) -> usize {
        let Ok(files) = fs::read_dir(self.home.join("sessions")) else { return 0 };
        files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "jsonl")).count()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.stop_daemon().is_err()
            && let Some(pid) = self.daemon().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
        {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}
