//! gRPC reflection, for clients that do not have the protobuf descriptors.
//!
//! The index of all messages is built on the first request. Hardly any client asks for it, and building it takes as
//! long as the rest of the daemon's start.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use http::{Request, Response};
use tonic::{body::Body, server::NamedService, service::Routes};
use tonic_reflection::server::{Builder, v1, v1alpha};
use tower::Service;

use kontekst_pb as pb;

/// One version of the service. Both versions answer from the same index.
#[derive(Clone)]
pub(super) struct Reflection<const ALPHA: bool>(Arc<OnceLock<Routes>>);

/// Returns `v1`, and `v1alpha`, which many clients still ask for.
pub(super) fn services() -> (Reflection<false>, Reflection<true>) {
    let index = Arc::default();
    (Reflection(Arc::clone(&index)), Reflection(index))
}

impl NamedService for Reflection<false> {
    const NAME: &str = v1::ServerReflectionServer::<()>::NAME;
}

impl NamedService for Reflection<true> {
    const NAME: &str = v1alpha::ServerReflectionServer::<()>::NAME;
}

impl<const ALPHA: bool> Service<Request<Body>> for Reflection<ALPHA> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <Routes as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.get_or_init(index).clone().call(request)
    }
}

fn index() -> Routes {
    let files = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(pb::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Routes::new(files().build_v1().expect("the built-in descriptors are valid"))
        .add_service(files().build_v1alpha().expect("the built-in descriptors are valid"))
}
