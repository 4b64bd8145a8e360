//! Finds the owner of the other end of a TCP connection on this machine in the kernel's socket table.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::sync::Semaphore;

use crate::core::blocking;

/// The maximum number of look-ups at a time. Each reads the whole table, so more of them would only slow each other
/// down.
const MAX_LOOKUPS: usize = 2;

/// Reads `/proc/net/tcp` and `/proc/net/tcp6`, on threads for blocking work. Cheap to clone.
#[derive(Clone)]
pub(super) struct SocketTable {
    lookups: Arc<Semaphore>,
}

/// The entry of one socket in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketEntry {
    /// The user whose process opened it.
    pub(super) uid: u32,
    /// 0 for a socket that its process has closed.
    pub(super) inode: u64,
}

impl SocketTable {
    pub(super) fn new() -> Self {
        Self { lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }

    /// Finds the socket that is bound to `local` and connected to `remote`.
    ///
    /// # Errors
    ///
    /// The table cannot be read.
    pub(super) async fn find(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Option<SocketEntry>> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let lookup = move || {
            let found = find(local, remote);
            drop(permit); // only here, because the look-up continues if its caller is dropped
            found
        };
        blocking(lookup).join().await.map_err(io::Error::other)?
    }
}

fn find(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketEntry>> {
    // An IPv4 peer of an IPv6 socket is in tcp6, and an IPv6 listener may find its IPv4 peer in tcp.
    for (path, version) in [("/proc/net/tcp", Version::V4), ("/proc/net/tcp6", Version::V6)] {
        let (Some(local), Some(remote)) = (table_form(local, version), table_form(remote, version)) else {
            continue;
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for line in BufReader::new(file).lines() {
            if let Some(entry) = parse_entry(&line?, &local, &remote) {
                return Ok(Some(entry));
            }
        }
    }
    Ok(None)
}

/// Parses a line of the table. Returns `None` if it is not the line of the socket `local` → `remote`.
///
/// Columns: `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`.
fn parse_entry(line: &str, local: &str, remote: &str) -> Option<SocketEntry> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if fields.next()? != local || fields.next()? != remote {
        return None;
    }
    Some(SocketEntry { uid: fields.nth(4)?.parse().ok()?, inode: fields.nth(1)?.parse().ok()? })
}

#[derive(Clone, Copy)]
enum Version {
    V4,
    V6,
}

/// Formats an address as in the table: 32-bit words in the machine's byte order, in hexadecimal. Returns `None` for
/// an IPv6 address that the IPv4 table cannot contain.
fn table_form(address: SocketAddr, version: Version) -> Option<String> {
    let octets: Vec<u8> = match (address.ip(), version) {
        (IpAddr::V4(ip), Version::V4) => ip.octets().into(),
        (IpAddr::V4(ip), Version::V6) => ip.to_ipv6_mapped().octets().into(),
        (IpAddr::V6(ip), Version::V6) => ip.octets().into(),
        (IpAddr::V6(ip), Version::V4) => ip.to_ipv4_mapped()?.octets().into(),
    };
    let mut text = String::new();
    for word in octets.chunks_exact(4) {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        text.push_str(&format!("{word:08X}"));
    }
    Some(format!("{text}:{:04X}", address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_line_names_the_owner_of_exactly_this_connection() {
        let line =
            "   3: 0100007F:A1B2 0100007F:C383 01 00000000:00000000 00:00000000 00000000  1000        0 41 1";
        let local = table_form("127.0.0.1:41394".parse().unwrap(), Version::V4).unwrap();
        let remote = table_form("127.0.0.1:50051".parse().unwrap(), Version::V4).unwrap();
        assert_eq!(parse_entry(line, &local, &remote), Some(SocketEntry { uid: 1000, inode: 41 }));
        assert_eq!(parse_entry(line, &remote, &local), None);
        assert_eq!(parse_entry("garbage", &local, &remote), None);
    }
}
