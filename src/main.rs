//! The `kontekst` executable.
use std::process::ExitCode;

fn main() -> ExitCode {
    kontekst::cli::main(std::env::args_os())
}
