//! `kontekst.AgentService`.

use tonic::{Request, Response, Status, Streaming};

use kontekst_agent::AgentCore;
use kontekst_pb::{
    MESSAGE_LIMIT, RunCommand, WatchWorkersRequest,
    agent_service_server::{AgentService, AgentServiceServer},
};

use super::{
    stream::RunStream,
    watch::{WatchStream, watch},
};

/// Serves runs on an [`AgentCore`].
pub struct AgentDoor {
    core: AgentCore,
}

impl AgentDoor {
    pub fn service(core: AgentCore) -> AgentServiceServer<Self> {
        AgentServiceServer::new(Self { core })
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }
}

#[tonic::async_trait]
impl AgentService for AgentDoor {
    type RunStream = RunStream;
    type WatchWorkersStream = WatchStream;

    async fn run(&self, request: Request<Streaming<RunCommand>>) -> Result<Response<RunStream>, Status> {
        Ok(Response::new(RunStream::new(self.core.clone(), request.into_inner())))
    }

    async fn watch_workers(
        &self,
        request: Request<WatchWorkersRequest>,
    ) -> Result<Response<WatchStream>, Status> {
        Ok(Response::new(watch(&self.core, request.get_ref()).await?))
    }
}
