//! One connection: it reads frames, answers calls concurrently, and writes one frame at a time.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_util::task::TaskTracker;

use kontekst_core::{Cancel, Mutex};

use super::{
    Shared,
    error::{Code, RpcError},
    framing::{Decoder, Frame, MAX_BODY},
    jsonrpc::{self, Id, Message},
    methods::{self, CallContext, MethodReply},
};

/// Frames that may wait for a slow client. Each has at most 1 MiB.
const QUEUED_FRAMES: usize = 16;

/// The most calls that are answered at a time.
const MAX_CALLS: usize = 128;

/// The most memory, in KiB, that the parameters of all calls may take together: three of the largest ones.
const MAX_PARAMS_KIB: u32 = 32 * 1024;

/// The time limit for each step of the end of a connection: answering calls, cancelling runs, writing frames.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A client that reads nothing for this long loses its connection, and with it its runs.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The state of a connection.
struct Connection {
    context: CallContext,
    calls: TaskTracker,
    /// The ids of requests that have not been answered.
    pending_ids: Mutex<HashSet<Id>>,
    /// Limits the calls that are answered at a time.
    call_slots: Arc<Semaphore>,
    /// Limits the memory of their parameters, in KiB.
    params_memory: Arc<Semaphore>,
    lifecycle: Mutex<Lifecycle>,
}

/// The client's state in the lifecycle of a language server.
#[derive(Clone, Copy, Default)]
struct Lifecycle {
    initialized: bool,
    shut_down: bool,
}

/// The reason why nothing more is read.
enum ReadEnd {
    /// The client sent `exit`. Holds the exit code.
    Exit(u8),
    Disconnected,
}

/// Serves a connection to its end.
pub(super) async fn serve(shared: &Arc<Shared>, stream: UnixStream, cancel: Cancel) {
    let (input, output) = stream.into_split();
    let (outbox, queue) = mpsc::channel(QUEUED_FRAMES);
    let mut writer = tokio::spawn(write(queue, output));
    let context =
        CallContext { shared: Arc::clone(shared), outbox, runs: cancel.child(), connection: cancel.clone() };
    let connection = Arc::new(Connection {
        context,
        calls: TaskTracker::new(),
        pending_ids: Mutex::default(),
        call_slots: Arc::new(Semaphore::new(MAX_CALLS)),
        params_memory: Arc::new(Semaphore::new(MAX_PARAMS_KIB as usize)),
        lifecycle: Mutex::default(),
    });
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => ReadEnd::Disconnected,
        // The writer ends early only if the client does not read any more.
        _ = &mut writer => {
            cancel.cancel();
            return;
        }
        end = connection.read(input) => end,
    };
    // Calls that came before the end are answered. Then runs are cancelled.
    connection.calls.close();
    timeout(DRAIN_TIMEOUT, connection.calls.wait()).await.ok();
    cancel.cancel();
    timeout(DRAIN_TIMEOUT, connection.calls.wait()).await.ok();
    if let ReadEnd::Exit(code) = end {
        timeout(DRAIN_TIMEOUT, connection.context.outbox.send(vec![code])).await.ok();
    }
    // The writer ends with the last sender. Requests that were cancelled may still hold one.
    drop(connection);
    if timeout(DRAIN_TIMEOUT, &mut writer).await.is_err() {
        writer.abort();
    }
}

async fn write(mut queue: mpsc::Receiver<Vec<u8>>, mut output: OwnedWriteHalf) {
    while let Some(frame) = queue.recv().await {
        let mut rest = &frame[..];
        while !rest.is_empty() {
            let Ok(Ok(written @ 1..)) = timeout(WRITE_TIMEOUT, output.write(rest)).await else { return };
            rest = &rest[written..];
        }
    }
}

