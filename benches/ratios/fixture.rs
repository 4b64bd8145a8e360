//! A scripted model server and the three clients that talk to it: kontekst, curl and a minimal one.

use std::{path::PathBuf, process::Command};

use crate::{Failure, home::BenchHome, minimal_client, server::Server};

/// The options that every case gets.
#[derive(Clone)]
pub(crate) struct Options {
    pub kontekst: PathBuf,
    pub rounds: u32,
}

/// The models that the cases request. Each has an agent of the same name.
const SCRIPTS: [&str; 3] = ["t1d0", "t2000d0", "st50d20000"];

/// The environment of a case.
pub(crate) struct Fixture {
    pub home: BenchHome,
    pub server: Server,
}

impl Fixture {
    /// `window` is the context window of the model in tokens.
    pub(crate) fn new(options: &Options, window: u32) -> Result<Self, Failure> {
        let server = Server::start(window)?;
        let config = format!(
            "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\ncontext_size = {window}\n",
            server.url()
        );
        let home = BenchHome::new(&options.kontekst, &config)?;
        for script in SCRIPTS {
            let config =
                format!("name = \"{script}\"\nmodel = \"{script}\"\n\n[sampling]\nmax_tokens = 2048\n");
            home.agent(script, &config)?;
        }
        Ok(Self { home, server })
    }

    /// Returns `kontekst run` in a new, stored session.
    pub(crate) fn ask_kontekst(&self, script: &str, prompt: &str) -> Command {
        self.home.kontekst(&["run", "--new", "--agent", script, prompt])
    }

    pub(crate) fn ask_curl(&self, script: &str, prompt: &str) -> Command {
        self.post_with_curl(&minimal_client::body(script, prompt))
    }

    /// `data` is a body, or `@` and the name of a file with one.
    pub(crate) fn post_with_curl(&self, data: &str) -> Command {
        let mut command = self.home.command("curl");
        command.args(["-q", "-sS", "-N", "--fail", "-H", "Content-Type: application/json", "--data-binary"]);
        command.arg(data).arg(format!("{}/v1/chat/completions", self.server.url()));
        command
    }

    pub(crate) fn curl(&self, words: &[&str]) -> Command {
        let mut command = self.home.command("curl");
        command.args(words);
        command
    }

    pub(crate) fn ask_minimal_client(&self, script: &str, prompt: &str) -> Result<Command, Failure> {
        minimal_client::command(
            &self.home,
            &self.server.address.to_string(),
            &minimal_client::body(script, prompt),
        )
    }
}
