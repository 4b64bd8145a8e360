//! Checks which user owns the other end of a connection.

use std::io;

use tokio::net::{TcpStream, UnixStream};

use super::socket_table::{SocketEntry, SocketTable};

/// The other end of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A process of this user on this machine.
    ThisUser,
    /// Any other process. It must send the token.
    Remote,
}

/// Returns the peer of a unix socket, which the kernel knows.
///
/// # Errors
///
/// The process belongs to another user, or the kernel does not report its user.
pub(super) fn unix(stream: &UnixStream) -> io::Result<Peer> {
    check_user(stream.peer_cred()?.uid())
}

/// Returns the peer of a TCP connection. For one on loopback, the kernel's socket table has its user.
///
/// # Errors
///
/// A peer on loopback belongs to another user, or its user is unknown.
pub(super) async fn tcp(stream: &TcpStream, table: &SocketTable) -> io::Result<Peer> {
    let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
    if !peer.ip().to_canonical().is_loopback() {
        return Ok(Peer::Remote);
    }
    match table.find(peer, local).await? {
        Some(SocketEntry { uid, .. }) => check_user(uid),
        None => Err(io::Error::other("the user of the peer is not known")),
    }
}

fn check_user(uid: u32) -> io::Result<Peer> {
    if uid == rustix::process::geteuid().as_raw() {
        return Ok(Peer::ThisUser);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("the peer is user {uid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_within_this_process_is_of_this_user() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            assert_eq!(tcp(&server, &SocketTable::new()).await.unwrap(), Peer::ThisUser);
            drop(client);
        }
    }
}
