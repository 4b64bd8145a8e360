//! Model servers that outlive a killed daemon.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::with_its_own;
use crate::{Failure, clock, fixture::Options, home::BenchHome, process, table::Row};

const ROUNDS: u64 = 50;

/// The time that the model servers may take to exit.
const LIMIT: Duration = Duration::from_secs(2);

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let home = with_its_own(options)?;
    let (mut times, mut left) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let children = kill(&home, round)?;
        let killed = clock::now();
        let deadline = Instant::now() + LIMIT;
        for child in children {
            while alive(child) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            times.push(clock::millis(killed, clock::now()));
            left += u32::from(alive(child));
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get(((times.len() - 1) as f64 * share) as usize).copied().unwrap_or_default();
    let from = format!("{} in {:.0}/{:.0}/{:.0} ms", times.len(), at(0.5), at(0.9), at(1.0));
    Ok(vec![Row::share("children 2 s after kill -9", from, f64::from(left), 0.0, "left")])
}

/// Kills the daemon while its model server starts, loads or answers. Returns the children of the daemon.
fn kill(home: &BenchHome, round: u64) -> Result<Vec<u32>, Failure> {
    let run = process::start(home.kontekst(&["run", "--new", "hello"]))?;
    thread::sleep(Duration::from_millis(round * 7 % 300));
    let deadline = Instant::now() + Duration::from_secs(30);
    let (daemon, children) = loop {
        match home.daemon().map(|daemon| (daemon, children(daemon))) {
            Some((daemon, Ok(children))) if !children.is_empty() => break (daemon, children),
            _ if Instant::now() > deadline => return Err("no model server was started".into()),
            _ => thread::sleep(Duration::from_millis(1)),
        }
    };
    let pid = i32::try_from(daemon).ok().and_then(Pid::from_raw).ok_or("a process id of 0")?;
    kill_process(pid, Signal::KILL)?;
    run.finish().ok(); // fails if the run had not completed
    Ok(children)
}

fn children(parent: u32) -> Result<Vec<u32>, Failure> {
    let processes = fs::read_dir("/proc")?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    Ok(ids.filter(|&id| matches!(stat(id), Some((_, of)) if of == parent)).collect())
}

/// Returns false for a zombie as well. It only waits to be reaped.
fn alive(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state != 'Z')
}

/// Returns the state of a process and its parent.
fn stat(id: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}
