//! The addresses that this process itself listens on.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A fact about the process, as its id is: whoever opens a listener notes it here, and whoever connects on behalf of
/// a model looks.
static OPEN: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());

/// Notes a listener of ours.
pub fn opened(address: SocketAddr) {
    open().push(address);
}

/// Whether a connection to `address` may end at a listener of ours. One that listens on all addresses is taken to be
/// at each.
pub fn is_ours(address: SocketAddr) -> bool {
    let same = |own: IpAddr| own.is_unspecified() || own.to_canonical() == address.ip().to_canonical();
    let anywhere = address.ip().is_unspecified();
    open().iter().any(|own| own.port() == address.port() && (anywhere || same(own.ip())))
}

fn open() -> MutexGuard<'static, Vec<SocketAddr>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_known_by_every_address_that_leads_to_it() {
        opened("127.0.0.1:1".parse().unwrap());
        opened("[::]:2".parse().unwrap());
        for ours in
            ["127.0.0.1:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1", "127.0.0.1:2", "[::1]:2", "10.0.0.1:2"]
        {
            assert!(is_ours(ours.parse().unwrap()), "{ours}");
        }
        for other in ["127.0.0.1:3", "127.0.0.2:1", "[::1]:1"] {
            assert!(!is_ours(other.parse().unwrap()), "{other}");
        }
    }
}
