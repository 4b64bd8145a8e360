//! Finds out which layers this machine has.

use std::{
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use kontekst_core::Cancel;

use super::{
    command::{CommandSpec, Limits},
    end::Ending,
    layers::Layers,
    runner::Sandbox,
    view::View,
};

/// The layers of the sandbox that work on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLayers {
    /// The layers that work, some of them perhaps not wholly.
    pub layers: Layers,
    /// The reason why the sandbox is not whole, as a part of a sentence. `None` if both layers are whole.
    pub missing: Option<String>,
}

impl FoundLayers {
    /// Runs a command that does nothing in each layer. Takes some milliseconds. `launcher` is this program.
    pub fn find(launcher: &Path) -> Self {
        let namespaces = problem(launcher, Layers { namespaces: true, filters: false }, true);
        let filters = problem(launcher, Layers { namespaces: false, filters: true }, true);
        // An older Landlock holds less, and what it holds is still worth having.
        let part = filters.is_some()
            && problem(launcher, Layers { namespaces: false, filters: true }, false).is_none();
        let layers = Layers { namespaces: namespaces.is_none(), filters: filters.is_none() || part };
        let reasons = [("it has no namespaces", namespaces), ("its filters are not whole", filters)];
        let reasons: Vec<String> = reasons
            .into_iter()
            .filter_map(|(what, reason)| reason.map(|reason| format!("{what}: {reason}")))
            .collect();
        Self { layers, missing: (!reasons.is_empty()).then(|| reasons.join("; ")) }
    }
}

/// Returns why nothing can run in these layers. With `whole`, a layer counts only if the kernel has all of it.
fn problem(launcher: &Path, layers: Layers, whole: bool) -> Option<String> {
    let failed = |error: &dyn std::fmt::Display| Some(error.to_string());
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => return failed(&error),
    };
    let handle = match std::fs::File::open(dir.path()) {
        Ok(handle) => handle,
        Err(error) => return failed(&error),
    };
    let command = CommandSpec {
        line: ":",
        work_dir: handle.as_fd(),
        environment: Vec::new(),
        read_only: Vec::new(),
        readable: Vec::new(),
        writable: Vec::new(),
        network: false,
        umask: 0o077,
        limits: Limits::default(),
    };
    let mut sandbox = Sandbox::new(PathBuf::from(launcher), layers, View::default());
    sandbox.require_whole_layers(whole);
    match sandbox.run(&command, &Cancel::new(), &mut |_| {}) {
        Ok(end) if end.ending == Ending::Exited(0) => None,
        Ok(end) => Some(format!("{:?}", end.ending)),
        Err(error) => Some(error.reason()),
    }
}
