//! The host of a rule about `web_fetch`.

use super::weight::Class;

/// One host, or all hosts below a name.
#[derive(Clone)]
pub(super) struct HostPattern {
    name: String,
    /// It was written as `*.NAME`: the host itself and all below it.
    with_subdomains: bool,
}

impl HostPattern {
    /// Reads `docs.rs` or `*.rust-lang.org`.
    ///
    /// # Errors
    ///
    /// The reason why it is no host, as a sentence.
    pub(super) fn parse(given: &str) -> Result<Self, String> {
        let (name, with_subdomains) = match given.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (given, false),
        };
        // The same form as in an address: lower case, and international names in ASCII.
        match url::Host::parse(name.trim_end_matches('.')) {
            Ok(host) => Ok(Self { name: host.to_string(), with_subdomains }),
            Err(_) => Err(format!(
                "`{given}` is not the name of a host: write for example docs.rs, or *.rust-lang.org with all hosts below it"
            )),
        }
    }

    /// Returns how exactly the pattern names this host of an address, or `None` if it does not.
    pub(super) fn fit(&self, host: &str) -> Option<(Class, usize)> {
        let host = host.trim_end_matches('.');
        let length = self.name.split('.').count();
        if host == self.name && !self.with_subdomains {
            return Some((Class::Exact, length));
        }
        let is_below =
            host.strip_suffix(&self.name).is_some_and(|front| front.is_empty() || front.ends_with('.'));
        (self.with_subdomains && is_below).then_some((Class::Pattern, length))
    }
}

/// Returns the host of an address, as patterns compare it.
pub(super) fn host_of(url: &str) -> Option<String> {
    url::Url::parse(url.trim()).ok()?.host_str().map(str::to_owned)
}
