//! The connections of clients that are open, so that a daemon without any can exit.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

/// The time that the client which started the daemon has to connect, however soon the daemon would exit otherwise. On a busy
/// machine it may be a while before that client gets a processor.
const FIRST_CLIENT: Duration = Duration::from_secs(10);

/// Counts the connections of all listeners. Cheap to clone; all clones are one count.
#[derive(Clone, Default)]
pub(super) struct OpenConnections {
    state: Arc<watch::Sender<State>>,
}

#[derive(Default)]
struct State {
    open: usize,
    /// A client has been let in.
    visited: bool,
    /// No connection is let in any more.
    closed: bool,
}

/// A connection that counts until it is dropped.
pub(super) struct OpenConnection {
    connections: OpenConnections,
}

impl OpenConnections {
    /// Counts a connection. Returns `None` if the daemon is about to exit: then the connection has to be dropped before
    /// anything is read from it, and its client finds or starts another daemon.
    pub(super) fn enter(&self) -> Option<OpenConnection> {
        let entered = self.state.send_if_modified(|state| {
            state.open += usize::from(!state.closed);
            state.visited |= !state.closed;
            !state.closed
        });
        entered.then(|| OpenConnection { connections: self.clone() })
    }

    /// Reports each connection that begins or ends.
    pub(super) fn changes(&self) -> watch::Receiver<impl Sized> {
        self.state.subscribe()
    }

    /// Resolves when there was no connection for this long, and before the first one for at least [`FIRST_CLIENT`].
    pub(super) async fn idle_for(&self, limit: Duration) {
        let mut changes = self.state.subscribe();
        loop {
            // The sender is in `self`, so neither of the two can fail.
            let visited = changes.wait_for(|state| state.open == 0).await.is_ok_and(|state| state.visited);
            let limit = if visited { limit } else { limit.max(FIRST_CLIENT) };
            if timeout(limit, changes.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Lets no connection in any more, unless one is open. Returns false if one is.
    pub(super) fn close_if_none(&self) -> bool {
        self.state.send_if_modified(|state| {
            state.closed |= state.open == 0;
            state.closed
        })
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.state.send_modify(|state| state.open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Lets the tasks run, and then the time pass.
    async fn pass(time: Duration) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_begins_when_the_last_connection_ends() {
        let connections = OpenConnections::default();
        let (first, second) = (connections.enter().unwrap(), connections.enter().unwrap());
        let counted = connections.clone();
        let idle = tokio::spawn(async move { counted.idle_for(LIMIT).await });
        pass(LIMIT * 2).await;
        drop(first);
        pass(LIMIT * 2).await;
        drop(second);
        pass(LIMIT / 2).await;
        // A short visit begins the time anew.
        drop(connections.enter());
        pass(LIMIT / 2).await;
        pass(LIMIT / 4).await;
        assert!(!idle.is_finished());
        pass(LIMIT / 4).await;
        idle.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_client_that_started_the_daemon_has_time_to_connect() {
        let connections = OpenConnections::default();
        let counted = connections.clone();
        let idle = tokio::spawn(async move { counted.idle_for(Duration::from_millis(1)).await });
        pass(FIRST_CLIENT / 2).await;
        assert!(!idle.is_finished());
        drop(connections.enter());
        pass(Duration::from_millis(1)).await;
        idle.await.unwrap();
    }

    #[test]
    fn a_connection_is_let_in_or_the_daemon_closes_but_not_both() {
        let connections = OpenConnections::default();
        let open = connections.enter().unwrap();
        assert!(!connections.close_if_none());
        drop(open);
        assert!(connections.close_if_none());
        assert!(connections.enter().is_none());
        assert!(connections.close_if_none(), "it stays closed");
    }
}
