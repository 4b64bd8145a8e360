//! A connection of the gRPC server, over a unix socket or over TCP.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tonic::transport::server::Connected;

use super::{open_connections::OpenConnection, peer::Peer};

/// A connection whose peer has been checked. Its requests carry the [`Peer`] as an extension.
pub(super) struct GrpcConnection {
    stream: Stream,
    peer: Peer,
    _open: OpenConnection,
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl GrpcConnection {
    pub(super) fn unix(stream: UnixStream, peer: Peer, open: OpenConnection) -> Self {
        Self { stream: Stream::Unix(stream), peer, _open: open }
    }

    pub(super) fn tcp(stream: TcpStream, peer: Peer, open: OpenConnection) -> Self {
        Self { stream: Stream::Tcp(stream), peer, _open: open }
    }
}

impl Connected for GrpcConnection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer
    }
}

impl AsyncRead for GrpcConnection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for GrpcConnection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
