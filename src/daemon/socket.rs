//! The daemon's socket file: whether it is still ours.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::PathBuf, thread};

use tokio::sync::oneshot;

/// Bytes of the stack that watching takes, and some more for a log line.
const STACK: usize = 128 * 1024;

/// A socket file, known by what no other file at its path can have.
#[derive(Clone, Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// The file that has just been bound.
    pub(super) fn bound_at(path: PathBuf) -> io::Result<Self> {
        let found = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: found.dev(), inode: found.ino() })
    }

    /// Nobody has deleted it or put another in its place.
    pub(super) fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }

    /// Deletes it, if it is still ours: at its path may be that of a daemon that came after us.
    pub(super) fn remove(&self) {
        if self.is_there() {
            fs::remove_file(&self.path).ok();
        }
    }

    /// Resolves when it is gone. Costs a thread that sleeps, and no time, while it is there.
    pub(super) async fn removed(&self) {
        let (tell, told) = oneshot::channel();
        let file = self.clone();
        let watch = move || match file.watch() {
            Ok(()) => drop(tell.send(())),
            Err(error) => tracing::warn!(%error, "the socket file is not watched"),
        };
        // Not one of the runtime's: those are waited for at the end.
        let started = thread::Builder::new().name("socket-watch".to_owned()).stack_size(STACK).spawn(watch);
        if started.is_err() || told.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    #[cfg(target_os = "linux")]
    fn watch(&self) -> io::Result<()> {
        use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

        let events = inotify::init(CreateFlags::CLOEXEC)?;
        let leaving =
            WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let dir = self.path.parent().unwrap_or(&self.path);
        inotify::add_watch(&events, dir, leaving | WatchFlags::ONLYDIR)?;
        let mut block = [0_u8; 4096];
        while self.is_there() {
            // What happened does not matter, only that something did.
            rustix::io::retry_on_intr(|| rustix::io::read(&events, &mut block))?;
        }
        Ok(())
    }

    /// Where nothing tells, it is looked for once a minute.
    #[cfg(not(target_os = "linux"))]
    fn watch(&self) -> io::Result<()> {
        while self.is_there() {
            thread::sleep(std::time::Duration::from_secs(60));
        }
        Ok(())
    }
}
