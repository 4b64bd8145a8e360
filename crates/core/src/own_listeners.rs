//! The addresses that this process itself listens on.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The TCP listeners of the daemon, which a tool must not connect to on behalf of a model.
///
/// Cheap to clone; all clones are one list. The daemon adds each listener when it opens it, and `web_fetch` checks
/// each address before it connects.
#[derive(Clone, Debug, Default)]
pub struct OwnListeners {
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
}

impl OwnListeners {
    pub fn add(&self, address: SocketAddr) {
        self.addresses().push(address);
    }

    /// Returns true if a connection to `address` may reach one of the listeners.
    ///
    /// A listener on an unspecified address (`0.0.0.0`, `[::]`) is reached by every address, and an unspecified
    /// target reaches every listener with its port.
    pub fn contains(&self, address: SocketAddr) -> bool {
        let is_bound_to =
            |own: IpAddr| own.is_unspecified() || own.to_canonical() == address.ip().to_canonical();
        let is_any_address = address.ip().is_unspecified();
        self.addresses()
            .iter()
            .any(|own| own.port() == address.port() && (is_any_address || is_bound_to(own.ip())))
    }

    fn addresses(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_every_address_that_reaches_it() {
        let listeners = OwnListeners::default();
        listeners.add("127.0.0.1:1".parse().unwrap());
        listeners.clone().add("[::]:2".parse().unwrap());
        for own in
            ["127.0.0.1:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1", "127.0.0.1:2", "[::1]:2", "10.0.0.1:2"]
        {
            assert!(listeners.contains(own.parse().unwrap()), "{own}");
        }
        for other in ["127.0.0.1:3", "127.0.0.2:1", "[::1]:1"] {
            assert!(!listeners.contains(other.parse().unwrap()), "{other}");
        }
    }
}
