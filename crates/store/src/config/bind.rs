//! An address to listen on.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// The value of `bind`: `off`, `:PORT` (loopback), `localhost:PORT`, `IP:PORT` or `[IPv6]:PORT`.
///
/// A blank text is the default, `:50051`. Displays as `off` or `IP:PORT`, which parses to the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Bind {
    /// Does not listen on TCP.
    Off,
    Tcp(SocketAddr),
}

/// The text is not an address to listen on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not an address: use `:PORT` for this machine only, `IP:PORT`, or `off`")]
pub struct BadBind(String);

impl Bind {
    /// Returns true if other machines can reach the address. An unspecified one (`0.0.0.0`, `[::]`) is reachable.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Off => false,
            Self::Tcp(addr) => !addr.ip().is_loopback(),
        }
    }
}

impl Default for Bind {
    /// The architecture seed's `:50051` ("Global Config"), on loopback.
    fn default() -> Self {
        Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50051))
    }
}

impl FromStr for Bind {
    type Err = BadBind;

    fn from_str(text: &str) -> Result<Self, BadBind> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        let bad = || BadBind(text.chars().take(64).collect());
        let host_port = text.rsplit_once(':');
        if let Some(("" | "localhost", port)) = host_port {
            // `u16::from_str` accepts a leading `+`, which no address has.
            let port = port.parse().ok().filter(|_| !port.starts_with('+')).ok_or_else(bad)?;
            return Ok(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self::Tcp).map_err(|_| bad())
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.pad("off"),
            Self::Tcp(addr) => addr.fmt(f),
        }
    }
}

impl TryFrom<String> for Bind {
    type Error = BadBind;

    fn try_from(text: String) -> Result<Self, BadBind> {
        text.parse()
    }
}

impl From<Bind> for String {
    fn from(bind: Bind) -> Self {
        bind.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_parse_and_display() {
        for (text, displayed, remote) in [
            (":50051", "127.0.0.1:50051", false),
            ("", "127.0.0.1:50051", false),
            ("  ", "127.0.0.1:50051", false),
            ("localhost:1", "127.0.0.1:1", false),
            ("127.9.9.9:1", "127.9.9.9:1", false),
            ("[::1]:7", "[::1]:7", false),
            ("0.0.0.0:7", "0.0.0.0:7", true),
            ("[::]:7", "[::]:7", true),
            ("192.168.1.2:7", "192.168.1.2:7", true),
            ("off", "off", false),
            ("OFF", "off", false),
        ] {
            let bind: Bind = text.parse().unwrap();
            assert_eq!((bind.to_string().as_str(), bind.is_remote()), (displayed, remote), "{text}");
            assert_eq!(displayed.parse::<Bind>().unwrap(), bind, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in
            ["50051", ":", ":x", ":65536", ":-1", ":+5", "::1:5", "example.org:5", "1.2.3.4", "unix:/x", "on"]
        {
            assert!(text.parse::<Bind>().is_err(), "{text}");
        }
    }
}
