//! Commands that try to get out of the sandbox, with both layers and with each alone, as root and as an ordinary user.

mod table;
mod targets;

use std::{
    fs::{self, File},
    os::{fd::AsFd as _, unix::fs::PermissionsExt as _},
    path::PathBuf,
};

use kontekst_core::Cancel;
use kontekst_sandbox::{CommandSpec, FoundLayers, Layers, Limits, Sandbox, View};
use tempfile::TempDir;

use targets::Targets;

const NAMESPACES: Layers = Layers { namespaces: true, filters: false };
const FILTERS: Layers = Layers { namespaces: false, filters: true };

/// The user that commands run as.
struct Runner {
    launcher: PathBuf,
    user: Option<u32>,
    /// Commands have the network of the machine.
    network: bool,
    _dir: TempDir,
}

/// Returns a line in which the arguments of Perl's `syscall` are variables, because it refuses constants.
fn with_variables(line: &str) -> String {
    let call = "perl -e 'sub call { my @a = @_; syscall(shift @a, @a) } ";
    if line.contains("syscall(") {
        line.replace("syscall(", "call(").replace("perl -e '", call)
    } else {
        line.to_owned()
    }
}

impl Runner {
    fn same_user() -> Self {
        let launcher = env!("CARGO_BIN_EXE_kontekst").into();
        Self { launcher, user: None, network: false, _dir: tempfile::tempdir().unwrap() }
    }

    /// Returns `None` if this is not root, which alone can become another user.
    fn other_user() -> Option<Self> {
        const NOBODY: u32 = 65534;
        if !rustix::process::getuid().is_root() || !PathBuf::from("/usr/bin/setpriv").exists() {
            return None;
        }
        let dir = TempDir::with_prefix_in("launcher-", targets::base(Some(NOBODY))).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let launcher = dir.path().join("launcher");
        let program = dir.path().join("kontekst");
        let built = env!("CARGO_BIN_EXE_kontekst");
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).unwrap();
        }
        let program = program.display();
        let script = format!(
            "#!/bin/sh\nexec /usr/bin/setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {program} \"$@\"\n"
        );
        fs::write(&launcher, script).unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { launcher, user: Some(NOBODY), network: false, _dir: dir })
    }

    fn all() -> Vec<Self> {
        [Some(Self::same_user()), Self::other_user()].into_iter().flatten().collect()
    }

    /// Runs lines one after the other in one command, and returns the effects of all.
    fn run(&self, lines: &[&str], layers: Layers) -> Vec<String> {
        let targets = Targets::new(self.user);
        let dir = File::open(targets.work_dir()).unwrap();
        let line: String = lines.iter().map(|line| format!("(\n{}\n)\n", with_variables(line))).collect();
        let mut environment = targets.variables();
        if layers.filters {
            environment.push(("FILTERS".to_owned(), "1".to_owned()));
        }
        let command = CommandSpec {
            line: &line,
            work_dir: dir.as_fd(),
            environment,
            read_only: Targets::read_only(),
            readable: Vec::new(),
            writable: targets.writable(),
            network: self.network,
            umask: 0o022,
            limits: Limits::default(),
        };
        let sandbox = Sandbox::new(self.launcher.clone(), layers, View::default().hiding(targets.hidden()));
        let mut output = Vec::new();
        let end = sandbox.run(&command, &Cancel::new(), &mut |chunk| output.extend_from_slice(chunk));
        end.unwrap_or_else(|error| panic!("{layers:?}, user {:?}: {error}", self.user));
        let output = String::from_utf8_lossy(&output);
        targets.effects(&output, layers != FILTERS)
    }

    /// Runs lines together, and each alone if there was an effect, to find out which line had it.
    fn effects(&self, lines: &[&str], layers: Layers) -> Vec<String> {
        if self.run(lines, layers).is_empty() {
            return Vec::new();
        }
        let alone = lines.iter().flat_map(|line| {
            let effects = self.run(&[line], layers);
            effects.into_iter().map(move |effect| format!("{line}\n    {effect}"))
        });
        let mut found: Vec<String> = alone.collect();
        if found.is_empty() {
            found = self.run(lines, layers);
        }
        found.iter_mut().for_each(|effect| *effect = format!("{layers:?}, user {:?}: {effect}", self.user));
        found
    }
}

