//! The small model that is part of the program. `model/` has everything that made it.

/// What an agent's `model` says to have it, and what `status` calls it.
pub const NAME: &str = "builtin";

/// A GGUF file.
pub const BYTES: &[u8] = include_bytes!("../../../assets/kontekst.gguf");

/// What its user reads once in each run.
pub fn notice(why: Option<&str>) -> String {
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    format!(
        "the small built-in model answers{why}: it lists, reads, writes and changes files and fetches pages when \
         plainly asked, and can do nothing else; {PULL} gets a real model"
    )
}

/// The command that replaces it. The file has 2.5 GB and answers on a machine with 8 GB and no GPU.
const PULL: &str = "`kontekst models pull --use Qwen/Qwen3-4B-GGUF`";
