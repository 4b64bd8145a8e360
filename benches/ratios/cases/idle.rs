//! Memory, CPU time and context switches of the idle daemon.

use std::{collections::HashMap, fs, thread, time::Duration};

use super::LARGE_WINDOW;
use crate::{
    Failure,
    fixture::{Fixture, Options},
    process,
    table::Row,
};

/// The time for which the idle daemon is observed. It is long enough to show a timer of a few seconds.
const WINDOW: Duration = Duration::from_secs(10);

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let fixture = Fixture::new(options, LARGE_WINDOW)?;
    process::run(fixture.ask_kontekst("t1d0", "say hello"))?;
    let pid = fixture.home.daemon().ok_or("no daemon after a run")?;
    // Blocking threads of tokio wait ten seconds for further work before they end.
    thread::sleep(Duration::from_secs(12));

    let (ticks_before, switches_before) = (ticks(pid)?, switches(pid)?);
    thread::sleep(WINDOW);
    let (ticks_after, switches_after) = (ticks(pid)?, switches(pid)?);
    // A new thread counts with all of its switches. One that has ended was switched to at least once for that.
    let ended = switches_before.keys().filter(|thread| !switches_after.contains_key(*thread)).count() as u64;
    let since = |(thread, count): (&u32, &u64)| count - switches_before.get(thread).unwrap_or(&0);
    let switched = ended + switches_after.iter().map(since).sum::<u64>();
    Ok(vec![
        Row::amount("memory of the idle daemon", resident(pid)? as f64 / 1e6, 12.0, "MB"),
        Row::amount("its CPU in 10 s", (ticks_after - ticks_before) as f64, 0.0, "ticks"),
        Row::amount("its context switches in 10 s", switched as f64, 2.0, "switches"),
    ])
}

/// Returns the resident memory in bytes.
pub(super) fn resident(pid: u32) -> Result<u64, Failure> {
    Ok(field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmRSS:")? * 1024)
}

/// Returns the CPU time of all threads in clock ticks.
fn ticks(pid: u32) -> Result<u64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain any character. utime and stime are the 12th and 13th field after it.
    let (_, rest) = stat.rsplit_once(") ").ok_or("stat without a name")?;
    let times = rest.split(' ').skip(11).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()?)
}

/// Returns the number of context switches of each thread.
fn switches(pid: u32) -> Result<HashMap<u32, u64>, Failure> {
    let mut threads = HashMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?;
        let status = fs::read_to_string(task.path().join("status"))?;
        let count =
            field(&status, "voluntary_ctxt_switches:")? + field(&status, "nonvoluntary_ctxt_switches:")?;
        threads.insert(task.file_name().to_string_lossy().parse()?, count);
    }
    Ok(threads)
}

fn field(status: &str, name: &str) -> Result<u64, Failure> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("a field is missing")?;
    Ok(line.split_whitespace().next().ok_or("a field is empty")?.parse()?)
}
