//! The gRPC service `roz.v1.AgentService`.

use std::pin::Pin;

use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use kontekst_agent::AgentCore;
use kontekst_pb::roz::{
    AnalyzeMediaChunk, AnalyzeMediaRequest, SessionRequest, TeamEvent, WatchTeamRequest,
    agent_service_server::{AgentService, AgentServiceServer},
};

use super::{
    MESSAGE_LIMIT,
    outbox::{self, FrameStream},
    session::Session,
    watch::{self, OpenSessions},
};

/// Serves sessions on an [`AgentCore`].
pub struct RozDoor {
    core: AgentCore,
    open_sessions: OpenSessions,
}

impl RozDoor {
    pub fn service(core: AgentCore) -> AgentServiceServer<Self> {
        AgentServiceServer::new(Self { core, open_sessions: OpenSessions::default() })
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }
}

#[tonic::async_trait]
impl AgentService for RozDoor {
    type StreamSessionStream = FrameStream;
    type WatchTeamStream = ReceiverStream<Result<TeamEvent, Status>>;
    type AnalyzeMediaStream = Pin<Box<dyn Stream<Item = Result<AnalyzeMediaChunk, Status>> + Send>>;

    /// Answers at once, because clients wait for the response headers before they send anything.
    async fn stream_session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<FrameStream>, Status> {
        let (outbox, frames) = outbox::channel(self.core.config().roz.events);
        let session =
            Session::new(self.core.clone(), self.open_sessions.clone(), request.into_inner(), outbox);
        tokio::spawn(session.serve());
        Ok(Response::new(frames))
    }

    async fn watch_team(
        &self,
        request: Request<WatchTeamRequest>,
    ) -> Result<Response<Self::WatchTeamStream>, Status> {
        let team =
            watch::parse_task_id(&self.core, &self.open_sessions, &request.into_inner().task_id).await?;
        Ok(Response::new(watch::watch(self.core.clone(), team)))
    }

    async fn analyze_media(
        &self,
        _: Request<AnalyzeMediaRequest>,
    ) -> Result<Response<Self::AnalyzeMediaStream>, Status> {
        Err(Status::unimplemented("kontekst does not analyse media over this door"))
    }
}
