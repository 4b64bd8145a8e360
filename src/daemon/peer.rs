//! Who is at the other end of a connection.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use tokio::net::{TcpStream, UnixStream};

/// What an accepted connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A process of this user on this machine.
    ThisUser,
    /// Somebody who must show the token.
    Remote,
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The peer of a unix socket, by the kernel's word.
///
/// # Errors
///
/// Another user's process, or the kernel does not say.
pub(super) fn unix(stream: &UnixStream) -> io::Result<Peer> {
    let uid = stream.peer_cred()?.uid();
    if uid == our_uid() { Ok(Peer::ThisUser) } else { Err(other_user(uid)) }
}

/// The peer of a TCP connection. On loopback the kernel's socket table says whose process it is.
///
/// # Errors
///
/// A loopback peer that belongs to another user, or whose owner cannot be told.
pub(super) fn tcp(stream: &TcpStream) -> io::Result<Peer> {
    let (theirs, ours) = (stream.peer_addr()?, stream.local_addr()?);
    if !theirs.ip().to_canonical().is_loopback() {
        return Ok(Peer::Remote);
    }
    match socket_entry(theirs, ours)?.map(|entry| entry.uid) {
        Some(uid) if uid == our_uid() => Ok(Peer::ThisUser),
        Some(uid) => Err(other_user(uid)),
        None => Err(io::Error::other("the peer's owner cannot be told")),
    }
}

/// Whether the process at the other end has closed its socket, and not only its sending side. Asked once the end
/// of what it sends was seen. Of a peer on another machine nobody can tell, so its end is the end.
pub(super) fn is_closed(stream: &TcpStream) -> bool {
    let (Ok(theirs), Ok(ours)) = (stream.peer_addr(), stream.local_addr()) else { return true };
    // A socket without a process has the inode 0.
    !matches!(socket_entry(theirs, ours), Ok(Some(SocketEntry { inode: 1.., .. })))
}

fn other_user(uid: u32) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("the peer is user {uid}"))
}

/// What the kernel's table says of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SocketEntry {
    uid: u32,
    inode: u64,
}

/// The socket `local` → `remote`, from the kernel's table.
fn socket_entry(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketEntry>> {
    // A v4 peer of a v6 socket stands in tcp6; a v6 listener may also see it in tcp.
    for (table, want) in [("/proc/net/tcp", false), ("/proc/net/tcp6", true)] {
        let (Some(local), Some(remote)) = (proc_net_format(local, want), proc_net_format(remote, want))
        else {
            continue;
        };
        let file = match File::open(table) {
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

/// Columns: `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`.
fn parse_entry(line: &str, local: &str, remote: &str) -> Option<SocketEntry> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if fields.next()? != local || fields.next()? != remote {
        return None;
    }
    Some(SocketEntry { uid: fields.nth(4)?.parse().ok()?, inode: fields.nth(1)?.parse().ok()? })
}

/// An address as the table prints it: 32-bit words in host order, in hex.
fn proc_net_format(address: SocketAddr, v6: bool) -> Option<String> {
    let octets: Vec<u8> = match (address.ip(), v6) {
        (IpAddr::V4(ip), false) => ip.octets().into(),
        (IpAddr::V4(ip), true) => ip.to_ipv6_mapped().octets().into(),
        (IpAddr::V6(ip), true) => ip.octets().into(),
        (IpAddr::V6(ip), false) => mapped(ip)?,
    };
    let mut text = String::new();
    for word in octets.chunks_exact(4) {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        text.push_str(&format!("{word:08X}"));
    }
    Some(format!("{text}:{:04X}", address.port()))
}

fn mapped(ip: Ipv6Addr) -> Option<Vec<u8>> {
    ip.to_ipv4_mapped().map(|ip| ip.octets().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_line_names_the_owner_of_exactly_this_connection() {
        let line =
            "   3: 0100007F:A1B2 0100007F:C383 01 00000000:00000000 00:00000000 00000000  1000        0 41 1";
        let local = proc_net_format("127.0.0.1:41394".parse().unwrap(), false).unwrap();
        let remote = proc_net_format("127.0.0.1:50051".parse().unwrap(), false).unwrap();
        assert_eq!(parse_entry(line, &local, &remote), Some(SocketEntry { uid: 1000, inode: 41 }));
        assert_eq!(parse_entry(line, &remote, &local), None);
        assert_eq!(parse_entry("garbage", &local, &remote), None);
    }

    #[tokio::test]
    async fn our_own_connection_is_ours() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            assert_eq!(tcp(&server).unwrap(), Peer::ThisUser);
            drop(client);
        }
    }
}
