//! The gate in front of every connection: what a name resolves to is checked, and what was checked is
//! what is connected to.
//!
//! ureq asks its resolver before each connection, for addresses written in the URL too, and connects to
//! nothing but what the resolver gives. So this one place covers names, literals and redirects, and a
//! name that changes its address between two looks finds no second look.

use std::io;

use ureq::{
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};

use super::address::{AllowedHosts, is_public};
use crate::core::OwnListeners;

/// A resolver that knows the public web only.
#[derive(Debug)]
pub struct Gate<R = DefaultResolver> {
    resolver: R,
    allowed_hosts: AllowedHosts,
    own_listeners: OwnListeners,
}

/// None of the addresses may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("the host {0} is not on the public internet; [tools.web] allow_private in config.toml can list it")]
pub struct NotPublic(String);

/// It is this daemon itself that listens there.
#[derive(Debug, thiserror::Error)]
#[error("{0} is a door of this daemon, which web_fetch does not go through")]
pub struct OwnDoor(String);

impl<R> Gate<R> {
    pub fn new(resolver: R, allowed_hosts: AllowedHosts, own_listeners: OwnListeners) -> Self {
        Self { resolver, allowed_hosts, own_listeners }
    }
}

impl<R: Resolver> Resolver for Gate<R> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.resolver.resolve(uri, config, timeout)?;
        let host = uri.host().unwrap_or_default();
        let mut open = self.empty();
        for &address in &found {
            let allowed = is_public(address.ip()) || self.allowed_hosts.contains(host, address.port());
            // The daemon's own doors stay shut whatever is listed: behind them, the model could approve its calls.
            if allowed && !self.own_listeners.contains(address) {
                open.push(address);
            }
        }
        if open.is_empty() {
            if !found.is_empty() && found.iter().all(|&address| self.own_listeners.contains(address)) {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, OwnDoor(host.to_owned())).into());
            }
            let refused = NotPublic(host.to_owned());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused).into());
        }
        Ok(open)
    }
}
