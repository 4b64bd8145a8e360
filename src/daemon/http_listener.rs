//! The HTTP listener: who may connect, how long a stalled client is waited for, and when it is gone.

use std::{
    fs, io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Sleep, sleep},
};
use tokio_util::task::TaskTracker;

use crate::{
    agent::AgentCore,
    config::{Bind, Home, write_atomic},
    core::OwnListeners,
    doors::http::{AccessPolicy, Caller, HttpDoor},
};

use super::{
    listen::bind,
    peer::{self, Peer},
};

/// Connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 1024;

/// A client that takes nothing for so long is given up, and its run with it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a client that has closed its sending side is looked for.
const PEER_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The shortest token that is taken from the file; ours have 64 characters.
const MIN_TOKEN_LENGTH: usize = 32;

/// A bound listener.
pub(super) struct HttpListener {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    door: Arc<HttpDoor>,
}

impl HttpListener {
    /// Listens where `listen` says.
    ///
    /// # Errors
    ///
    /// One sentence for the operator; the daemon serves on without it.
    pub(super) fn bind(
        core: &AgentCore,
        listen: Bind,
        own_listeners: &OwnListeners,
    ) -> Result<Option<Self>, String> {
        let Bind::Tcp(address) = listen else { return Ok(None) };
        let config = core.config();
        if listen.is_remote() && !config.allow_remote {
            return Err(format!(
                "not serving HTTP on {address}, which other machines can reach: set `allow_remote = true`"
            ));
        }
        let token = token(core.home())
            .map_err(|error| format!("not serving HTTP: {}: {error}", core.home().token().display()))?;
        let listener = bind(address, own_listeners).map_err(|error| {
            format!("not serving HTTP on {address}: {error}; set `listen` in [http] of config.toml to another port")
        })?;
        let address = listener.local_addr().unwrap_or(address);
        let settings = &config.http;
        let gate =
            AccessPolicy::new(address.port(), &settings.hosts, &settings.origins, token, settings.cors);
        Ok(Some(Self { listener, address, door: HttpDoor::new(core.clone(), gate) }))
    }

    /// Serves until the core stops; resolves when the last connection has ended.
    pub(super) async fn serve(self, core: AgentCore) {
        let connections = TaskTracker::new();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                biased;
                () = core.stopped() => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Too few file descriptors: the next one would fail at once, too.
                    tracing::warn!("accept failed: {error}");
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let caller = match peer::tcp(&stream) {
                Ok(Peer::ThisUser) => Caller::ThisUser,
                Ok(Peer::Remote) => Caller::Remote,
                Err(refused) => {
                    tracing::warn!("connection refused: {refused}");
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
                tracing::warn!("connection refused: {MAX_CONNECTIONS} are open");
                continue;
            };
            stream.set_nodelay(true).ok();
            let door = Arc::clone(&self.door);
            connections.spawn(async move {
                door.serve(TokioIo::new(HttpConnection::new(stream)), caller).await;
                drop(place);
            });
        }
        drop(self.listener);
        connections.close();
        connections.wait().await;
    }
}

/// The token of this data directory; made when it is not there.
fn token(home: &Home) -> io::Result<String> {
    let path = home.token();
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= MIN_TOKEN_LENGTH => return Ok(text.trim().to_owned()),
        Ok(_) => {
            let short = format!(
                "the token has fewer than {MIN_TOKEN_LENGTH} characters; remove the file for a new one"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, short));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    write_atomic(&path, format!("{token}\n").as_bytes()).map_err(|error| error.source)?;
    Ok(token)
}

/// A connection that tells a client that only has nothing more to say from one that is gone, and does not wait
/// for ever for one that takes nothing.
///
/// Both closings look alike on the wire. The kernel's socket table knows: a socket that its process has closed
/// belongs to no process any more.
struct HttpConnection {
    stream: TcpStream,
    /// Runs once the client has closed its sending side.
    look: Option<Pin<Box<Sleep>>>,
    /// Runs while the client takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
}

impl HttpConnection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, look: None, stall: None }
    }

    fn with_write_timeout(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if write.is_ready() {
            self.stall = None;
            return write;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl AsyncRead for HttpConnection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.look.is_none() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        loop {
            if peer::is_closed(&this.stream) {
                return Poll::Ready(Ok(()));
            }
            let look = this.look.insert(Box::pin(sleep(PEER_CHECK_INTERVAL)));
            ready!(look.as_mut().poll(cx));
        }
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn pair() -> (TcpStream, HttpConnection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, HttpConnection::new(listener.accept().await.unwrap().0))
    }

    /// The clock is paused, so the checks for the peer take no real time.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_still_listens_is_not_gone() {
        let (mut client, mut server) = pair().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut said = [0; 8];
        server.read_exact(&mut said).await.unwrap();
        // The end is not reported while somebody may read the answer.
        tokio::select! {
            biased;
            read = server.read(&mut said) => panic!("{read:?}"),
            () = sleep(PEER_CHECK_INTERVAL * 3) => {}
        }
        server.write_all(b"answer").await.unwrap();
        let mut heard = [0; 6];
        client.read_exact(&mut heard).await.unwrap();
        drop(client);
        assert_eq!(server.read(&mut said).await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
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

    #[test]
    fn a_token_is_made_once_and_a_short_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().join("home"))).unwrap();
        home.create().unwrap();
        let first = token(&home).unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(token(&home).unwrap(), first);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(home.token()).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        fs::write(home.token(), "short").unwrap();
        assert_eq!(token(&home).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