impl Connection {
    async fn read(self: &Arc<Self>, mut input: OwnedReadHalf) -> ReadEnd {
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let Ok(count @ 1..) = input.read(&mut buffer).await else { return ReadEnd::Disconnected };
            let mut bytes = &buffer[..count];
            while let Some(frame) = decoder.next(&mut bytes) {
                if let Err(end) = self.handle_frame(frame).await {
                    return end;
                }
            }
        }
    }

    async fn handle_frame(self: &Arc<Self>, frame: Frame) -> Result<(), ReadEnd> {
        let too_large = |bytes| {
            Code::ResourceExhausted.with(json!({
                "limit": "request_payload", "max_bytes": MAX_BODY, "actual_bytes": bytes,
            }))
        };
        match frame {
            Frame::Body(body) => match jsonrpc::parse(&body) {
                Ok(message) => self.handle_message(message).await,
                Err((id, error)) => self.respond(&id, &Err(error)).await,
            },
            Frame::Malformed(why) => {
                self.respond(&Id::null(), &Err(Code::Parse.with(json!({"reason": why})))).await
            }
            Frame::TooLarge(bytes) => self.respond(&Id::null(), &Err(too_large(bytes))).await,
            Frame::TooLargeToSkip(bytes) => {
                self.respond(&Id::null(), &Err(too_large(bytes))).await?;
                Err(ReadEnd::Disconnected)
            }
        }
    }

    async fn respond(&self, id: &Id, outcome: &Result<Value, RpcError>) -> Result<(), ReadEnd> {
        let frame = jsonrpc::encode_response(id, outcome);
        self.context.outbox.send(frame).await.map_err(|_| ReadEnd::Disconnected)
    }

    async fn handle_message(self: &Arc<Self>, message: Message<'_>) -> Result<(), ReadEnd> {
        match message {
            Message::Response => Ok(()),
            Message::Notification { method, params } => {
                match method.as_str() {
                    "exit" => return Err(ReadEnd::Exit(u8::from(!self.lifecycle.lock().shut_down))),
                    "kaiak/fix/cancel" | "kaiak/interaction/respond" | "kaiak/session/terminate" => {
                        self.spawn_call(None, method, params).await;
                    }
                    // `initialized`, `$/…`, `textDocument/…` and unknown notifications are ignored.
                    _ => {}
                }
                Ok(())
            }
            Message::Request { id, method, params } => {
                if !self.pending_ids.lock().insert(id.clone()) {
                    let error = Code::InvalidRequest.with(json!({"reason": "this id is in use"}));
                    return self.respond(&id, &Err(error)).await;
                }
                let outcome = match method.as_str() {
                    "initialize" => self.initialize(),
                    "shutdown" => {
                        self.lifecycle.lock().shut_down = true;
                        self.context.runs.cancel();
                        Ok(Value::Null)
                    }
                    _ => {
                        self.spawn_call(Some(id), method, params).await;
                        return Ok(());
                    }
                };
                self.pending_ids.lock().remove(&id);
                self.respond(&id, &outcome).await
            }
        }
    }

    /// Starts a call on its own task. Waits while too many calls are being answered.
    async fn spawn_call(self: &Arc<Self>, id: Option<Id>, method: String, params: Option<&str>) {
        let slot = Arc::clone(&self.call_slots).acquire_owned().await.expect("it is never closed");
        let size = params.map_or(0, str::len) / 1024 + 1;
        let size = u32::try_from(size).unwrap_or(MAX_PARAMS_KIB).min(MAX_PARAMS_KIB);
        let memory_permit =
            Arc::clone(&self.params_memory).acquire_many_owned(size).await.expect("it is never closed");
        let params = params.map(str::to_owned);
        let this = Arc::clone(self);
        self.calls.spawn(async move {
            let shut_down = this.lifecycle.lock().shut_down;
            let answering = {
                let this = Arc::clone(&this);
                async move { methods::dispatch(&this.context, &method, params.as_deref(), shut_down).await }
            };
            // On a task of its own a panic in one call does not end the others.
            let reply = tokio::spawn(answering).await.unwrap_or_else(|_| Err(Code::Internal.into()));
            let (outcome, after_sending) = match reply {
                Ok(MethodReply { result, after_sending }) => (Ok(result), after_sending),
                Err(error) => (Err(error), None),
            };
            if let Some(id) = id {
                this.pending_ids.lock().remove(&id);
                this.respond(&id, &outcome).await.ok();
            }
            if let Some(after_sending) = after_sending {
                after_sending();
            }
            drop((slot, memory_permit));
        });
    }

    fn initialize(&self) -> Result<Value, RpcError> {
        if std::mem::replace(&mut self.lifecycle.lock().initialized, true) {
            return Err(Code::InvalidRequest.with(json!({"reason": "initialize comes once"})));
        }
        let server = json!({"name": "kontekst", "version": env!("CARGO_PKG_VERSION")});
        Ok(json!({"capabilities": {}, "serverInfo": server}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_given_up() {
        let (client, server) = UnixStream::pair().unwrap();
        let (_, output) = server.into_split();
        let (outbox, queue) = mpsc::channel(1);
        outbox.send(vec![0; 8 * 1024 * 1024]).await.unwrap();
        // It ends although there is a sender, so the connection is closed and its runs are cancelled.
        write(queue, output).await;
        assert!(outbox.is_closed());
        drop(client);
    }
}
