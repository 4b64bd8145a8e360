//! Nothing gets out: by words, by links, by races. Each test runs with the kernel's `openat2` and with
//! the walk by hand, and none of them with Landlock, so that this layer stands alone.

use std::{
    fs,
    io::Read,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::*;

const LIMIT: u64 = 1 << 20;

/// `ws` is the workspace; `out` lies beside it, with a canary in it.
struct TestDirs {
    dir: TempDir,
}

impl TestDirs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for path in ["ws/sub/deep", "out/inner", "ws-evil"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        fs::write(dir.path().join("out/canary"), "secret").unwrap();
        fs::write(dir.path().join("ws-evil/canary"), "secret").unwrap();
        fs::write(dir.path().join("ws/file"), "inside").unwrap();
        fs::write(dir.path().join("ws/sub/file"), "inside").unwrap();
        Self { dir }
    }

    fn ws(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("ws").join(name)
    }

    fn both(&self) -> [Workspace; 2] {
        let open = || Workspace::open_root(&self.ws("")).unwrap();
        [open(), open().without_openat2()]
    }

    /// Everything outside the workspace is as it was.
    fn assert_untouched(&self) {
        let names = |path: &Path| {
            let mut names: Vec<_> =
                fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&self.dir.path().join("out")), ["canary", "inner"]);
        assert_eq!(names(&self.dir.path().join("out/inner")), [""; 0]);
        assert_eq!(fs::read(self.dir.path().join("out/canary")).unwrap(), b"secret");
        assert_eq!(names(self.dir.path()), ["out", "ws", "ws-evil"]);
    }
}

/// Swaps two names all the time while `work` runs, also when that fails.
pub(in crate::tools) fn while_swapping(dir: &Path, one: &str, two: &str, work: impl FnOnce()) {
    struct StopOnDrop<'a>(&'a AtomicBool);
    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let dir = fs::File::open(dir).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&dir, one, &dir, two, exchange).unwrap();
            }
        });
        work();
    });
}

/// Runs `work` in a thread of its own and returns its result. Fails if it has not returned within a minute.
///
/// The minute only keeps a hang from blocking the other tests. It is no bound on how fast `work` should be.
#[track_caller]
pub(in crate::tools) fn returns<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || drop(sender.send(work())));
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it returned nothing"))
        }
    }
}

fn read_all(ws: &Workspace, path: &str) -> Result<String, FileError> {
    let path = ws.path(path)?;
    let mut text = String::new();
    let read = ws.open(&path)?.read_to_string(&mut text);
    read.map_err(|error| FileError::io("read", path.as_str(), error))?;
    Ok(text)
}

fn write_all(ws: &Workspace, path: &str, text: &str) -> Result<(), FileError> {
    let path = ws.path(path)?;
    let mut write_target = ws.locate(&path)?;
    let old = write_target.read_existing(LIMIT)?;
    if !write_target.has_parent_dir() {
        write_target = ws.locate_creating_parents(&path)?;
    }
    write_target.replace(text.as_bytes(), old.as_ref())
}

#[test]
fn the_text_of_a_path_does_not_lead_out() {
    let dirs = TestDirs::new();
    let root = dirs.ws("").to_str().unwrap().trim_end_matches('/').to_owned();
    for ws in dirs.both() {
        for good in [
            "file",
            "./file",
            "sub/../file",
            "sub//../file",
            "./sub/.././file",
            "sub/deep/../../file",
            "missing/../file",
            &format!("{root}/file"),
            &format!("{root}//sub/../file"),
        ] {
            assert_eq!(read_all(&ws, good).unwrap(), "inside", "{good}");
        }
        for bad in [
            "",
            "/",
            ".",
            "..",
            "../ws/file",
            "../out/canary",
            "sub/../../out/canary",
            "/etc/passwd",
            "\\x",
            "file\0",
            "file\n",
            "sub/",
            "a/../../x",
            &"a/".repeat(3000),
            &"a".repeat(256),
            &format!("{root}-evil/canary"),
            &format!("{root}/../out/canary"),
            "//etc/passwd",
            "\u{9b}31m",
        ] {
            assert!(ws.path(bad).is_err(), "{bad}");
        }
        let error = ws.path("/etc/passwd").unwrap_err().message();
        assert!(error.contains("relative") && !error.contains(&root), "{error}");
    }
}

