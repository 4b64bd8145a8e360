//! What went wrong with a model file, and what to do about it.
#![warn(clippy::wildcard_enum_match_arm)]

use super::units;
use crate::{
    cli::error::{CliError, Kind},
    models::{choice::LinkError, pull::PullError},
};

impl From<LinkError> for CliError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Exists(_) => {
                Self::of(Kind::Usage, &error).hint("rename that file, or use it by its name")
            }
            LinkError::Path(error) => error.into(),
        }
    }
}

/// Files that a hint names.
const NAMED: usize = 24;

impl From<PullError> for CliError {
    fn from(error: PullError) -> Self {
        match error {
            PullError::Source(_) => Self::of(Kind::Usage, &error)
                .hint("ORG/NAME, ORG/NAME:Q4_K_M, ORG/NAME:FILE.gguf, or the address of a .gguf file"),
            PullError::Choice { ref files, .. } => {
                let shown = Self::of(Kind::Usage, &error);
                if files.is_empty() {
                    return shown.hint("repositories whose names end in -GGUF have models that run here");
                }
                let more = if files.len() > NAMED { ", …" } else { "" };
                let names = files[..files.len().min(NAMED)].join(", ");
                shown.hint(format!("put one of these, or its quantisation, behind a colon: {names}{more}"))
            }
            PullError::Cancelled { name, have, total } => {
                let of = total.map(|total| format!(" of {}", units::bytes(total))).unwrap_or_default();
                let shown = Self::new(
                    Kind::Interrupted,
                    format!("{name} is not complete: {}{of}", units::bytes(have)),
                );
                if have == 0 { shown } else { shown.hint(RESUME) }
            }
            PullError::Unreachable { have, .. } => {
                let shown = Self::of(Kind::Unreachable, &error);
                if have == 0 { shown.hint("is this machine online?") } else { shown.hint(RESUME) }
            }
            PullError::Refused { status, .. } => {
                let shown = Self::of(Kind::Failed, &error);
                match status {
                    401 | 403 => shown
                        .hint("there is no such repository, or it needs a login: put a token into HF_TOKEN, and accept its licence on its page"),
                    404 => shown.hint("there is no such file; names are case-sensitive, and a repository alone lists its files"),
                    _ => shown,
                }
            }
            PullError::Answer { .. } => {
                Self::of(Kind::Failed, &error).hint("is that the address of the file itself?")
            }
            PullError::Checksum { .. } => Self::of(Kind::Failed, &error)
                .hint("nothing was kept; try again, or ask where the checksum is from"),
            PullError::Exists(_) => {
                Self::of(Kind::Usage, &error).hint("move it away, or give --into another directory")
            }
            PullError::Busy(_) => {
                Self::of(Kind::Failed, &error).hint("wait for the other `kontekst models pull`")
            }
            PullError::Space { name, need, free, dir } => {
                let (need, free) = (units::bytes(need), units::bytes(free));
                Self::failed(format!("{name} needs {need} and `{}` has {free}", dir.display()))
                    .hint("free some space, set `model_dir` in config.toml, or give --into another directory")
            }
            PullError::Path(error) => error.into(),
        }
    }
}

const RESUME: &str = "what is here is kept; the same command goes on from there";
