//! Generated protobuf types, and the descriptors that reflection serves.
#![allow(clippy::all, clippy::pedantic, unreachable_pub, missing_docs, reason = "generated code")]

tonic::include_proto!("kontekst");

/// `roz.v1`.
pub mod roz {
    tonic::include_proto!("roz.v1");
}

/// The compiled `proto/` folder as a `FileDescriptorSet`.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
