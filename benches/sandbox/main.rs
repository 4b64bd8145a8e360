//! Measures how much longer `true` takes in the sandbox than with `sh -c true`, side by side.
//!
//!     cargo bench --bench sandbox [-- PATH]
//!
//! `PATH` is the program that prepares the sandbox, instead of the one that cargo built: the static one starts faster.
//!
//! The rows take turns, so that a busy machine is busy for all of them. The minimum of many is what a row costs when
//! nothing else runs; the goal is 5 ms more than without a sandbox.

#![expect(clippy::print_stdout, reason = "it is what a bench is for")]

use std::{
    error::Error,
    fs::File,
    os::fd::AsFd as _,
    process::Command,
    time::{Duration, Instant},
};

use kontekst_core::Cancel;
use kontekst_sandbox::{CommandSpec, Layers, Limits, Sandbox, View};

/// The number of measurements of each row.
const ROUNDS: usize = 200;

/// The layers of each row. The last row has the network.
const LAYERS: [(&str, Layers); 5] = [
    ("no layer", Layers::NONE),
    ("namespaces", Layers { namespaces: true, filters: false }),
    ("filters", Layers { namespaces: false, filters: true }),
    ("both layers", Layers::BOTH),
    (WITH_NETWORK, Layers::BOTH),
];
const WITH_NETWORK: &str = "with network";

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let handle = File::open(dir.path())?;
    let without_network = CommandSpec {
        line: "true",
        work_dir: handle.as_fd(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        read_only: Vec::new(),
        readable: Vec::new(),
        writable: Vec::new(),
        network: false,
        umask: 0o022,
        limits: Limits::default(),
    };
    let with_network = CommandSpec { network: true, ..without_network.clone() };
    // Cargo adds `--bench`.
    let given = std::env::args().skip(1).find(|argument| argument != "--bench");
    let program = given.unwrap_or_else(|| env!("CARGO_BIN_EXE_kontekst").to_owned());
    let sandboxes = LAYERS.map(|(_, layers)| Sandbox::new(program.clone().into(), layers, View::default()));
    let mut plain = Vec::new();
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        Command::new("/bin/sh").args(["-c", "true"]).current_dir(dir.path()).output()?;
        plain.push(start.elapsed());
        for ((sandbox, times), (name, _)) in sandboxes.iter().zip(&mut times).zip(LAYERS) {
            let command = if name == WITH_NETWORK { &with_network } else { &without_network };
            times.push(sandbox.run(command, &Cancel::new(), &mut |_| {})?.duration);
        }
    }
    println!("{:12} {:>9} {:>9} {:>9}", "", "minimum", "median", "more");
    let base = print_row("sh -c true", &mut plain, None);
    for ((name, _), times) in LAYERS.iter().zip(&mut times) {
        print_row(name, times, Some(base));
    }
    Ok(())
}

/// Prints a row in milliseconds, and returns its minimum.
fn print_row(name: &str, times: &mut [Duration], base: Option<Duration>) -> Duration {
    times.sort();
    let (minimum, median) = (times[0], times[times.len() / 2]);
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    let more = base.map_or_else(String::new, |base| ms(minimum.saturating_sub(base)));
    println!("{name:12} {:>9} {:>9} {more:>9}", ms(minimum), ms(median));
    minimum
}
