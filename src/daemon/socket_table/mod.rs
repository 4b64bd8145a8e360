//! Finds the owner of the other end of a TCP connection on this machine in the kernel's socket table.

#[cfg(target_os = "linux")]
mod diag;
mod proc_files;

use std::{io, net::SocketAddr, sync::Arc};

use tokio::sync::Semaphore;

use crate::core::blocking;

/// Asks the kernel for one socket, which takes microseconds. Where the kernel cannot be asked, reads the list of all
/// sockets, on a thread for blocking work and one after the other. Cheap to clone.
#[derive(Clone)]
pub(super) struct SocketTable {
    reading: Arc<Semaphore>,
}

/// The entry of one socket in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketEntry {
    /// The user whose process opened it. Meaningless once the process has closed it.
    pub(super) uid: u32,
    /// 0 for a socket that its process has closed.
    pub(super) inode: u64,
}

impl SocketTable {
    pub(super) fn new() -> Self {
        Self { reading: Arc::new(Semaphore::new(1)) }
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
        #[cfg(target_os = "linux")]
        match diag::find(local, remote) {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!(%error, "the kernel cannot be asked for one socket"),
        }
        self.find_in_list(local, remote).await
    }

    async fn find_in_list(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketEntry>> {
        let permit = Arc::clone(&self.reading).acquire_owned().await.map_err(io::Error::other)?;
        let lookup = move || {
            let found = proc_files::find(local, remote);
            drop(permit); // only here, because the look-up continues if its caller is dropped
            found
        };
        blocking(lookup).join().await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_ways_find_the_same_socket() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let port = listener.local_addr().unwrap().port();
            let target = if address == "[::]:0" {
                format!("127.0.0.1:{port}")
            } else {
                address.replace(":0", &format!(":{port}"))
            };
            let client = tokio::net::TcpStream::connect(&target).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            let (peer, local) = (server.peer_addr().unwrap(), server.local_addr().unwrap());
            let table = SocketTable::new();
            let found = table.find(peer, local).await.unwrap().expect("it is open");
            assert_eq!(found.uid, rustix::process::geteuid().as_raw(), "{target}");
            assert_eq!(table.find_in_list(peer, local).await.unwrap(), Some(found), "{target}");
            assert_eq!(table.find(local, "127.0.0.1:1".parse().unwrap()).await.unwrap(), None);
            drop(client);
            let closed = table.find(peer, local).await.unwrap();
            assert!(closed.is_none_or(|entry| entry.inode == 0), "{closed:?}");
        }
    }
}
