//! Chooses the address of a server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Returns the address of the URL `preferred` if it is a loopback address with a free port, otherwise any free port.
pub(super) fn free(preferred: Option<&str>) -> std::io::Result<SocketAddr> {
    let wanted = preferred.and_then(|url| url::Url::parse(url).ok()).and_then(|url| {
        let ip = match url.host()? {
            url::Host::Domain("localhost") => Ipv4Addr::LOCALHOST.into(),
            url::Host::Ipv4(ip) if ip.is_loopback() => ip.into(),
            url::Host::Ipv6(ip) if ip == Ipv6Addr::LOCALHOST => ip.into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, url.port_or_known_default()?))
    });
    // The listener is closed again, because llama-server binds the port itself. If another process is faster,
    // llama-server ends with an error.
    let bind = |address: SocketAddr| TcpListener::bind(address)?.local_addr();
    match wanted.map(bind) {
        Some(Ok(address)) => Ok(address),
        _ => bind((Ipv4Addr::LOCALHOST, 0).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_port_is_used_if_it_is_local_and_free() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let url = format!("http://localhost:{port}/v1");
        assert_ne!(free(Some(&url)).unwrap().port(), port);
        drop(taken);
        assert_eq!(free(Some(&url)).unwrap(), SocketAddr::from(([127, 0, 0, 1], port)));
        for elsewhere in ["http://192.0.2.1:8080", "http://example.com", "nonsense"] {
            assert!(free(Some(elsewhere)).unwrap().ip().is_loopback());
        }
    }
}
