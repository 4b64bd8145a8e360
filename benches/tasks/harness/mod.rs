//! The programs that can run a task: kontekst, and other agents with the same model server.

mod kontekst;
mod peer;

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::{Failure, arguments::Args, recorder::Exchange, server::ModelServer, suite::Task};
use peer::Peer;

/// One way to run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harness {
    Kontekst,
    /// `kontekst run --bare`: no rails.
    Bare,
    Pi,
    Llm,
}

/// One task in a directory of its own.
pub(crate) struct Run<'a> {
    pub(crate) args: &'a Args,
    pub(crate) server: &'a ModelServer,
    pub(crate) task: &'a Task,
    /// The files of the task.
    pub(crate) work_dir: PathBuf,
    /// Everything else: the data directory, and the transcript.
    pub(crate) dir: PathBuf,
}

impl Run<'_> {
    /// Returns what was exchanged with the model server in this run, and writes it beside the transcript.
    fn take_exchanges(&self) -> Result<Vec<Exchange>, Failure> {
        let exchanges =
            self.server.recorder.as_ref().map(crate::recorder::Recorder::take).unwrap_or_default();
        let mut text = String::new();
        for Exchange { request, response } in &exchanges {
            write!(text, "> {request}\n{response}\n\n")?;
        }
        fs::write(self.dir.join("exchanges.txt"), text)?;
        Ok(exchanges)
    }
}

/// The end of a run, and the tokens that it used.
#[derive(Default)]
pub(crate) struct RunEnd {
    pub(crate) exit: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) answer: String,
    /// The harness itself failed, for example by a panic.
    pub(crate) crash: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) seconds: f64,
}

/// The calls of the model server, and their tokens.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Usage {
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    /// The part of `prompt_tokens` that the server had read before.
    pub(crate) cached_tokens: u64,
    pub(crate) completion_tokens: u64,
}

impl Harness {
    pub(crate) const ALL: &[Self] = &[Self::Kontekst, Self::Bare, Self::Pi, Self::Llm];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kontekst => "kontekst",
            Self::Bare => "bare",
            Self::Pi => "pi",
            Self::Llm => "llm",
        }
    }

    /// Returns true if the limits of a task can be set.
    pub(crate) fn has_limits(self) -> bool {
        self.peer().is_none()
    }

    /// Returns why this harness cannot be measured here.
    pub(crate) fn missing(self, server: &ModelServer) -> Option<String> {
        let peer = self.peer()?;
        match peer.program() {
            None => Some(format!("it is not installed ({})", peer.install)),
            Some(_) => server.recorder.is_none().then(|| "it needs a model server".to_owned()),
        }
    }

    fn peer(self) -> Option<&'static Peer> {
        match self {
            Self::Kontekst | Self::Bare => None,
            Self::Pi => Some(&peer::PI),
            Self::Llm => Some(&peer::LLM),
        }
    }

    pub(crate) fn run(self, run: &Run) -> Result<RunEnd, Failure> {
        match self {
            Self::Kontekst => kontekst::run(run, &[]),
            Self::Bare => kontekst::run(run, &["--bare"]),
            Self::Pi => peer::PI.run(run),
            Self::Llm => peer::LLM.run(run),
        }
    }
}
