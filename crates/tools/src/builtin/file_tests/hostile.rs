//! Tests that no call of a file tool reads or changes anything outside the working directory.

use super::*;
use crate::{
    hostile_input::{Random, rounds},
    workspace::tests::while_swapping,
};

/// Paths that lead out, or seem to. `ROOT` stands for the working directory and `OUT` for the directory next to it.
const PATHS: &[&str] = &[
    "",
    ".",
    "/",
    "//",
    "..",
    "../",
    "../out/canary",
    "./../out/canary",
    "sub/../../out/canary",
    "sub/deep/../../../out/canary",
    "missing/../../out/canary",
    "sub//..//..//out//canary",
    "../ws/../out/canary",
    ".././out/./canary",
    "../out/canary/",
    "..\\out\\canary",
    "\\out\\canary",
    "../out/canary\0",
    "../out/canary\n",
    "..%2fout%2fcanary",
    "%2e%2e/out/canary",
    "..;/out/canary",
    "..\u{2215}out\u{2215}canary",
    "\u{FF0E}\u{FF0E}/out/canary",
    "~/canary",
    "~root/.ssh/id_rsa",
    "$HOME/canary",
    "file:///etc/passwd",
    "file://ROOT/../out/canary",
    "/etc/passwd",
    "//etc/passwd",
    "/etc/../etc/shadow",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/Cargo.toml",
    "/proc/self/environ",
    "/proc/self/fd/3",
    "/dev/stdin",
    "/dev/fd/0",
    "/dev/zero",
    "OUT/canary",
    "OUT",
    "ROOT/../out/canary",
    "ROOT/./../out/canary",
    "ROOT/sub/../../out/canary",
    "ROOT-evil/canary",
    "ROOT../out/canary",
    "up/out/canary",
    "up/ws/../out/canary",
    "here/up/out/canary",
    "here/here/here/up/out/canary",
    "esc",
    "esc/canary",
    "esc/new",
    "esc/new/deep",
    "abs",
    "absdir/canary",
    "absdir/new",
    "proc/etc/passwd",
    "proc",
    "cwd/Cargo.toml",
    "fd/3",
    "loop",
    "loop/x",
    "chain",
    "sub/back/../out/canary",
    "sub/esc",
    "far/out/canary",
    "dangling",
    "dangling/x",
];

const LINKS: &[(&str, &str)] = &[
    ("up", ".."),
    ("here", "."),
    ("esc", "../out"),
    ("abs", "OUT/canary"),
    ("absdir", "OUT"),
    ("proc", "/proc/self/root"),
    ("cwd", "/proc/self/cwd"),
    ("fd", "/proc/self/fd"),
    ("loop", "loop"),
    ("chain", "up/out/canary"),
    ("far", "sub/deep/../../.."),
    ("dangling", "../out/made"),
    ("sub/back", "../.."),
    ("sub/esc", "../../out/canary"),
];

/// `ws` is the working directory, and `out/canary` next to it must be neither read nor changed.
fn with_canary() -> TestWorkDir {
    let mut test = TestWorkDir::new();
    for dir in ["ws/sub/deep", "out", "ws-evil"] {
        fs::create_dir_all(test.file(dir)).unwrap();
    }
    for file in ["out/canary", "ws-evil/canary"] {
        test.put(file, "secret");
    }
    let out = test.file("out").display().to_string();
    for (name, target) in LINKS {
        symlink(target.replace("OUT", &out), test.file("ws").join(name)).unwrap();
    }
    test.enter("ws", &Home::find(Some("/nonexistent".into())).unwrap());
    test
}

/// Calls each tool with the path, and asserts that no result has anything of the outside in it.
fn call_all(test: &TestWorkDir, path: &str) {
    let calls = [
        ("read_file", json!({"path": path})),
        ("edit_file", json!({"path": path, "old_str": "secret", "new_str": "owned"})),
        ("write_file", json!({"path": path, "content": "owned"})),
        ("list_files", json!({"pattern": path})),
        ("list_files", json!({"pattern": format!("{path}/*")})),
    ];
    for (tool, args) in calls {
        let proposal = test.propose(tool, &args);
        let result = test.execute(tool, &args, &proposal);
        let seen = format!("{} {result:?}", proposal.preview);
        for outside in ["secret", "root:x:0", "[package]"] {
            assert!(!seen.contains(outside), "{tool} {path:?}: {seen}");
        }
    }
}

fn assert_untouched(test: &TestWorkDir) {
    let names = |dir: &str| {
        let mut names: Vec<_> =
            fs::read_dir(test.file(dir)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(""), ["out", "ws", "ws-evil"]);
    assert_eq!((names("out"), names("ws-evil")), (vec!["canary".into()], vec!["canary".into()]));
    assert_eq!(
        (test.content("out/canary"), test.content("ws-evil/canary")),
        ("secret".into(), "secret".into())
    );
}

#[test]
fn no_hostile_path_reaches_the_outside() {
    let test = with_canary();
    let (root, out) = (test.file("ws").display().to_string(), test.file("out").display().to_string());
    for path in PATHS {
        let path = path.replace("ROOT", &root).replace("OUT", &out);
        for variant in [path.clone(), format!("./{path}"), format!("sub/../{path}"), format!("{path}/.")] {
            call_all(&test, &variant);
        }
    }
    assert_untouched(&test);
}

/// The file and its directory are swapped with links to the outside while each tool is called.
#[test]
fn no_raced_call_reaches_the_outside() {
    let mut random = Random::new(3);
    for (one, two) in [("sub", "esc"), ("file", "abs")] {
        let test = with_canary();
        fs::write(test.file("ws/file"), "inside").unwrap();
        while_swapping(&test.file("ws"), one, two, || {
            for round in 0..rounds(40, 1200) {
                let paths = ["sub/canary", "file", "sub/new", "here/sub/canary", "esc/canary", "abs"];
                call_all(&test, paths[random.below(paths.len())]);
                call_all(&test, &format!("sub/n{round}/x"));
            }
        });
        assert_untouched(&test);
    }
}
