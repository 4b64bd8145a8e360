//! A run that is interrupted while the model reads its prompt.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{WINDOW, llama, text, with_server};
use crate::{
    Failure,
    fixture::Options,
    home::BenchHome,
    llama_server::{BATCH, LlamaServer},
    table::{Row, median},
};

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let llama_server = LlamaServer::start(llama(options)?, WINDOW)?;
    let home = with_server(options, llama_server.address)?;
    let mut read = Vec::new();
    for _ in 0..options.rounds.min(5) {
        read.push(after_cancel(&home, &llama_server)?);
    }
    read.sort_by(f64::total_cmp);
    let most = read.last().copied().ok_or("nothing was measured")?;
    let from = format!("{} tokens, at most {most}", median(&read)?);
    // The batch that is being processed during the cancel is completed.
    let more = (most / f64::from(BATCH) - 1.0).max(0.0);
    Ok(vec![Row::share("read on after a cancel", from, more, 1.0, "batches")])
}

/// Returns how many tokens the server processes after a run was cancelled.
fn after_cancel(home: &BenchHome, llama_server: &LlamaServer) -> Result<f64, Failure> {
    let mut client = home
        .kontekst(&["run", "--new", "--json", &text(200)])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut lines = BufReader::new(client.stdout.take().expect("stdout is piped")).lines();
    let reported = loop {
        let line = lines.next().ok_or("the prompt was read before it could be interrupted")??;
        let event: Value = serde_json::from_str(&line)?;
        match event["processed"].as_u64().filter(|_| event["type"] == "prefill") {
            Some(processed) if processed > 2 * u64::from(BATCH) => break processed,
            _ => {}
        }
    };
    kill_process(Pid::from_child(&client), Signal::INT)?;
    client.wait()?;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let slots = llama_server.ask("/slots")?;
        if slots[0]["is_processing"] == false {
            let read = slots[0]["n_prompt_tokens"].as_u64().ok_or("this llama-server does not tell")?;
            return Ok(read.saturating_sub(reported) as f64);
        }
        if Instant::now() > deadline {
            return Err("the slot is not given back".into());
        }
        thread::sleep(Duration::from_millis(5));
    }
}
