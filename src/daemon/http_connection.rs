//! A TCP connection of the HTTP door, which detects that its client has gone or no longer reads.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use kontekst_http::RequestsInProgress;
use kontekst_net::socket_table::{SocketEntry, SocketTable};

/// A client that reads nothing for this long loses its connection, and with it its run.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The time between two checks of a client that has closed its sending side.
const PEER_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A connection that a client may close on its sending side while it waits for an answer: reads then report the end of
/// the stream when the client's process has closed the socket, or when nothing is being answered. A write fails when the client reads nothing for
/// [`WRITE_TIMEOUT`].
///
/// The server receives a FIN in both cases. The kernel's socket table shows the difference: a socket that its process
/// has closed belongs to no process.
pub(super) struct HttpConnection {
    stream: TcpStream,
    table: SocketTable,
    requests: RequestsInProgress,
    /// The client has shut down its sending side.
    is_half_closed: bool,
    /// Created when the client has shut down its sending side before it has its answer. Resolves when its process has
    /// closed the socket.
    peer_closed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Runs while the client reads nothing.
    write_timeout: Option<Pin<Box<Sleep>>>,
}

impl HttpConnection {
    /// `requests` counts the requests of this connection.
    pub(super) fn new(stream: TcpStream, table: SocketTable, requests: RequestsInProgress) -> Self {
        Self { stream, table, requests, is_half_closed: false, peer_closed: None, write_timeout: None }
    }

    /// Resolves when the process at the other end has closed its socket. The socket of a client on another machine is
    /// not in the table, so for such a client this resolves at once.
    fn wait_for_close(&self) -> impl Future<Output = ()> + Send + use<> {
        let addresses = self.stream.peer_addr().and_then(|peer| Ok((peer, self.stream.local_addr()?)));
        let table = self.table.clone();
        async move {
            let Ok((peer, local)) = addresses else { return };
            while let Ok(Some(SocketEntry { inode: 1.., .. })) = table.find(peer, local).await {
                sleep(PEER_CHECK_INTERVAL).await;
            }
        }
    }

    fn with_write_timeout(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if write.is_ready() {
            self.write_timeout = None;
            return write;
        }
        let timeout = self.write_timeout.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(timeout.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for HttpConnection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_half_closed {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            this.is_half_closed = true;
        }
        if this.requests.is_zero() {
            return Poll::Ready(Ok(()));
        }
        let mut closed = this.peer_closed.take().unwrap_or_else(|| Box::pin(this.wait_for_close()));
        if closed.as_mut().poll(cx).is_pending() {
            this.peer_closed = Some(closed);
            return Poll::Pending;
        }
        // A future that has completed must not be polled again.
        this.peer_closed = Some(Box::pin(std::future::ready(())));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HttpConnection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.with_write_timeout(cx, write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.with_write_timeout(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    async fn pair() -> (TcpStream, HttpConnection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let requests = RequestsInProgress::default();
        (client, HttpConnection::new(listener.accept().await.unwrap().0, SocketTable::new(), requests))
    }

    // Tokio advances the paused clock only while the runtime is idle, and look-ups on blocking threads keep it busy.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_shut_down_its_sending_side_can_still_read() {
        let (mut client, mut server) = pair().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut request = [0; 8];
        server.read_exact(&mut request).await.unwrap();
        let _request = server.requests.begin();
        // The end is not reported while the client may still read the answer.
        tokio::select! {
            biased;
            read = server.read(&mut request) => panic!("{read:?}"),
            () = sleep(PEER_CHECK_INTERVAL * 3) => {}
        }
        server.write_all(b"answer").await.unwrap();
        let mut response = [0; 6];
        client.read_exact(&mut response).await.unwrap();
        drop(client);
        assert_eq!(server.read(&mut request).await.unwrap(), 0);
        assert_eq!(server.read(&mut request).await.unwrap(), 0, "the end is reported again");
    }

    #[tokio::test]
    async fn a_client_that_waits_for_nothing_and_sends_nothing_more_has_left() {
        let (mut client, mut server) = pair().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut request = [0; 8];
        server.read_exact(&mut request).await.unwrap();
        let answering = server.requests.begin();
        let read = server.read(&mut request);
        drop(answering);
        assert_eq!(read.await.unwrap(), 0);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_times_out() {
        let (client, mut server) = pair().await;
        let block = vec![0; 1024 * 1024];
        let error = loop {
            if let Err(error) = server.write_all(&block).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