/// Runs lines with each of these sets of layers, as each user. Sets that this machine does not have are left out.
#[track_caller]
fn check(lines: &[&str], sets: &[Layers]) {
    check_with(lines, sets, false);
}

/// As [`check`]. With `network`, commands have the network of the machine.
#[track_caller]
fn check_with(lines: &[&str], sets: &[Layers], network: bool) {
    let mut effects = Vec::new();
    for mut runner in Runner::all() {
        runner.network = network;
        let found = FoundLayers::find(&runner.launcher);
        let has = |set: &&Layers| {
            (found.layers.namespaces || !set.namespaces) && (found.layers.filters || !set.filters)
        };
        for set in sets.iter().filter(has) {
            effects.extend(runner.effects(lines, *set));
        }
    }
    assert!(effects.is_empty(), "{} effects outside:\n{}", effects.len(), effects.join("\n"));
}

const EACH: &[Layers] = &[Layers::BOTH, NAMESPACES, FILTERS];

#[test]
fn files() {
    check(table::FILES, EACH);
}

#[test]
fn sockets() {
    check(table::SOCKETS, EACH);
}

#[test]
fn datagrams() {
    check(table::DATAGRAMS, &[Layers::BOTH, FILTERS]);
    check_with(table::DATAGRAMS, &[Layers::BOTH, FILTERS], true);
}

#[test]
fn processes() {
    check(table::PROCESSES, EACH);
}

#[test]
fn secrets() {
    check(table::SECRETS, EACH);
}

#[test]
fn survivors() {
    check(table::SURVIVORS, &[Layers::BOTH, NAMESPACES, FILTERS, Layers::NONE]);
}

#[test]
fn terminals() {
    check(table::TERMINAL, EACH);
}

#[test]
fn the_kernel() {
    check(table::KERNEL, &[Layers::BOTH, FILTERS]);
}

#[test]
fn privileges() {
    check(table::PRIVILEGES, EACH);
}

/// Landlock knows no rule against a single name in a directory that can be written.
#[test]
fn protected_files() {
    check(table::PROTECTED, &[Layers::BOTH, NAMESPACES]);
}

/// Commands may write the objects and branches of the repository and the git directory of their working tree. Without namespaces
/// they may write nothing of it.
#[test]
fn the_repository_of_a_worktree() {
    check(table::REPOSITORY, EACH);
}

/// With the network, the listeners of other programs at TCP and their unix sockets stay closed under the filters. UDP is open.
#[test]
fn sockets_with_the_network() {
    let uses_udp = |line: &&&str| line.contains("$UDP") || line.contains("ENV{UDP}");
    let lines: Vec<&str> = table::SOCKETS.iter().filter(|line| !uses_udp(line)).copied().collect();
    assert!(lines.len() >= 30, "{}", lines.len());
    check_with(&lines, &[Layers::BOTH, FILTERS], true);
}

#[test]
fn everything_else_with_the_network() {
    check_with(table::FILES, EACH, true);
    check_with(table::PROCESSES, EACH, true);
    check_with(table::SECRETS, EACH, true);
    check_with(table::PRIVILEGES, EACH, true);
}

/// The same commands without a sandbox: their effects show that the tests above would see them.
#[test]
fn effects_are_seen_without_a_sandbox() {
    let runner = Runner::same_user();
    let tables = [
        (table::FILES, 40),
        (table::SOCKETS, 20),
        (table::DATAGRAMS, 7),
        (table::SECRETS, 8),
        (table::PROTECTED, 20),
        (table::REPOSITORY, 30),
    ];
    for (lines, least) in tables {
        let seen = lines.iter().filter(|line| !runner.run(&[line], Layers::NONE).is_empty()).count();
        assert!(seen >= least, "only {seen} of {} commands had an effect", lines.len());
    }
}
