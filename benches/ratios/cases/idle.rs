//! What the daemon takes while nobody asks.

use std::{fs, thread, time::Duration};

use super::WIDE;
use crate::{
    Failure,
    lab::{Lab, Setup},
    process,
    table::Row,
};

/// Long enough for a timer of a few seconds to be seen.
const WINDOW: Duration = Duration::from_secs(10);

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let lab = Lab::new(setup, WIDE)?;
    process::run(lab.ask_kontekst("t1d0", "say hello"))?;
    let pid = lab.daemon().ok_or("no daemon after a run")?;
    // What the run left to do, such as syncing its session, is not idleness.
    thread::sleep(Duration::from_secs(2));

    let before = (ticks(pid)?, switches(pid)?);
    thread::sleep(WINDOW);
    let after = (ticks(pid)?, switches(pid)?);
    Ok(vec![
        Row::amount("memory of the idle daemon", resident(pid)? as f64 / 1e6, 12.0, "MB"),
        Row::amount("its CPU in 10 s", (after.0 - before.0) as f64, 0.0, "ticks"),
        Row::amount("its context switches in 10 s", (after.1 - before.1) as f64, 2.0, "switches"),
    ])
}

/// Bytes in RAM.
fn resident(pid: u32) -> Result<u64, Failure> {
    Ok(field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmRSS:")? * 1024)
}

/// Clock ticks on a CPU since the start, of all threads.
fn ticks(pid: u32) -> Result<u64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name stands in parentheses and may hold anything; utime and stime are the 12th and 13th after it.
    let (_, rest) = stat.rsplit_once(") ").ok_or("stat without a name")?;
    let times = rest.split(' ').skip(11).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()?)
}

/// How often a thread was put on or off a CPU since the start.
fn switches(pid: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        sum += field(&status, "voluntary_ctxt_switches:")? + field(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(sum)
}

fn field(status: &str, name: &str) -> Result<u64, Failure> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("a field is missing")?;
    Ok(line.split_whitespace().next().ok_or("a field is empty")?.parse()?)
}
