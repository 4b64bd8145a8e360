//! One `WatchWorkers` stream.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tracing::Instrument as _;

use kontekst_agent::{AgentCore, SubagentWatch};
use kontekst_core::SessionId;
use kontekst_pb::{WatchWorkersRequest, WorkerEvent};

pub(super) type WatchStream = ReceiverStream<Result<WorkerEvent, Status>>;

/// The number of events that wait in memory for a slow client. Later ones stay in the log until there is room.
const QUEUE: usize = 16;

/// Starts to stream the events of a session's subagents.
///
/// # Errors
///
/// INVALID_ARGUMENT if the id is not a session id, NOT_FOUND if there is no such session.
pub(super) async fn watch(core: &AgentCore, request: &WatchWorkersRequest) -> Result<WatchStream, Status> {
    let session: SessionId =
        request.session_id.parse().map_err(|error| Status::invalid_argument(format!("session: {error}")))?;
    if !core.has_session(&session).await {
        return Err(Status::not_found(format!("no session `{session}`")));
    }
    let (events, stream) = mpsc::channel(QUEUE);
    let watch = core.watch_subagents(&session, request.after);
    let (core, past_only) = (core.clone(), request.past_only);
    let forwarding = async move {
        tokio::select! {
            biased;
            () = core.stopped() => {}
            () = events.closed() => {}
            () = forward_events(watch, past_only, &events) => {}
        }
    };
    tokio::spawn(forwarding.in_current_span());
    Ok(ReceiverStream::new(stream))
}

async fn forward_events(
    mut watch: SubagentWatch,
    past_only: bool,
    events: &mpsc::Sender<Result<WorkerEvent, Status>>,
) {
    loop {
        let next = if past_only { watch.next_recorded().await } else { watch.next().await.map(Some) };
        let (event, last) = match next {
            Ok(Some(event)) => (Ok(event.into()), false),
            Ok(None) => return,
            Err(error) => (Err(Status::internal(error.message)), true),
        };
        if events.send(event).await.is_err() || last {
            return;
        }
    }
}
