//! Commands and their sandbox, with the real program in all of its roles.

mod escapes;
mod limits;
mod running;
mod seen;

use std::{fs::File, os::fd::AsFd as _, path::Path};

use kontekst_core::Cancel;
use kontekst_sandbox::{CommandEnd, CommandSpec, Ending, Layers, Limits, Sandbox, SandboxError, View};
use tempfile::TempDir;

/// A working directory, and the sandbox in which commands run there.
struct Fixture {
    dir: TempDir,
    layers: Layers,
    sandbox: Sandbox,
}

impl Fixture {
    fn new(layers: Layers) -> Self {
        let launcher = env!("CARGO_BIN_EXE_kontekst").into();
        Self {
            dir: tempfile::tempdir().unwrap(),
            layers,
            sandbox: Sandbox::new(launcher, layers, View::default()),
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a line with these limits and returns how it ended and what it wrote.
    fn run_with(
        &self,
        line: &str,
        limits: Limits,
        cancel: &Cancel,
    ) -> (Result<CommandEnd, SandboxError>, String) {
        let dir = File::open(self.path()).unwrap();
        let command = CommandSpec {
            line,
            work_dir: dir.as_fd(),
            environment: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned())],
            read_only: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            network: false,
            umask: 0o022,
            limits,
        };
        let mut output = Vec::new();
        let end = self.sandbox.run(&command, cancel, &mut |chunk| output.extend_from_slice(chunk));
        (end, String::from_utf8_lossy(&output).into_owned())
    }

    #[track_caller]
    fn run(&self, line: &str) -> (Ending, String) {
        let (end, output) = self.run_with(line, Limits::default(), &Cancel::new());
        (end.unwrap_or_else(|error| panic!("{line}: {error}; {output}")).ending, output)
    }
}
