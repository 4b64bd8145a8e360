//! Continuing a session of one gigabyte.

use std::{
    fs,
    fs::File,
    io::{self, Write},
};

use super::in_turn;
use crate::{
    Failure,
    fixture::{Fixture, Options},
    process,
    table::{Row, median},
};

/// A small window, so that reading the end of the file is measured and not sending it.
const WINDOW: u32 = 4096 + 2048;

const GIGABYTE: usize = 1_000_000_000;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let fixture = Fixture::new(options, WINDOW)?;
    process::run(fixture.ask_kontekst("t1d0", "say hello"))?;
    write_session(&fixture)?;

    let resumed = ["run", "--session", "big", "--agent", "t1d0", "say hello"];
    fixture.server.forget();
    process::run(fixture.home.kontekst(&resumed))?;
    let sent = fixture.server.record()?.body_bytes;
    if sent < 8 * 1024 {
        return Err(format!("{sent} bytes were sent: the history is not in them").into());
    }
    let [empty, big] = in_turn(
        options.rounds,
        [&mut || process::run(fixture.ask_kontekst("t1d0", "say hello"))?.first_byte(), &mut || {
            process::run(fixture.home.kontekst(&resumed))?.first_byte()
        }],
    )?;
    Ok(vec![Row::ratio("first token, 1 GB session", median(&big)?, median(&empty)?, 1.3, "x empty")])
}

/// Writes a session of alternating messages with about one kilobyte and 250 tokens each.
fn write_session(fixture: &Fixture) -> Result<(), Failure> {
    let space = rustix::fs::statvfs(&fixture.home.data_dir)?;
    if space.f_bavail * space.f_frsize < 2 * GIGABYTE as u64 {
        return Err(format!("less than 2 GB free in {}", fixture.home.data_dir.display()).into());
    }
    let text = "All work and no play makes a dull boy. ".repeat(25);
    let pair = ["user", "assistant"]
        .map(|role| format!("{{\"role\":\"{role}\",\"content\":\"{text}\",\"tokens\":250}}\n"))
        .concat();
    let block = pair.repeat(1000);
    fs::create_dir_all(fixture.home.data_dir.join("sessions"))?;
    let mut file = File::create(fixture.home.data_dir.join("sessions/big.jsonl"))?;
    for _ in 0..GIGABYTE.div_ceil(block.len()) {
        file.write_all(block.as_bytes())?;
    }
    file.sync_all()?;
    // Fills the page cache. Otherwise the first read would measure the disk.
    io::copy(&mut File::open(fixture.home.data_dir.join("sessions/big.jsonl"))?, &mut io::sink())?;
    Ok(())
}
