//! Cases with llama.cpp's own server: tokens that are processed twice, and how soon the server is free again.

mod cancel;
mod count;
mod oneshot;
mod orphans;
mod turns;

use std::{net::SocketAddr, path::Path, process::Command};

use serde_json::Value;

use super::Case;
use crate::{
    Failure,
    fixture::{Llama, Options},
    home::BenchHome,
    process,
};

pub(crate) const ALL: &[Case] = &[
    Case { name: "llama count", run: count::run },
    Case { name: "llama turns", run: turns::run },
    Case { name: "llama cancel", run: cancel::run },
    Case { name: "llama oneshot", run: oneshot::run },
    Case { name: "llama orphans", run: orphans::run },
];

/// The context window of these cases in tokens.
const WINDOW: u32 = 8192;

fn llama(options: &Options) -> Result<&Llama, Failure> {
    options.llama.as_ref().ok_or_else(|| "no llama-server and no model were given".into())
}

/// Sets kontekst up with a managed llama-server.
fn with_its_own(options: &Options) -> Result<BenchHome, Failure> {
    let Llama { server, model } = llama(options)?;
    let name = model.file_name().ok_or("the model is no file")?.to_string_lossy().into_owned();
    let dir = model.parent().unwrap_or(Path::new("/"));
    let config = format!(
        "provider = \"llama-server\"\nllama_server = \"{}\"\nmodel_dir = \"{}\"\n",
        server.display(),
        dir.display()
    );
    home(options, &config, &name)
}

/// Sets kontekst up with the server at an address.
fn with_server(options: &Options, address: SocketAddr) -> Result<BenchHome, Failure> {
    home(options, &format!("provider = \"endpoint\"\nendpoint = \"http://{address}\"\n"), "bench")
}

fn home(options: &Options, provider: &str, model: &str) -> Result<BenchHome, Failure> {
    let home =
        BenchHome::new(&options.kontekst, &format!("{provider}bind = \"off\"\ncontext_size = {WINDOW}\n"))?;
    for (agent, max_tokens) in [("default", 8), ("brief", 1)] {
        let sampling = format!("[sampling]\ntemperature = 0.0\nmax_tokens = {max_tokens}\n");
        home.agent(agent, &format!("model = \"{model}\"\n{sampling}"))?;
    }
    Ok(home)
}

/// Returns a text of this many lines, different in each call.
fn text(lines: u32) -> String {
    let now = crate::clock::now();
    (0..lines).map(|line| format!("{now} {line} The session is stored as lines of text.\n")).collect()
}

/// The exit status of a run whose answer was cut, as all are here: `max_tokens` is small, because only the prompt counts.
const CUT: i32 = 5;

/// Runs a command with `--json` and returns its events.
fn events(command: Command) -> Result<Vec<Value>, Failure> {
    let ran = process::run_to(CUT, command)?;
    let lines = ran.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<Result<_, _>>()?)
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Result<&'a Value, Failure> {
    events.iter().rfind(|event| event["type"] == kind).ok_or_else(|| format!("no {kind}").into())
}
