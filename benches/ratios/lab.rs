//! One scripted model server, and the three tools set up to talk to it.

use std::{path::PathBuf, process::Command};

use crate::{Failure, desk::Desk, floor, server::Server};

/// What every case is given.
pub struct Setup {
    pub kontekst: PathBuf,
    pub rounds: u32,
    /// For the cases that need llama.cpp's own server.
    pub llama: Option<Llama>,
}

/// llama.cpp's server and a model for it.
#[derive(Clone)]
pub struct Llama {
    pub server: PathBuf,
    pub model: PathBuf,
}

/// The models that cases ask for; each has an agent of the same name.
const SCRIPTS: [&str; 3] = ["t1d0", "t2000d0", "st50d20000"];

/// Everything a case runs in.
pub struct Lab {
    pub desk: Desk,
    pub server: Server,
}

impl Lab {
    /// `window` is the number of tokens that the model sees.
    pub fn new(setup: &Setup, window: u32) -> Result<Self, Failure> {
        let server = Server::start(window)?;
        let config = format!(
            "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\ncontext_size = {window}\n",
            server.url()
        );
        let desk = Desk::new(&setup.kontekst, &config)?;
        for script in SCRIPTS {
            let config =
                format!("name = \"{script}\"\nmodel = \"{script}\"\n\n[sampling]\nmax_tokens = 2048\n");
            desk.agent(script, &config)?;
        }
        Ok(Self { desk, server })
    }

    /// `kontekst run` in a new session, which is stored.
    pub fn ask_kontekst(&self, script: &str, prompt: &str) -> Command {
        self.desk.kontekst(&["run", "--new", "--agent", script, prompt])
    }

    pub fn ask_curl(&self, script: &str, prompt: &str) -> Command {
        self.post_with_curl(&floor::body(script, prompt))
    }

    /// `data` is a body, or `@` and the name of a file that holds one.
    pub fn post_with_curl(&self, data: &str) -> Command {
        let mut command = self.desk.command("curl");
        command.args(["-q", "-sS", "-N", "--fail", "-H", "Content-Type: application/json", "--data-binary"]);
        command.arg(data).arg(format!("{}/v1/chat/completions", self.server.url()));
        command
    }

    pub fn curl(&self, words: &[&str]) -> Command {
        let mut command = self.desk.command("curl");
        command.args(words);
        command
    }

    pub fn ask_floor(&self, script: &str, prompt: &str) -> Result<Command, Failure> {
        floor::command(&self.desk, &self.server.address.to_string(), &floor::body(script, prompt))
    }
}
