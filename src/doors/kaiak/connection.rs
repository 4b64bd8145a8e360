//! One connection: reads frames, answers requests side by side, writes one frame at a time.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Semaphore, mpsc},
};
use tokio_util::task::TaskTracker;

use crate::core::Cancel;

use super::{
    Shared,
    error::{Code, RpcError},
    framing::{Decoder, Frame, MAX_BODY},
    jsonrpc::{self, Id, Message},
    methods::{self, MethodReply},
    notifier::FrameSender,
};

/// Frames that may wait for a slow reader, 1 MiB each at most.
const QUEUED_FRAMES: usize = 16;

/// Calls that are answered at a time, and what their parameters may take together, in KiB: three of the
/// largest.
const MAX_CALLS: usize = 128;
const MAX_PARAMS_KIB: u32 = 32 * 1024;

/// Time for what is going to be answered and written once the client has ended its side.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// What handlers know of the connection they are called on.
pub(super) struct Connection {
    pub shared: Arc<Shared>,
    pub outbox: FrameSender,
    /// Given when the client is gone.
    pub cancel: Cancel,
    /// Given when its runs have to end.
    pub cancel_runs: Cancel,
    calls: TaskTracker,
    pending_ids: Mutex<HashSet<Id>>,
    call_slots: Arc<Semaphore>,
    params_memory: Arc<Semaphore>,
    lifecycle: Mutex<Lifecycle>,
}

/// How far the client is in the life of a language server.
#[derive(Clone, Copy, Default)]
struct Lifecycle {
    initialized: bool,
    shut_down: bool,
}

/// Why nothing more is read.
enum ReadEnd {
    /// The client said `exit`; the exit code.
    Exit(u8),
    Disconnected,
}

/// Serves it to its end.
pub(super) async fn serve(shared: &Arc<Shared>, stream: UnixStream, cancel: Cancel) {
    let (input, output) = stream.into_split();
    let (outbox, queue) = mpsc::channel(QUEUED_FRAMES);
    let mut writer = tokio::spawn(write(queue, output));
    let connection = Arc::new(Connection {
        shared: Arc::clone(shared),
        outbox,
        cancel_runs: cancel.child(),
        cancel: cancel.clone(),
        calls: TaskTracker::new(),
        pending_ids: Mutex::default(),
        call_slots: Arc::new(Semaphore::new(MAX_CALLS)),
        params_memory: Arc::new(Semaphore::new(MAX_PARAMS_KIB as usize)),
        lifecycle: Mutex::default(),
    });
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => ReadEnd::Disconnected,
        // Nobody reads any more.
        _ = &mut writer => {
            cancel.cancel();
            return;
        }
        end = connection.read(input) => end,
    };
    // What was asked before the end is answered; runs are cancelled.
    connection.calls.close();
    tokio::time::timeout(DRAIN_TIMEOUT, connection.calls.wait()).await.ok();
    cancel.cancel();
    tokio::time::timeout(DRAIN_TIMEOUT, connection.calls.wait()).await.ok();
    if let ReadEnd::Exit(code) = end {
        tokio::time::timeout(DRAIN_TIMEOUT, connection.outbox.send(vec![code])).await.ok();
    }
    // The writer ends with the last sender; the requests that were cancelled hold some.
    drop(connection);
    if tokio::time::timeout(DRAIN_TIMEOUT, &mut writer).await.is_err() {
        writer.abort();
    }
}

async fn write(mut queue: mpsc::Receiver<Vec<u8>>, mut output: OwnedWriteHalf) {
    while let Some(frame) = queue.recv().await {
        if output.write_all(&frame).await.is_err() {
            return;
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
                if let Some(end) = self.handle_frame(frame).await {
                    return end;
                }
            }
        }
    }

    async fn handle_frame(self: &Arc<Self>, frame: Frame) -> Option<ReadEnd> {
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
                self.respond(&Id::null(), &Err(too_large(bytes))).await;
                Some(ReadEnd::Disconnected)
            }
        }
    }

    /// Sends an answer; `Some` when nobody is there to read it.
    async fn respond(&self, id: &Id, outcome: &Result<Value, RpcError>) -> Option<ReadEnd> {
        self.outbox.send(jsonrpc::encode_response(id, outcome)).await.err().map(|_| ReadEnd::Disconnected)
    }

    async fn handle_message(self: &Arc<Self>, message: Message<'_>) -> Option<ReadEnd> {
        match message {
            Message::Response => None,
            Message::Notification { method, params } => {
                match method.as_str() {
                    "exit" => return Some(ReadEnd::Exit(u8::from(!self.lifecycle().shut_down))),
                    "kaiak/fix/cancel" | "kaiak/interaction/respond" | "kaiak/session/terminate" => {
                        self.spawn_call(None, method, params).await;
                    }
                    // `initialized`, `$/…`, `textDocument/…`, and what nobody knows.
                    _ => {}
                }
                None
            }
            Message::Request { id, method, params } => {
                if !self.pending_ids().insert(id.clone()) {
                    let error = Code::InvalidRequest.with(json!({"reason": "this id is in use"}));
                    return self.respond(&id, &Err(error)).await;
                }
                let outcome = match method.as_str() {
                    "initialize" => self.initialize(),
                    "shutdown" => {
                        self.lifecycle().shut_down = true;
                        self.cancel_runs.cancel();
                        Ok(Value::Null)
                    }
                    _ => {
                        self.spawn_call(Some(id), method, params).await;
                        return None;
                    }
                };
                self.pending_ids().remove(&id);
                self.respond(&id, &outcome).await
            }
        }
    }

    /// Starts a call on its own task; waits while too many are going.
    async fn spawn_call(self: &Arc<Self>, id: Option<Id>, method: String, params: Option<&str>) {
        let slot = Arc::clone(&self.call_slots).acquire_owned().await.expect("it is never closed");
        let size = params.map_or(0, str::len) / 1024 + 1;
        let size = u32::try_from(size).unwrap_or(MAX_PARAMS_KIB).min(MAX_PARAMS_KIB);
        let memory_permit =
            Arc::clone(&self.params_memory).acquire_many_owned(size).await.expect("it is never closed");
        let params = params.map(str::to_owned);
        let this = Arc::clone(self);
        self.calls.spawn(async move {
            let lifecycle = *this.lifecycle();
            let work = {
                let this = Arc::clone(&this);
                async move { methods::dispatch(&this, &method, params.as_deref(), lifecycle.shut_down).await }
            };
            // A bug in one call is not the end of the others.
            let MethodReply { outcome, after_sending: then } =
                tokio::spawn(work).await.unwrap_or_else(|_| Err::<Value, _>(Code::Internal.into()).into());
            if let Some(id) = id {
                this.pending_ids().remove(&id);
                this.respond(&id, &outcome).await;
            }
            if let Some(then) = then {
                then();
            }
            drop((slot, memory_permit));
        });
    }

    fn initialize(&self) -> Result<Value, RpcError> {
        if std::mem::replace(&mut self.lifecycle().initialized, true) {
            return Err(Code::InvalidRequest.with(json!({"reason": "initialize comes once"})));
        }
        let server = json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")});
        Ok(json!({"capabilities": {}, "serverInfo": server}))
    }

    fn pending_ids(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.pending_ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lifecycle(&self) -> MutexGuard<'_, Lifecycle> {
        self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
