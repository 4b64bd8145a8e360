//! Chooses the address of a server.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

/// The first port that a server of ours may have. Those below are where people and programs expect something else.
const FIRST_PORT: u16 = 32_768;

/// The number of ports that the kernel is asked for. Its own range begins at [`FIRST_PORT`], unless somebody has widened it.
const TRIES: usize = 64;

/// Returns a free port on loopback.
///
/// # Errors
///
/// There is none.
pub(super) fn free() -> io::Result<SocketAddr> {
    // All are closed again, because llama-server binds the port itself. If another process is faster, it ends with an error.
    let mut taken = Vec::new();
    for _ in 0..TRIES {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        if address.port() >= FIRST_PORT {
            return Ok(address);
        }
        taken.push(listener);
    }
    Err(io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        format!("the kernel gives none from {FIRST_PORT} on"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_high_port_on_loopback_on_which_nobody_listens() {
        let address = free().unwrap();
        assert!(address.ip().is_loopback() && address.port() >= FIRST_PORT, "{address}");
        TcpListener::bind(address).unwrap();
    }
}
