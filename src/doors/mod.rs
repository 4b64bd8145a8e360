//! Doors: one folder for each wire protocol. No door depends on another one.
//!
//! A door turns its protocol into [`StartRun`](crate::agent::StartRun) and
//! [`Command`](crate::agent::protocol::Command), and [`Event`](crate::agent::protocol::Event) into its protocol. The
//! translation is pure and is in `convert.rs`. A door may hold the state of a connection, but it reads no files and
//! calls no provider.

mod grpc;
mod reflection;

pub mod http;
pub mod kaiak;
pub mod kontekst;
pub mod roz;

pub use grpc::GrpcServices;
