//! The command line.

pub mod agents;
pub mod error;
pub mod printable;
pub mod sessions;
pub mod skills;
pub mod table;