#[test]
fn names_that_only_look_like_parents_are_names() {
    let dirs = TestDirs::new();
    for ws in dirs.both() {
        for name in ["..hidden", "...", "a..b", ".. ", "~", "~x/y", "$HOME", "%2e%2e", "-x", "sub/..x/y"] {
            write_all(&ws, name, "x").unwrap();
            assert_eq!(read_all(&ws, name).unwrap(), "x", "{name}");
            fs::remove_file(dirs.ws(name)).unwrap();
        }
    }
    dirs.assert_untouched();
}

#[test]
fn links_are_followed_only_as_long_as_they_stay_inside() {
    let dirs = TestDirs::new();
    let out = dirs.dir.path().join("out");
    let abs = |path: &str| out.join(path).to_str().unwrap().to_owned();
    // (name of the link, target, path that is read, whether it stays inside)
    let shapes: Vec<(&str, String, &str, bool)> = vec![
        ("l01", "file".into(), "l01", true),
        ("l02", "sub".into(), "l02/file", true),
        ("l03", "./sub/./file".into(), "l03", true),
        ("l04", "sub/../file".into(), "l04", true),
        ("sub/l05", "../file".into(), "sub/l05", true),
        ("sub/deep/l06", "../../sub/file".into(), "sub/deep/l06", true),
        ("l07", "l01".into(), "l07", true),
        ("l08", "l02/file".into(), "l08", true),
        ("l09", "sub/".into(), "l09/file", true),
        ("l10", ".".into(), "l10/l10/file", true),
        ("l11", "sub/deep/..".into(), "l11/file", true),
        ("l12", "../out/canary".into(), "l12", false),
        ("l13", "../out".into(), "l13/canary", false),
        ("l14", abs("canary"), "l14", false),
        ("l15", abs(""), "l15/canary", false),
        ("l16", "l12".into(), "l16", false),
        ("l17", "l13/canary".into(), "l17", false),
        ("l18", "..".into(), "l18/out/canary", false),
        ("l19", "../ws/file".into(), "l19", false),
        ("sub/l20", "../../out/canary".into(), "sub/l20", false),
        ("l21", "sub/../../out/canary".into(), "l21", false),
        ("l22", "/".into(), "l22/etc/passwd", false),
        ("l23", "/proc/self/root".into(), "l23/etc/passwd", false),
        ("l24", "/proc/self/cwd".into(), "l24/Cargo.toml", false),
        ("l25", "/dev/stdin".into(), "l25", false),
        ("l26", "l27".into(), "l26", false),
        ("l27", "l26".into(), "l27", false),
        ("l28", "../ws-evil/canary".into(), "l28", false),
        ("l29", dirs.ws("file").to_str().unwrap().into(), "l29", false),
        ("l30", "l18/out".into(), "l30/canary", false),
        ("l31", "sub/../..".into(), "l31/out/canary", false),
        ("l32", "file".into(), "l32/x", false),
    ];
    for (name, target, _, _) in &shapes {
        symlink(target, dirs.ws(name)).unwrap();
    }
    for ws in dirs.both() {
        for (name, target, path, inside) in &shapes {
            let read = read_all(&ws, path);
            assert_eq!(read.is_ok(), *inside, "read {name} -> {target}: {read:?}");
            if let Ok(text) = read {
                assert_eq!(text, "inside", "{name}");
            }
            let written = write_all(&ws, path, "inside");
            assert_eq!(written.is_ok(), *inside, "write {name} -> {target}: {written:?}");
            if !path.contains('/') {
                assert!(dirs.ws(name).is_symlink(), "{name} was replaced instead of what it names");
            }
        }
    }
    dirs.assert_untouched();
}

#[test]
fn a_dangling_link_makes_its_target_only_inside() {
    let dirs = TestDirs::new();
    symlink("sub/new", dirs.ws("good")).unwrap();
    symlink("../out/new", dirs.ws("bad")).unwrap();
    symlink("../out/inner", dirs.ws("dir")).unwrap();
    for ws in dirs.both() {
        write_all(&ws, "good", "x").unwrap();
        assert_eq!(fs::read(dirs.ws("sub/new")).unwrap(), b"x");
        assert!(write_all(&ws, "bad", "x").is_err());
        assert!(write_all(&ws, "dir/x", "x").is_err());
        assert!(write_all(&ws, "dir/x/y/z", "x").is_err());
        let path = ws.path("good").unwrap();
        assert_eq!(ws.locate(&path).unwrap().real_path(), "sub/new");
        let path = ws.path("sub/none/at/all").unwrap();
        assert_eq!(ws.locate(&path).unwrap().real_path(), "sub/none/at/all");
    }
    dirs.assert_untouched();
}

