//! The gRPC services of all doors on one server, with health and reflection.

use std::convert::Infallible;

use http::{Request, Response};
use tonic::{
    body::Body,
    server::NamedService,
    service::{Routes, RoutesBuilder},
};
use tonic_health::server::{HealthReporter, health_reporter};
use tower::Service;

use super::reflection;

/// Collects the services of one gRPC server.
pub struct GrpcServices {
    routes: RoutesBuilder,
    health: HealthReporter,
}

impl GrpcServices {
    /// Starts with the health service and both versions of reflection.
    #[expect(clippy::new_without_default, reason = "it registers services, which a default should not")]
    pub fn new() -> Self {
        let (health, health_service) = health_reporter();
        let (reflection, reflection_alpha) = reflection::services();
        let mut routes = RoutesBuilder::default();
        routes.add_service(health_service).add_service(reflection).add_service(reflection_alpha);
        Self { routes, health }
    }

    /// Adds a service that the health service reports as serving.
    pub async fn add<S>(&mut self, service: S)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.health.set_serving::<S>().await;
        self.routes.add_service(service);
    }

    pub fn into_routes(self) -> Routes {
        self.routes.routes()
    }
}
