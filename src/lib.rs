//! kontekst, a local-first AI agent: a command line client and the daemon that it starts.
//!
//! This library is not a public API. A module is `pub` if the tests, the benchmarks or `main.rs` use it: tests compare
//! `man/` with the command line. `ARCHITECTURE.md` is the map of this crate and of those in `crates/`.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod client;
mod daemon;

pub mod cli;
