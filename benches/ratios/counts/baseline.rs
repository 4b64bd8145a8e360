//! The committed counts.

use std::{collections::BTreeMap, env::consts::ARCH, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Count;
use crate::Failure;

/// The counts on one architecture.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// The kernel on which they were taken.
    pub(super) kernel: String,
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
        all.insert(ARCH.to_owned(), Self { kernel: kernel(), counts });
        Ok(fs::write(path(), toml::to_string(&all)?)?)
    }
}

/// Returns the release of the running kernel.
pub(super) fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn all() -> Result<BTreeMap<String, Baseline>, Failure> {
    Ok(toml::from_str(&fs::read_to_string(path())?)?)
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/ratios/baseline.toml")
}
