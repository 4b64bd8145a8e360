//! Commands that take more than they may, and raced changes of protected files.

use std::{fs, os::fd::AsFd as _, time::Duration};

use super::*;
use crate::hostile_input::rounds;

const EACH: [Layers; 3] =
    [Layers::BOTH, Layers { namespaces: true, filters: false }, Layers { namespaces: false, filters: true }];

fn small() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        output: 1 << 20,
        processes: 64,
        memory: 256 << 20,
        file_size: 4 << 20,
        temporary: 8 << 20,
    }
}

/// Fork bombs of a kind that ends by itself, so that a machine on which nothing limits them recovers.
const BOMBS: &[&str] = &[
    r#"perl -e 'for (1..2000) { my $p = fork; if (defined $p && $p == 0) { sleep 20; exit } $n++ if defined $p } print "made $n\n"'"#,
    r#"perl -e 'for (1..11) { fork } sleep 20' & sleep 1; echo done"#,
    r#"f() { [ "$1" -gt 10 ] && sleep 20 && return; f $(($1 + 1)) & f $(($1 + 1)) & wait; }; f 0 2>/dev/null"#,
    r#"python3 -c 'import threading, time
for n in range(2000):
    try: threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
    except RuntimeError: break
print("made", n)'"#,
];

#[test]
fn a_fork_bomb_is_bounded() {
    for layers in EACH {
        let fixture = Fixture::new(layers);
        for bomb in BOMBS {
            let limits = Limits { time: Duration::from_secs(5), ..small() };
            let (end, output) = fixture.run_with(bomb, limits, &Cancel::new());
            let ending = end.unwrap().ending;
            let made = output.lines().find_map(|line| line.strip_prefix("made ")?.parse::<u32>().ok());
            // Namespaces refuse more processes, and without them the command is ended.
            assert!(
                ending == Ending::TooManyProcesses || made.unwrap_or(0) < 400,
                "{layers:?}: {bomb}: {ending:?} {output}"
            );
        }
    }
}

#[test]
fn memory_files_and_output_are_bounded() {
    for layers in EACH {
        let fixture = Fixture::new(layers);
        let run = |line: &str| {
            let (end, output) = fixture.run_with(line, small(), &Cancel::new());
            (end.unwrap().ending, output)
        };
        let (ending, output) = run(r#"perl -e '$x = "x" x (1 << 30); print "EFFECT"'"#);
        assert!(ending != Ending::Exited(0) && !output.contains("EFFECT"), "{layers:?} {ending:?}");
        assert_ne!(run("head -c 10000000 /dev/zero > large").0, Ending::Exited(0), "{layers:?}");
        assert!(fs::metadata(fixture.path().join("large")).unwrap().len() <= 4 << 20);
        assert_ne!(run("truncate -s 1T sparse").0, Ending::Exited(0), "{layers:?}");
        for endless in ["yes", "cat /dev/zero", "head -c 10G /dev/zero", "yes >&2 & yes"] {
            let (ending, output) = run(endless);
            assert_eq!((ending, output.len()), (Ending::TooMuchOutput, 1 << 20), "{layers:?} {endless}");
        }
        if layers.namespaces {
            let fill = "for n in 1 2 3 4; do head -c 3000000 /dev/zero > /tmp/$n || exit 1; done";
            assert_eq!(run(fill).0, Ending::Exited(1), "{layers:?}");
        }
    }
}

/// Two processes: one moves directories and links about, and the other writes through their names.
const RACE: &str = r#"
import ctypes, os, sys
count, libc = int(sys.argv[1]), ctypes.CDLL(None)
def attempt(call, *arguments):
    try: call(*arguments)
    except OSError: pass
def write(path):
    with open(path, "a") as file: file.write("evil")
def exchange(a, b):
    libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
os.mkdir("d"); os.symlink(".git", "l"); os.symlink(".git/hooks", "h")
if os.fork() == 0:
    for n in range(count):
        exchange("d", "l"); exchange("d", "h"); exchange("sub", "d"); exchange(".github", "d")
        attempt(os.rename, ".git", "moved"); attempt(os.rename, "sub", "moved2"); attempt(os.rename, ".github", "moved3")
        attempt(os.rename, "moved", ".git"); attempt(os.rename, "moved2", "sub"); attempt(os.rename, "moved3", ".github")
    os._exit(0)
for n in range(count):
    for path in ["d/config", "l/config", "h/pre-commit", "d/pre-commit", "sub/AGENTS.md", "d/workflows/ci.yml"]:
        attempt(write, path)
    attempt(os.rename, "mine", "d/config"); attempt(os.link, "d/config", f"x{n}"); attempt(os.unlink, "d/hooks/pre-commit.sample")
    attempt(write, "mine")
os.wait()
print("finished")
"#;

#[test]
fn protected_files_stand_raced_changes() {
    for layers in [Layers::BOTH, Layers { namespaces: true, filters: false }] {
        let fixture = Fixture::new(layers);
        let protected =
            [".git/config", ".git/hooks/pre-commit.sample", ".github/workflows/ci.yml", "sub/AGENTS.md"];
        for path in protected {
            let path = fixture.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "kept").unwrap();
        }
        fs::write(fixture.path().join("race.py"), RACE).unwrap();
        let dir = File::open(fixture.path()).unwrap();
        // Ten operations of each process in a round.
        let line = format!("python3 race.py {}", rounds(200, 5_000));
        let command = CommandSpec {
            line: &line,
            work_dir: dir.as_fd(),
            environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            read_only: [".git/config", ".git/hooks", ".github/workflows", "sub/AGENTS.md"]
                .map(Into::into)
                .into(),
            readable: Vec::new(),
            writable: Vec::new(),
            network: false,
            umask: 0o022,
            limits: Limits::default(),
        };
        let mut output = Vec::new();
        fixture.sandbox.run(&command, &Cancel::new(), &mut |chunk| output.extend_from_slice(chunk)).unwrap();
        assert_eq!(String::from_utf8_lossy(&output), "finished\n", "{layers:?}");
        for path in protected {
            assert_eq!(fs::read_to_string(fixture.path().join(path)).unwrap(), "kept", "{layers:?} {path}");
        }
        assert_eq!(fs::read_dir(fixture.path().join(".git/hooks")).unwrap().count(), 1, "{layers:?}");
        assert_eq!(fs::read_dir(fixture.path().join(".github/workflows")).unwrap().count(), 1, "{layers:?}");
    }
}
