//! Compiles `proto/` with protox, so that building needs no `protoc`.
use std::{env, fs, path::PathBuf};

use protox::prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = ["kontekst.proto", "roz/v1/agent.proto"];
    let files = protox::compile(protos, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Reflection serves the descriptor set as it was compiled.
    fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;
    // The codec finds the fields of a message by its name.
    let mut names = tonic_prost_build::Config::new();
    names.enable_type_names();
    tonic_prost_build::configure()
        .codec_path("crate::pb::LimitedCodec")
        .compile_fds_with_config(files, names)?;
    println!("cargo:rerun-if-changed=proto");
    Ok(())
}
