//! What connections are checked with: the certificates of TLS, and the socket table of the kernel.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod certificates;
pub mod socket_table;
