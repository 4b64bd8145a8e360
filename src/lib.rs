//! kontekst, a local-first AI agent: a command line client and the daemon that it starts.
//!
//! This library is not a public API. A module is `pub` if the tests, the benchmarks or `main.rs` use
//! it: tests open a door in memory, and compare `man/` with the command line. `ARCHITECTURE.md` is the map.
//!
//! A prompt goes down the list `cli` → `client` → `doors` → `agent` → `provider`, and the answer goes back up. The agent
//! also uses `tools`, `sessions`, `subagent_log`, `context` and `skills`.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod core;

pub mod config;

mod certificates;
mod jobs;
pub mod journal;
pub mod parked;
pub mod sandbox;
mod socket_table;
mod systemd;

mod context;
pub mod models;
pub mod provider;
pub mod sessions;
mod skills;
pub mod subagent_log;
pub mod tools;

pub mod agent;

pub mod pb;

pub mod doors;

pub mod client;
mod daemon;

pub mod cli;

#[cfg(test)]
#[path = "../tests/it/hostile_input.rs"]
mod hostile_input;
