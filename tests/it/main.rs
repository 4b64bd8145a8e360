//! Everything that is tested from outside the library, in one binary.

#![allow(clippy::unwrap_used, reason = "all of it is test code; clippy only knows functions marked as tests")]

#[cfg(feature = "builtin")]
mod builtin;
mod core;
mod daemon;
mod fake_llama;
mod generated;
mod grpc;
mod home;
mod kaiak;
mod machines;
mod models;
mod orphans;
mod prefix;
mod provider;
mod real;
mod roz;
mod run;
mod tidy;
mod weak;
mod workers;
