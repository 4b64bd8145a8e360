//! `[approvals]`: what happens to a run that needs an approval where nobody can be asked.

use serde::{Deserialize, Serialize};

/// `[approvals]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalsConfig {
    pub park: ParkMode,
}

/// The runs that wait on disk for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParkMode {
    /// Those of `kontekst run` without a terminal.
    #[default]
    Headless,
    /// None. The call is denied, and the run ends.
    Never,
}
