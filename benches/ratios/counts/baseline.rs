//! The committed counts.

use std::{collections::BTreeMap, env::consts::ARCH, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Count;
use crate::Failure;

/// The counts on one architecture.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// The kernel and the processor on which they were taken.
    pub(super) machine: String,
    pub(super) counts: BTreeMap<String, u64>,
}

impl Baseline {
    /// Reads the counts for this architecture. They are empty if there are none yet.
    pub(super) fn read() -> Result<Self, Failure> {
        Ok(all()?.remove(ARCH).unwrap_or_default())
    }

    /// Replaces the counts for this architecture.
    pub(super) fn write(counts: &[Count]) -> Result<(), Failure> {
        let counts = counts.iter().map(|count| (count.name.clone(), count.value)).collect();
        let mut all = all()?;
        all.insert(ARCH.to_owned(), Self { machine: machine(), counts });
        Ok(fs::write(path(), toml::to_string(&all)?)?)
    }
}

/// Returns the release of the running kernel and the name of the processor. Page faults depend on the one, and instructions
/// on what the other knows.
pub(super) fn machine() -> String {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{kernel}, {}", name.map_or("unknown processor", |(_, name)| name))
}

fn all() -> Result<BTreeMap<String, Baseline>, Failure> {
    Ok(toml::from_str(&fs::read_to_string(path())?)?)
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/ratios/baseline.toml")
}
