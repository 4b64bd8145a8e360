//! The command line.

pub mod error;
pub mod printable;
