//! `[undo]`: how much of what runs change can be taken back, and for how long.

use serde::{Deserialize, Serialize};

use super::toml_file::integer;

/// The largest size that can be set: 1 TiB.
const MAX_BYTES: u64 = 1 << 40;

/// `[undo]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UndoConfig {
    /// The days for which the changes of a run are kept. 0 keeps none.
    #[serde(deserialize_with = "integer::<_, _, 0, 36_500>")]
    pub(crate) keep_days: u32,
    /// The maximum size on disk of all that is kept. The oldest runs go first. 0 keeps none.
    #[serde(deserialize_with = "integer::<_, _, 0, MAX_BYTES>")]
    pub max_bytes: u64,
    /// The size of the largest file that is kept. Files are held in memory.
    #[serde(deserialize_with = "integer::<_, _, 0, 1_073_741_824>")]
    pub max_file_bytes: u64,
}

impl Default for UndoConfig {
    fn default() -> Self {
        Self { keep_days: 30, max_bytes: 1 << 30, max_file_bytes: 10_485_760 }
    }
}
