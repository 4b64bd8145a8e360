//! The daemon's socket file, and a watch that notices its removal.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::PathBuf,
    thread,
};

use tokio::sync::oneshot;

/// The stack of the watching thread, in bytes: its read buffer, and room to format a log line.
const STACK: usize = 128 * 1024;

/// A socket file, identified by its device and inode, which differ for another file at the same path.
#[derive(Clone, Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// A service manager listens on it as well, and keeps it when the daemon stops.
    is_kept: bool,
}

impl SocketFile {
    /// Remembers the file at `path`, which has just been bound.
    pub(super) fn bound_at(path: PathBuf) -> io::Result<Self> {
        let found = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: found.dev(), inode: found.ino(), is_kept: false })
    }

    /// Remembers the file at `path`, on which a service manager has begun to listen, and keeps other users out of it.
    pub(super) fn handed_over(path: PathBuf) -> io::Result<Self> {
        let file = Self { is_kept: true, ..Self::bound_at(path)? };
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// Returns true if the file has been neither removed nor replaced.
    pub(super) fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }

    /// Removes the file, but neither one that a later daemon has put in its place nor one that was handed over.
    pub(super) fn remove(&self) {
        if !self.is_kept && self.is_there() {
            fs::remove_file(&self.path).ok();
        }
    }

    /// Resolves when the file is removed or replaced. Until then a thread sleeps in the kernel.
    pub(super) async fn removed(&self) {
        let (sender, removed) = oneshot::channel();
        let file = self.clone();
        let watch = move || match file.watch() {
            Ok(()) => drop(sender.send(())),
            Err(error) => tracing::warn!(%error, "the socket file is not watched"),
        };
        // This is not a thread of the runtime, because the runtime waits for its threads when it shuts down.
        let started = thread::Builder::new().name("socket-watch".to_owned()).stack_size(STACK).spawn(watch);
        if started.is_err() || removed.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    #[cfg(target_os = "linux")]
    fn watch(&self) -> io::Result<()> {
        use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

        let events = inotify::init(CreateFlags::CLOEXEC)?;
        let removals =
            WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let dir = self.path.parent().unwrap_or(&self.path);
        inotify::add_watch(&events, dir, removals | WatchFlags::ONLYDIR)?;
        let mut block = [0_u8; 4096];
        while self.is_there() {
            // The events themselves do not matter: the loop looks at the file again.
            rustix::io::retry_on_intr(|| rustix::io::read(&events, &mut block))?;
        }
        Ok(())
    }

    /// Other systems have no inotify, so this looks for the file once a minute.
    #[cfg(not(target_os = "linux"))]
    fn watch(&self) -> io::Result<()> {
        while self.is_there() {
            thread::sleep(std::time::Duration::from_secs(60));
        }
        Ok(())
    }
}
