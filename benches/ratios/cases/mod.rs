//! The cases, cheapest first. Each sets up its own [`Fixture`](crate::fixture::Fixture) and returns a row for each goal.

mod chat;
mod idle;
pub(crate) mod memory;
mod oneshot;
mod parallel;
mod resume;
mod start;
mod stdin;
mod stream;

use crate::{Failure, fixture::Options, table::Row};

/// A case of the benchmark.
pub(crate) struct Case {
    pub name: &'static str,
    pub run: fn(&Options) -> Result<Vec<Row>, Failure>,
}

pub(crate) const ALL: &[Case] = &[
    Case { name: "start", run: start::run },
    Case { name: "oneshot", run: oneshot::run },
    Case { name: "stream", run: stream::run },
    Case { name: "chat", run: chat::run },
    Case { name: "stdin", run: stdin::run },
    Case { name: "idle", run: idle::run },
    Case { name: "parallel", run: parallel::run },
    Case { name: "resume", run: resume::run },
];

/// A context window, in tokens, that no prompt of these cases fills.
pub(crate) const LARGE_WINDOW: u32 = 131_072;

/// Runs the tools alternately, `rounds` times after one warm-up run of each, and returns the figures of each tool.
fn in_turn<T, const N: usize>(
    rounds: u32,
    mut tools: [&mut dyn FnMut() -> Result<T, Failure>; N],
) -> Result<[Vec<T>; N], Failure> {
    for tool in &mut tools {
        tool()?;
    }
    let mut figures = [const { Vec::new() }; N];
    for _ in 0..rounds {
        for (tool, figures) in tools.iter_mut().zip(&mut figures) {
            figures.push(tool()?);
        }
    }
    Ok(figures)
}
