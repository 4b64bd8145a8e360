//! kontekst, a local-first AI agent: a thin CLI and the daemon it spawns.
//!
//! This library is not a public API. It exists so that tests can open a door in memory and so that
//! `man/` and `completions/` can be checked against the command line. `ARCHITECTURE.md` is the map.
//!
//! A prompt travels down this list and the answer back up: `cli` → `client` → `doors` → `agent` →
//! `provider`, with `tools`, `sessions`, `subagent_log`, `context` and `skills` at the agent's hand.

pub mod core;

pub mod config;

pub mod context;
pub mod models;
pub mod provider;
pub mod sessions;
pub mod skills;
pub mod subagent_log;
pub mod tools;

pub mod agent;

pub mod pb;

pub mod doors;

pub mod client;
pub mod daemon;

pub mod cli;
