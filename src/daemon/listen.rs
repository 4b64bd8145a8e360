//! The daemon's listeners: the unix socket that is always there, and TCP.

use std::{
    fs, io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::mpsc,
};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Status, transport::server::Connected};

use crate::{
    config::{Bind, Config, Home},
    core::{Cancel, OwnListeners, is_bearer},
};

use super::{
    DaemonError,
    peer::{self, Peer},
    socket::SocketFile,
};

/// Everything the daemon listens on.
pub(super) struct Listeners {
    unix: UnixListener,
    socket: SocketFile,
    tcp: Option<TcpListener>,
    token: Option<String>,
}

impl Listeners {
    /// Listens on the unix socket. The caller holds the daemon lock, so an existing socket file is a
    /// leftover.
    pub(super) fn unix(home: &Home) -> Result<Self, DaemonError> {
        let socket = home.socket();
        let listen = |source| DaemonError::Listen { path: socket.clone(), source };
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(listen(error)),
            _ => {}
        }
        let unix = UnixListener::bind(&socket).map_err(listen)?;
        let file = SocketFile::bound_at(socket.clone()).map_err(listen)?;
        Ok(Self { unix, socket: file, tcp: None, token: None })
    }

    /// The unix socket's file.
    pub(super) fn socket(&self) -> &SocketFile {
        &self.socket
    }

    /// Listens on `bind` too, and gives its address.
    ///
    /// # Errors
    ///
    /// One sentence for the operator; the daemon serves on without it.
    pub(super) fn tcp(
        &mut self,
        config: &Config,
        home: &Home,
        own_listeners: &OwnListeners,
    ) -> Result<Option<String>, String> {
        let Bind::Tcp(address) = config.bind else { return Ok(None) };
        if config.bind.is_remote() {
            let token = fs::read_to_string(home.token()).unwrap_or_default();
            let token = token.trim();
            if token.len() < 32 {
                let path = home.token();
                return Err(format!(
                    "not listening on {address}, which other machines can reach: put a token of at least \
                     32 characters into {}",
                    path.display()
                ));
            }
            self.token = Some(token.to_owned());
        }
        let listener = bind(address, own_listeners).map_err(|error| {
            format!(
                "not listening on {address}: {error}; set `bind` in config.toml to another port or to \"off\""
            )
        })?;
        let address = listener.local_addr().map_or(address, |bound| bound);
        self.tcp = Some(listener);
        Ok(Some(address.to_string()))
    }

    /// Who may call: this user's processes, and whoever shows the token. Requests that a web page made
    /// are refused: a page has no business here.
    pub(super) fn auth(&self) -> impl Fn(Request<()>) -> Result<Request<()>, Status> + Clone + use<> {
        let token = self.token.clone();
        move |request: Request<()>| {
            if request.metadata().contains_key("origin") {
                return Err(Status::permission_denied("requests from web pages are refused"));
            }
            match request.extensions().get::<Peer>() {
                Some(Peer::ThisUser) => Ok(request),
                Some(Peer::Remote) | None => {
                    let shown = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
                    let good =
                        token.as_ref().zip(shown).is_some_and(|(token, shown)| is_bearer(shown, token));
                    if good {
                        Ok(request)
                    } else {
                        Err(Status::unauthenticated("a bearer token is required"))
                    }
                }
            }
        }
    }

    /// Accepts until `stop`, checks each peer, and removes the socket file first thing when it stops.
    pub(super) fn accept(self, stop: &Cancel) -> impl Stream<Item = io::Result<Connection>> + use<> {
        let (sender, accepted) = mpsc::channel(64);
        let Self { unix, socket, tcp, .. } = self;
        if let Some(tcp) = tcp {
            let (sender, stop) = (sender.clone(), stop.clone());
            tokio::spawn(async move {
                loop {
                    let stream = tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        accepted = tcp.accept() => accepted.map(|(stream, _)| stream),
                    };
                    let checked = stream.map(|stream| {
                        stream.set_nodelay(true).ok();
                        peer::tcp(&stream).map(|peer| Connection { io: Io::Tcp(stream), peer })
                    });
                    forward(checked, &sender).await;
                }
            });
        }
        let stop = stop.clone();
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    accepted = unix.accept() => accepted.map(|(stream, _)| stream),
                };
                let checked = stream
                    .map(|stream| peer::unix(&stream).map(|peer| Connection { io: Io::Unix(stream), peer }));
                forward(checked, &sender).await;
            }
            socket.remove();
        });
        ReceiverStream::new(accepted)
    }
}

/// Passes a good connection on. A failed accept waits a moment: it is a sign of too few file
/// descriptors, and the next one would fail at once too.
async fn forward(checked: io::Result<io::Result<Connection>>, sender: &mpsc::Sender<io::Result<Connection>>) {
    match checked {
        Ok(Ok(connection)) => drop(sender.send(Ok(connection)).await),
        Ok(Err(refused)) => tracing::warn!("connection refused: {refused}"),
        Err(error) => {
            tracing::warn!("accept failed: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

pub(super) fn bind(address: SocketAddr, own_listeners: &OwnListeners) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    own_listeners.add(listener.local_addr()?);
    TcpListener::from_std(listener)
}

/// A connection whose peer has been checked.
pub(super) struct Connection {
    io: Io,
    peer: Peer,
}

enum Io {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Io::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().io {
            Io::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Io::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Io::Tcp(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
