//! One folder per wire protocol; no door knows another.
//!
//! A door turns its protocol into [`StartRun`](crate::agent::StartRun) and
//! [`Command`](crate::agent::protocol::Command), and
//! [`Event`](crate::agent::protocol::Event) into its protocol. The translation is pure and lives in
//! `convert.rs`. A door may hold the state of a connection; it touches no disk and calls no provider.

pub mod kaiak;
pub mod kontekst;
pub mod roz;
