//! One short prompt and an answer of one token.

use super::{CUT, WINDOW, llama, with_server};
use crate::{
    Failure,
    cases::in_turn,
    clock,
    fixture::Options,
    home::BenchHome,
    llama_server::LlamaServer,
    minimal_client, process,
    recording_proxy::RecordingProxy,
    table::{Row, median},
};

/// Returns a prompt that is different each time, but always of the same length.
fn prompt() -> String {
    format!("say hello at {:020}", clock::now())
}

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let llama_server = LlamaServer::start(llama(options)?, WINDOW)?;
    let kontekst = |home: &BenchHome, prompt: &str| {
        process::run_to(CUT, home.kontekst(&["run", "--new", "--agent", "brief", prompt]))
    };

    // The minimal client sends the same request as kontekst, so that the server does the same work for both.
    let (proxy, first) = (RecordingProxy::before(llama_server.address)?, prompt());
    kontekst(&with_server(options, proxy.address)?, &first)?;
    let body = proxy.bodies("/v1/chat/completions").pop().ok_or("kontekst did not ask")?;
    if !body.contains(&first) {
        return Err("the question is not in the request".into());
    }

    let home = with_server(options, llama_server.address)?;
    let address = llama_server.address.to_string();
    let minimal = |body: &str| process::run(minimal_client::command(&home, &address, body)?);
    let [minimal, kontekst] = in_turn(
        options.rounds,
        [&mut || Ok(minimal(&body.replace(&first, &prompt()))?.wall()), &mut || {
            Ok(kontekst(&home, &prompt())?.wall())
        }],
    )?;
    Ok(vec![Row::ratio("one token from llama.cpp", median(&kontekst)?, median(&minimal)?, 1.25, "x minimal")])
}
