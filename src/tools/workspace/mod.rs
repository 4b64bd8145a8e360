//! The files that tools may reach: everything beneath one open directory, and nothing else.
//!
//! A path is never checked first and used later, because it could change in between. For reads, the
//! kernel resolves the path beneath the directory (`openat2` with `RESOLVE_BENEATH`). For writes, and for
//! reads on a kernel without `openat2`, the path is walked one name at a time (see `resolve`).

mod error;
mod path;
mod read;
mod resolve;
#[cfg(test)]
pub(super) mod tests;
mod write_target;

pub use error::FileError;
pub use path::InnerPath;
pub(super) use write_target::{ExistingFile, WriteTarget};

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{self, Mode, OFlags},
    io::Errno,
};

use resolve::{HANDLE, MissingParents};

/// A directory and everything in it. It holds an open handle, so the directory may be renamed meanwhile.
pub struct Workspace {
    root: OwnedFd,
    /// The absolute paths under which the root is known. They are needed for absolute paths from the model.
    absolute_names: Vec<String>,
    has_openat2: bool,
}

impl Workspace {
    pub(super) fn open_root(dir: &Path) -> rustix::io::Result<Self> {
        let root = fs::open(dir, HANDLE, Mode::empty())?;
        let mut names: Vec<String> = dir.to_str().map(str::to_owned).into_iter().collect();
        names.extend(absolute_name_of(root.as_fd()).filter(|real| !names.contains(real)));
        names.retain(|name| name != "/");
        let has_openat2 = open_beneath(root.as_fd(), ".", HANDLE).is_ok();
        Ok(Self { root, absolute_names: names, has_openat2 })
    }

    /// Checks a path that the model gave. Nothing is opened.
    ///
    /// # Errors
    ///
    /// [`FileError::BadPath`] if the path is empty, is too long, has control characters or leads out of
    /// the root by its `..` parts; [`FileError::Directory`] if it ends with `/` or is the root itself.
    pub fn path(&self, given: &str) -> Result<InnerPath, FileError> {
        InnerPath::parse(given, &self.absolute_names)
    }

    /// Splits a glob pattern into its parts, which are checked like those of a path.
    pub(super) fn pattern_parts<'a>(&self, given: &'a str) -> Result<Vec<&'a str>, &'static str> {
        path::split_path(given, &self.absolute_names)
    }

    /// Opens a regular file for reading. Links are followed if they do not lead out of the workspace.
    ///
    /// # Errors
    ///
    /// Any [`FileError`] about reading.
    pub fn open(&self, path: &InnerPath) -> Result<File, FileError> {
        let path = path.as_str();
        let fd = self.open_with(path, read::READ_FLAGS)?;
        read::require_regular(fd, path).map(|(file, _)| file)
    }

    /// Opens a directory for listing. `path` has no `.` and no `..`; the empty path is the root.
    pub(super) fn open_dir(&self, path: &str) -> Result<OwnedFd, FileError> {
        let path = if path.is_empty() { "." } else { path };
        self.open_with(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
    }

    fn open_with(&self, path: &str, flags: OFlags) -> Result<OwnedFd, FileError> {
        let opened = if self.has_openat2 {
            open_beneath(self.root.as_fd(), path, flags)
        } else if path == "." {
            fs::openat(&self.root, ".", flags, Mode::empty())
        } else {
            let found = resolve::resolve(self.root.as_fd(), path, MissingParents::Leave)?;
            let Some(dir) = found.dir else { return Err(FileError::Missing(path.to_owned())) };
            fs::openat(dir, &*found.name, flags | OFlags::NOFOLLOW, Mode::empty())
        };
        opened.map_err(|errno| read::open_error(errno, path))
    }

    /// Finds where a write to `path` would go. Changes nothing.
    ///
    /// # Errors
    ///
    /// A [`FileError`] if the path leads out of the workspace or cannot be followed.
    pub fn locate(&self, path: &InnerPath) -> Result<WriteTarget, FileError> {
        let found = resolve::resolve(self.root.as_fd(), path.as_str(), MissingParents::Leave)?;
        Ok(WriteTarget::new(found, path.as_str()))
    }

    /// Like [`Workspace::locate`], but creates missing parent directories. Their mode is 0755 without the
    /// bits that their own parent denies to group and others.
    ///
    /// # Errors
    ///
    /// As for [`Workspace::locate`], and a [`FileError::Io`] if a directory cannot be created.
    pub fn locate_creating_parents(&self, path: &InnerPath) -> Result<WriteTarget, FileError> {
        let found = resolve::resolve(self.root.as_fd(), path.as_str(), MissingParents::Create)?;
        Ok(WriteTarget::new(found, path.as_str()))
    }

    /// Returns the absolute paths under which the root is known.
    pub(super) fn absolute_names(&self) -> &[String] {
        &self.absolute_names
    }

    #[cfg(target_os = "linux")]
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    #[cfg(test)]
    pub(super) fn without_openat2(mut self) -> Self {
        self.has_openat2 = false;
        self
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;

    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match fs::openat2(root, path, flags, Mode::empty(), rules) {
            // A directory on the path was renamed meanwhile, so the kernel could not be certain.
            Err(Errno::AGAIN) if tries < 16 => tries += 1,
            opened => return opened,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_: BorrowedFd<'_>, _: &str, _: OFlags) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

#[cfg(target_os = "linux")]
fn absolute_name_of(root: BorrowedFd<'_>) -> Option<String> {
    use std::os::fd::AsRawFd;

    let link = format!("/proc/self/fd/{}", root.as_raw_fd());
    fs::readlink(link, Vec::new()).ok()?.into_string().ok()
}

#[cfg(not(target_os = "linux"))]
fn absolute_name_of(_: BorrowedFd<'_>) -> Option<String> {
    None
}
