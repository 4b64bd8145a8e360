//! The security of connections: the certificates of TLS, and the socket table of the kernel, which says whose a socket is.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod certificates;
pub mod socket_table;
