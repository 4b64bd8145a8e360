//! The two independent layers of the sandbox.

use serde::{Deserialize, Serialize};

/// The layers that hold a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Namespaces of its own, in which it has a view of the file system of its own, no other process and no network.
    pub namespaces: bool,
    /// Landlock and a seccomp filter.
    pub filters: bool,
}

impl Layers {
    pub const NONE: Self = Self { namespaces: false, filters: false };
    pub const BOTH: Self = Self { namespaces: true, filters: true };
}
