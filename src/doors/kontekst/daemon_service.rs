//! `kontekst.DaemonService`.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use tonic::{Request, Response, Status};

use crate::{
    agent::AgentCore,
    core::{Cancel, clock},
    pb::{
        GetStatusRequest, GetStatusResponse, ShutdownRequest, ShutdownResponse,
        daemon_service_server::{DaemonService, DaemonServiceServer},
    },
    provider::Backend,
    tools,
};

/// The facts that `GetStatus` reports in addition to the status of the agent core.
pub struct StatusContext {
    /// The address of the gRPC server on TCP, or `off`.
    pub bind: String,
    /// The address of the HTTP door, or an empty text.
    pub http: String,
    pub socket: String,
    pub started: Instant,
    pub started_at: SystemTime,
    /// Warnings for the operator, one sentence each.
    pub warnings: Vec<String>,
    /// Stops the daemon when it is cancelled.
    pub stop: Cancel,
}

/// Serves status and shutdown.
pub struct DaemonDoor {
    core: AgentCore,
    context: Arc<StatusContext>,
}

impl DaemonDoor {
    pub fn service(core: AgentCore, context: Arc<StatusContext>) -> DaemonServiceServer<Self> {
        DaemonServiceServer::new(Self { core, context })
    }
}

#[tonic::async_trait]
impl DaemonService for DaemonDoor {
    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let server = self.core.server_status().await;
        let config = self.core.config();
        Ok(Response::new(GetStatusResponse {
            bind: self.context.bind.clone(),
            endpoint: if server.endpoint.is_empty() { config.endpoint.clone() } else { server.endpoint },
            model_dir: config.model_dir.display().to_string(),
            llama_server_healthy: server.healthy,
            llama_server_running: server.running,
            llama_server_pid: i32::try_from(server.pid).unwrap_or_default(),
            uptime_seconds: i64::try_from(self.context.started.elapsed().as_secs()).unwrap_or(i64::MAX),
            started_at_rfc3339: clock::rfc3339(self.context.started_at),
            data_dir: self.core.home().root().display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: i32::try_from(std::process::id()).unwrap_or_default(),
            active_runs: i32::try_from(self.core.active_runs()).unwrap_or(i32::MAX),
            model: server.model,
            socket: self.context.socket.clone(),
            warnings: self.context.warnings.clone(),
            http: self.context.http.clone(),
            engine: match server.backend {
                Backend::Endpoint => "endpoint",
                Backend::LlamaServer => "llama-server",
                Backend::Builtin => "builtin",
            }
            .to_owned(),
            confinement: tools::sandbox_description().to_owned(),
        }))
    }

    async fn shutdown(
        &self,
        request: Request<ShutdownRequest>,
    ) -> Result<Response<ShutdownResponse>, Status> {
        let runs = self.core.active_runs();
        if request.into_inner().if_idle && runs > 0 {
            let message = format!("{runs} run(s) are active");
            return Ok(Response::new(ShutdownResponse { message, refused: true }));
        }
        tracing::info!("stopping because a client asked for it");
        self.context.stop.cancel();
        Ok(Response::new(ShutdownResponse { message: "shutting down".to_owned(), refused: false }))
    }
}
