//! The parts of the daemon's process that the providers use.

use std::path::PathBuf;

use kontekst_core::Environment;
use kontekst_store::config::Home;

/// The environment of the process, as far as providers need it.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnv {
    pub environment: Environment,
    /// The executable that takes the role [`super::supervisor::exec::ROLE`]: this program.
    pub launcher: Option<PathBuf>,
    /// The loopback ports on which a model server is looked for if the configuration names none. Empty looks for none.
    pub ports: Vec<u16>,
    /// The data directory of the daemon. Without one, nothing is kept on disk.
    pub home: Option<Home>,
}
