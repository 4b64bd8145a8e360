//! The configuration of the built-in engine, also for a program that was built without it.

use std::{path::PathBuf, time::Duration};

/// The configuration of models in this process.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "builtin"), expect(dead_code, reason = "nothing reads it without an engine"))]
pub(crate) struct Settings {
    /// The size of the context window, in tokens. `None` is what the model was trained for, as far as memory allows.
    pub(crate) context_size: Option<u32>,
    /// The most files that are loaded at a time. The starter model is small and does not count.
    pub(crate) max_loaded: usize,
    /// The time after which an unused model is unloaded. `None` is never.
    pub(crate) keep_warm: Option<Duration>,
    /// Several tokens are read at once where an answer repeats what stands before it.
    pub(crate) speculation: bool,
    /// This program, which renders chat templates in another process.
    pub(crate) launcher: Option<PathBuf>,
}
