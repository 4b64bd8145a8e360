//! The model server that all runs share.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{Failure, arguments::Args, text_of};

/// The time that a server may take to load a model.
const LOAD_TIME: Duration = Duration::from_secs(180);

/// The model server of the bench, which ends when this is dropped.
pub(crate) struct ModelServer {
    /// The address that all runs use, or `None` if they use the built-in engine.
    pub(crate) endpoint: Option<String>,
    child: Option<Child>,
}

impl ModelServer {
    /// Starts what the command line asks for, and waits until it can be used.
    pub(crate) fn start(args: &Args) -> Result<Self, Failure> {
        match (&args.endpoint, args.server(), &args.model) {
            (Some(endpoint), _, _) => Ok(Self { endpoint: Some(endpoint.clone()), child: None }),
            (None, Some(program), Some(model)) => Self::spawn(&program, model, args),
            _ => Ok(Self { endpoint: None, child: None }),
        }
    }

    fn spawn(program: &Path, model: &Path, args: &Args) -> Result<Self, Failure> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string();
        let log = match &args.keep {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                Stdio::from(File::create(dir.join("server.log"))?)
            }
            None => Stdio::null(),
        };
        let child = Command::new(program)
            .args(["--host", "127.0.0.1", "--port", &port, "--jinja", "-np", "1"])
            .args(["-c", &args.window.to_string(), "-t", &args.threads.to_string(), "-m", text_of(model)?])
            // With this variable llama-server ends at the end of its stdin, so it does not outlive a bench that is killed.
            .env("LLAMA_SERVER_ROUTER_PORT", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", program.display()))?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let mut server = Self { endpoint: Some(endpoint.clone()), child: Some(child) };
        let deadline = Instant::now() + LOAD_TIME;
        while ureq::get(format!("{endpoint}/health")).call().is_err() {
            if let Some(status) = server.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                return Err(format!("{} ended with {status}", program.display()).into());
            }
            if Instant::now() > deadline {
                return Err(format!("{} does not get ready", program.display()).into());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// Says what answers, for the title of the table.
    pub(crate) fn description(&self) -> &'static str {
        match (&self.endpoint, &self.child) {
            (None, _) => "built-in engine",
            (Some(_), None) => "running endpoint",
            (Some(_), Some(_)) => "llama-server",
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
