//! The small model that is part of the program. `model/` has everything that made it.

/// What an agent's `model` says to have it, and what `status` calls it.
pub const NAME: &str = "builtin";

/// A GGUF file.
pub const BYTES: &[u8] = include_bytes!("../../../assets/kontekst.gguf");

/// What its user reads once in each run. `better` is the command that has another model answer.
pub fn notice(better: &str) -> String {
    format!(
        "the small built-in model answers: it lists, reads, writes and changes files and fetches pages when plainly \
         asked, and can do nothing else; {better}"
    )
}
