//! A file on stdin with a question about it.

use std::{fs, fs::File, path::Path, process::Command};

use super::in_turn;
use crate::{
    Failure, floor,
    lab::{Lab, Setup},
    process,
    table::{Row, median},
};

const MIB: usize = 1024 * 1024;

/// Sixteen million tokens, four times what the largest input is.
const HUGE: u32 = 1 << 24;

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let lab = Lab::new(setup, HUGE)?;
    let text = "The quick brown fox jumps over the lazy dog, and then over one more.\n";
    let (input, body) = (lab.desk.work.join("input.txt"), lab.desk.work.join("body.json"));
    let fill = |bytes: usize| -> Result<(), Failure> {
        let text = text.repeat(bytes.div_ceil(text.len()));
        fs::write(&input, &text[..bytes])?;
        Ok(fs::write(&body, floor::body("t1d0", &text[..bytes]))?)
    };

    fill(MIB)?;
    let [curl, kontekst] = in_turn(
        setup.rounds,
        [&mut || Ok(process::run(lab.post_with_curl("@body.json"))?.wall()), &mut || {
            Ok(process::run(reading(&input, lab.ask_kontekst("t1d0", "sum it up"))?)?.wall())
        }],
    )?;

    fill(16 * MIB)?;
    lab.server.forget();
    process::run(reading(&input, lab.ask_kontekst("t1d0", "sum it up"))?)?;
    let arrived = lab.server.record()?.body_bytes as f64 / MIB as f64;
    Ok(vec![
        Row::ratio("1 MiB on stdin", median(&kontekst)?, median(&curl)?, 1.1, "x curl"),
        // The goal is that all of it arrives; a body cannot be smaller than its text.
        Row::share("16 MiB on stdin", format!("{arrived:.1} MiB sent"), 16.0 / arrived, 1.0, "whole"),
    ])
}

fn reading(input: &Path, mut command: Command) -> Result<Command, Failure> {
    command.stdin(File::open(input)?);
    Ok(command)
}
