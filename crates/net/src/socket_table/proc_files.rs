//! Finds a socket in the files in which the kernel lists all of them. They have a line for each, so this takes long where
//! there are many.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use super::SocketEntry;

/// Finds the socket that is bound to `local` and connected to `remote`.
pub(super) fn find(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketEntry>> {
    first(|version| Some((table_form(local, version)?, table_form(remote, version)?)))
}

/// Finds the socket that listens at `address`, or else one that listens at all addresses. The list does not say whether
/// one for all addresses of IPv6 takes connections over IPv4, too; most do.
pub(super) fn listener(address: SocketAddr) -> io::Result<Option<SocketEntry>> {
    let all_v4 = address.ip().to_canonical().is_ipv4().then_some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    for ip in [Some(address.ip()), all_v4, Some(Ipv6Addr::UNSPECIFIED.into())].into_iter().flatten() {
        let local = SocketAddr::new(ip, address.port());
        let found = first(|version| Some((table_form(local, version)?, version.nobody().to_owned())))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Reads `/proc/net/tcp` and `/proc/net/tcp6` up to the socket with these two addresses.
fn first(addresses: impl Fn(Version) -> Option<(String, String)>) -> io::Result<Option<SocketEntry>> {
    // An IPv4 peer of an IPv6 socket is in tcp6, and an IPv6 listener may find its IPv4 peer in tcp.
    for (path, version) in [("/proc/net/tcp", Version::V4), ("/proc/net/tcp6", Version::V6)] {
        let Some((local, remote)) = addresses(version) else { continue };
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

impl Version {
    /// The remote address of a socket that listens.
    fn nobody(self) -> &'static str {
        match self {
            Self::V4 => "00000000:0000",
            Self::V6 => "00000000000000000000000000000000:0000",
        }
    }
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

/// Returns the process that has a socket open, with its name. `None` if this user may not see that.
pub(super) fn process_with(inode: u64) -> Option<(u32, String)> {
    let socket = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.find(|pid| {
        let Ok(handles) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let mut targets = handles.flatten().filter_map(|handle| std::fs::read_link(handle.path()).ok());
        targets.any(|target| target.as_os_str() == socket.as_str())
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some((pid, name.trim_end().to_owned()))
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
