//! Tests that no path, link or race leads out of the workspace. Most run with the kernel's `openat2` and
//! again without it, and all without Landlock, so that they test only this layer.

mod files;
mod links;
mod races;

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

/// `ws` is the workspace. The directory `out` next to it contains a canary.
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
        let open = || Workspace::open_root(&self.ws(""), Vec::new()).unwrap();
        [open(), open().without_openat2()]
    }

    /// Asserts that nothing outside the workspace has changed.
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

/// Swaps two names repeatedly until `work` returns or panics.
pub(crate) fn while_swapping(dir: &Path, one: &str, two: &str, work: impl FnOnce()) {
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
/// The minute only keeps a hang from blocking the other tests. It does not say how fast `work` should be.
#[track_caller]
pub(crate) fn returns<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || drop(sender.send(work())));
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it did not return within a minute"),
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
    let location = ws.locate(&path)?;
    let old = location.read_existing(LIMIT)?;
    location.replace(text.as_bytes(), old.as_ref(), &|_| Ok(()), &|_| Ok(()))
}
