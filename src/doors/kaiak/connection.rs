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
    methods::{self, Answered},
    voice::Outbox,
};

/// Frames that may wait for a slow reader, 1 MiB each at most.
const QUEUE: usize = 16;

/// Calls that are answered at a time, and what their parameters may take together, in KiB: three of the
/// largest.
const MAX_CALLS: usize = 128;
const MAX_PARAMS: u32 = 32 * 1024;

/// Time for what is going to be answered and written once the client has ended its side.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What handlers know of the connection they are called on.
pub(super) struct Connection {
    pub shared: Arc<Shared>,
    pub outbox: Outbox,
    /// Given when the client is gone.
    pub cancel: Cancel,
    /// Given when its runs have to end.
    pub runs: Cancel,
    calls: TaskTracker,
    going: Mutex<HashSet<Id>>,
    room: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    life: Mutex<Life>,
}

/// How far the client is in the life of a language server.
#[derive(Clone, Copy, Default)]
struct Life {
    initialized: bool,
    shut_down: bool,
}

/// Why nothing more is read.
enum End {
    /// The client said `exit`; the exit code.
    Exit(u8),
    Gone,
}

/// Serves it to its end.
pub(super) async fn serve(shared: &Arc<Shared>, stream: UnixStream, cancel: Cancel) {
    let (input, output) = stream.into_split();
    let (outbox, queue) = mpsc::channel(QUEUE);
    let mut writer = tokio::spawn(write(queue, output));
    let connection = Arc::new(Connection {
        shared: Arc::clone(shared),
        outbox,
        runs: cancel.child(),
        cancel: cancel.clone(),
        calls: TaskTracker::new(),
        going: Mutex::default(),
        room: Arc::new(Semaphore::new(MAX_CALLS)),
        memory: Arc::new(Semaphore::new(MAX_PARAMS as usize)),
        life: Mutex::default(),
    });
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => End::Gone,
        // Nobody reads any more.
        _ = &mut writer => {
            cancel.cancel();
            return;
        }
        end = connection.read(input) => end,
    };
    // What was asked before the end is answered; runs are cancelled.
    connection.calls.close();
    tokio::time::timeout(LAST_WORDS, connection.calls.wait()).await.ok();
    cancel.cancel();
    tokio::time::timeout(LAST_WORDS, connection.calls.wait()).await.ok();
    if let End::Exit(code) = end {
        tokio::time::timeout(LAST_WORDS, connection.outbox.send(vec![code])).await.ok();
    }
    // The writer ends with the last sender; the requests that were cancelled hold some.
    drop(connection);
    if tokio::time::timeout(LAST_WORDS, &mut writer).await.is_err() {
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
    async fn read(self: &Arc<Self>, mut input: OwnedReadHalf) -> End {
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let Ok(count @ 1..) = input.read(&mut buffer).await else { return End::Gone };
            let mut bytes = &buffer[..count];
            while let Some(frame) = decoder.next(&mut bytes) {
                if let Some(end) = self.take(frame).await {
                    return end;
                }
            }
        }
    }

    async fn take(self: &Arc<Self>, frame: Frame) -> Option<End> {
        let too_large = |bytes| {
            Code::ResourceExhausted.with(json!({
                "limit": "request_payload", "max_bytes": MAX_BODY, "actual_bytes": bytes,
            }))
        };
        match frame {
            Frame::Body(body) => match jsonrpc::read(&body) {
                Ok(message) => self.hear(message).await,
                Err((id, error)) => self.answer(&id, &Err(error)).await,
            },
            Frame::Broken(why) => {
                self.answer(&Id::null(), &Err(Code::Parse.with(json!({"reason": why})))).await
            }
            Frame::TooLarge(bytes) => self.answer(&Id::null(), &Err(too_large(bytes))).await,
            Frame::Hopeless(bytes) => {
                self.answer(&Id::null(), &Err(too_large(bytes))).await;
                Some(End::Gone)
            }
        }
    }

    /// Sends an answer; `Some` when nobody is there to read it.
    async fn answer(&self, id: &Id, outcome: &Result<Value, RpcError>) -> Option<End> {
        self.outbox.send(jsonrpc::answer(id, outcome)).await.err().map(|_| End::Gone)
    }

    async fn hear(self: &Arc<Self>, message: Message<'_>) -> Option<End> {
        match message {
            Message::Response => None,
            Message::Notification { method, params } => {
                match method.as_str() {
                    "exit" => return Some(End::Exit(u8::from(!self.life().shut_down))),
                    "kaiak/fix/cancel" | "kaiak/interaction/respond" | "kaiak/session/terminate" => {
                        self.call(None, method, params).await;
                    }
                    // `initialized`, `$/…`, `textDocument/…`, and what nobody knows.
                    _ => {}
                }
                None
            }
            Message::Request { id, method, params } => {
                if !self.going().insert(id.clone()) {
                    let error = Code::InvalidRequest.with(json!({"reason": "this id is in use"}));
                    return self.answer(&id, &Err(error)).await;
                }
                let outcome = match method.as_str() {
                    "initialize" => self.initialize(),
                    "shutdown" => {
                        self.life().shut_down = true;
                        self.runs.cancel();
                        Ok(Value::Null)
                    }
                    _ => {
                        self.call(Some(id), method, params).await;
                        return None;
                    }
                };
                self.going().remove(&id);
                self.answer(&id, &outcome).await
            }
        }
    }

    /// Starts a call on its own task; waits while too many are going.
    async fn call(self: &Arc<Self>, id: Option<Id>, method: String, params: Option<&str>) {
        let room = Arc::clone(&self.room).acquire_owned().await.expect("it is never closed");
        let size = params.map_or(0, str::len) / 1024 + 1;
        let size = u32::try_from(size).unwrap_or(MAX_PARAMS).min(MAX_PARAMS);
        let memory = Arc::clone(&self.memory).acquire_many_owned(size).await.expect("it is never closed");
        let params = params.map(str::to_owned);
        let this = Arc::clone(self);
        self.calls.spawn(async move {
            let life = *this.life();
            let work = {
                let this = Arc::clone(&this);
                async move { methods::call(&this, &method, params.as_deref(), life.shut_down).await }
            };
            // A bug in one call is not the end of the others.
            let Answered { outcome, then } =
                tokio::spawn(work).await.unwrap_or_else(|_| Err::<Value, _>(Code::Internal.into()).into());
            if let Some(id) = id {
                this.going().remove(&id);
                this.answer(&id, &outcome).await;
            }
            if let Some(then) = then {
                then();
            }
            drop((room, memory));
        });
    }

    fn initialize(&self) -> Result<Value, RpcError> {
        if std::mem::replace(&mut self.life().initialized, true) {
            return Err(Code::InvalidRequest.with(json!({"reason": "initialize comes once"})));
        }
        let server = json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")});
        Ok(json!({"capabilities": {}, "serverInfo": server}))
    }

    fn going(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
