//! The `kontekst` executable.
use std::process::ExitCode;

/// For the static build; see `Cargo.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    kontekst::cli::main(std::env::args_os())
}