#[test]
fn a_hard_link_is_broken_and_not_written_through() {
    let dirs = TestDirs::new();
    fs::hard_link(dirs.dir.path().join("out/canary"), dirs.ws("hard")).unwrap();
    let [ws, _] = dirs.both();
    let write_target = ws.locate(&ws.path("hard").unwrap()).unwrap();
    assert_eq!(write_target.read_existing(LIMIT).unwrap().unwrap().link_count(), 2);
    write_all(&ws, "hard", "new").unwrap();
    assert_eq!(fs::read(dirs.ws("hard")).unwrap(), b"new");
    dirs.assert_untouched();
}

#[test]
fn what_is_no_file_neither_hangs_nor_opens() {
    let dirs = TestDirs::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, dirs.ws("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dirs.ws("socket")).unwrap();
    let workspaces = dirs.both();
    // Opening the FIFO to read it would block until a writer comes, which is never.
    returns(move || {
        for ws in workspaces {
            for name in ["fifo", "socket"] {
                assert!(matches!(read_all(&ws, name), Err(FileError::NotARegularFile(_))), "read {name}");
                assert!(
                    matches!(write_all(&ws, name, "x"), Err(FileError::NotARegularFile(_))),
                    "write {name}"
                );
            }
            for name in ["sub", "sub/deep"] {
                assert!(matches!(read_all(&ws, name), Err(FileError::Directory(_))), "read {name}");
                assert!(matches!(write_all(&ws, name, "x"), Err(FileError::Directory(_))), "write {name}");
            }
            assert!(matches!(read_all(&ws, "none"), Err(FileError::Missing(_))));
            assert!(matches!(read_all(&ws, "none/at/all"), Err(FileError::Missing(_))));
            assert!(read_all(&ws, "file/x").is_err() && write_all(&ws, "file/x", "").is_err());
        }
    });
}

#[test]
fn devices_of_a_workspace_that_is_dev_are_not_files() {
    let ws = Workspace::open_root(Path::new("/dev")).unwrap();
    for name in ["null", "zero", "full", "tty"] {
        assert!(read_all(&ws, name).is_err(), "{name}");
        assert!(write_all(&ws, name, "x").is_err(), "{name}");
    }
}

#[test]
fn a_huge_sparse_file_is_refused_before_it_is_read() {
    let dirs = TestDirs::new();
    fs::File::create(dirs.ws("sparse")).unwrap().set_len(1 << 40).unwrap();
    let [ws, _] = dirs.both();
    let write_target = ws.locate(&ws.path("sparse").unwrap()).unwrap();
    assert!(matches!(
        write_target.read_existing(LIMIT),
        Err(FileError::TooLarge { bytes: 0x100_0000_0000, .. })
    ));
}

#[test]
fn a_file_is_replaced_whole_with_its_mode_and_leaves_nothing_behind() {
    let dirs = TestDirs::new();
    let [ws, _] = dirs.both();
    fs::set_permissions(dirs.ws("file"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(dirs.ws(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mode = |name: &str| fs::metadata(dirs.ws(name)).unwrap().permissions().mode() & 0o777;
    write_all(&ws, "file", "new").unwrap();
    assert_eq!((mode("file"), fs::read(dirs.ws("file")).unwrap()), (0o751, b"new".to_vec()));
    write_all(&ws, "a/b/c", "x").unwrap();
    assert_eq!((mode("a"), mode("a/b"), mode("a/b/c")), (0o755, 0o755, 0o644));
    fs::set_permissions(dirs.ws("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
    write_all(&ws, "a/b/private", "x").unwrap();
    assert_eq!(mode("a/b/private"), 0o600);
    fs::set_permissions(dirs.ws("file"), fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(write_all(&ws, "file", "x"), Err(FileError::ReadOnly(_))));
    let left: Vec<_> = fs::read_dir(dirs.ws("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().contains(".kontekst-")), "{left:?}");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_left_alone() {
    let dirs = TestDirs::new();
    let [ws, _] = dirs.both();
    let write_target = ws.locate(&ws.path("file").unwrap()).unwrap();
    let old = write_target.read_existing(LIMIT).unwrap();
    fs::write(dirs.ws("file"), "somebody else's").unwrap();
    assert!(matches!(write_target.replace(b"mine", old.as_ref()), Err(FileError::Stale(_))));
    assert_eq!(fs::read(dirs.ws("file")).unwrap(), b"somebody else's");

    let write_target = ws.locate(&ws.path("new").unwrap()).unwrap();
    assert!(write_target.read_existing(LIMIT).unwrap().is_none());
    fs::write(dirs.ws("new"), "somebody else's").unwrap();
    assert!(matches!(write_target.replace(b"mine", None), Err(FileError::Stale(_))));
    assert_eq!(fs::read(dirs.ws("new")).unwrap(), b"somebody else's");
}

/// A directory of the path turns into a link to the outside and back, all the time.
#[test]
fn a_swapped_link_gets_nothing_out() {
    let dirs = TestDirs::new();
    fs::write(dirs.dir.path().join("out/file"), "secret").unwrap();
    symlink("../out", dirs.ws("link")).unwrap();
    let (mut reads, mut refused, mut writes) = (0, 0, 0);
    while_swapping(&dirs.ws(""), "sub", "link", || {
        for ws in dirs.both() {
            for turn in 0..10_000 {
                match read_all(&ws, "sub/file") {
                    Ok(text) => {
                        assert_ne!(text, "secret");
                        reads += 1;
                    }
                    Err(_) => refused += 1,
                }
                if turn % 50 == 0 {
                    writes += usize::from(write_all(&ws, "sub/file", "inside").is_ok());
                    writes += usize::from(write_all(&ws, &format!("sub/d{turn}/f"), "x").is_ok());
                }
            }
        }
    });
    assert!(
        reads > 0 && refused > 0,
        "the race was not run: {reads} reads, {refused} refused, {writes} writes"
    );
    assert_eq!(fs::read(dirs.dir.path().join("out/file")).unwrap(), b"secret");
    fs::remove_file(dirs.dir.path().join("out/file")).unwrap();
    dirs.assert_untouched();
}

/// The file itself turns into a link to the outside and back.
#[test]
fn a_swapped_file_is_neither_read_nor_written_through() {
    let dirs = TestDirs::new();
    symlink("../out/canary", dirs.ws("link")).unwrap();
    let (mut reads, mut refused) = (0, 0);
    while_swapping(&dirs.ws(""), "file", "link", || {
        for ws in dirs.both() {
            let path = ws.path("file").unwrap();
            for _ in 0..10_000 {
                match ws.locate(&path).and_then(|write_target| write_target.read_existing(LIMIT)) {
                    Ok(old) => {
                        assert_eq!(old.unwrap().content, b"inside");
                        reads += 1;
                    }
                    Err(_) => refused += 1,
                }
                match read_all(&ws, "file") {
                    Ok(text) => assert_eq!(text, "inside"),
                    Err(_) => refused += 1,
                }
            }
        }
    });
    assert!(reads > 0 && refused > 0, "the race was not run: {reads} reads, {refused} refused");
    dirs.assert_untouched();
}

/// Random paths against the simplest model there is: count the levels.
#[test]
fn random_paths_never_leave() {
    let dirs = TestDirs::new();
    for (name, target) in [("up", ".."), ("in", "sub"), ("sub/back", ".."), ("esc", "../out"), ("abs", "/")] {
        symlink(target, dirs.ws(name)).unwrap();
    }
    let words = [
        "..", ".", "", "sub", "deep", "file", "up", "in", "back", "esc", "abs", "out", "canary", "etc",
        "passwd", "..x", "proc", "self", "root", "ws", "ws-evil",
    ];
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let workspaces = dirs.both();
    let mut opened = 0;
    for _ in 0..20_000 {
        let parts: Vec<&str> = (0..1 + random(7)).map(|_| words[random(words.len())]).collect();
        let path = format!("{}{}", ["", "", "", "/", "./"][random(5)], parts.join("/"));
        let depth = parts.iter().try_fold(0, |depth: u32, part| match *part {
            "" | "." => Some(depth),
            ".." => depth.checked_sub(1),
            _ => Some(depth + 1),
        });
        let [kernel, by_hand] = workspaces.each_ref().map(|ws| read_all(ws, &path));
        assert_eq!(kernel.is_ok(), by_hand.is_ok(), "{path}: {kernel:?} {by_hand:?}");
        if depth.is_none() {
            assert!(kernel.is_err(), "{path}");
        }
        if let Ok(text) = kernel {
            assert_eq!(text, "inside", "{path}");
            opened += 1;
        }
    }
    assert!(opened > 20, "only {opened} of the paths named a file");
    dirs.assert_untouched();
}
