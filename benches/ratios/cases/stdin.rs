//! A file on stdin with a prompt about it.

use std::{fs, fs::File, path::Path, process::Command};

use super::in_turn;
use crate::{
    Failure,
    fixture::{Fixture, Options},
    minimal_client, process,
    table::{Row, median},
};

const MIB: usize = 1024 * 1024;

/// A window of 16 million tokens, four times the largest input.
const HUGE: u32 = 1 << 24;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let fixture = Fixture::new(options, HUGE)?;
    let text = "The quick brown fox jumps over the lazy dog, and then over one more.\n";
    let (input, body) = (fixture.home.work_dir.join("input.txt"), fixture.home.work_dir.join("body.json"));
    let fill = |bytes: usize| -> Result<(), Failure> {
        let text = text.repeat(bytes.div_ceil(text.len()));
        fs::write(&input, &text[..bytes])?;
        Ok(fs::write(&body, minimal_client::body("t1d0", &text[..bytes]))?)
    };

    fill(MIB)?;
    let [curl, kontekst] = in_turn(
        options.rounds,
        [&mut || Ok(process::run(fixture.post_with_curl("@body.json"))?.wall()), &mut || {
            Ok(process::run(reading(&input, fixture.ask_kontekst("t1d0", "sum it up"))?)?.wall())
        }],
    )?;

    fill(16 * MIB)?;
    fixture.server.forget();
    process::run(reading(&input, fixture.ask_kontekst("t1d0", "sum it up"))?)?;
    let arrived = fixture.server.record()?.body_bytes as f64 / MIB as f64;
    Ok(vec![
        Row::ratio("1 MiB on stdin", median(&kontekst)?, median(&curl)?, 1.05, "x curl"),
        // The goal is that all of it arrives. A body cannot be smaller than its text.
        Row::share("16 MiB on stdin", format!("{arrived:.1} MiB sent"), 16.0 / arrived, 1.0, "whole"),
    ])
}

fn reading(input: &Path, mut command: Command) -> Result<Command, Failure> {
    command.stdin(File::open(input)?);
    Ok(command)
}
