//! Files and directories whose mode keeps their owner out. A command can set such a mode, and what is in them is looked at
//! and restored all the same.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{self, Access, AtFlags, Mode, OFlags, RawMode},
    io::Errno,
};

use super::{
    Found, Place, PlaceError, Workspace,
    resolve::{HANDLE, enter_dir},
};
use crate::journal::FileState;

/// To list a directory and to reach what is in it.
const LOOK: Access = Access::READ_OK.union(Access::EXEC_OK);

/// A file or directory whose owner has more rights than its mode says until this is dropped. It then has its mode again.
#[derive(Debug)]
pub(in crate::tools) struct Opened {
    handle: OwnedFd,
    /// The mode that it has when this is dropped.
    mode: RawMode,
    /// The mode meanwhile. If it is another one then, somebody else has set that, and it stays.
    meanwhile: RawMode,
}

impl Opened {
    /// Adds rights to what the handle names.
    ///
    /// # Errors
    ///
    /// [`Errno::PERM`] if it belongs to another user.
    pub(super) fn add(handle: OwnedFd, rights: RawMode) -> rustix::io::Result<Self> {
        let mode = mode_of(&handle)?;
        set_mode_of(handle.as_fd(), mode | rights)?;
        Ok(Self { handle, mode, meanwhile: mode | rights })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if mode_of(&self.handle) == Ok(self.meanwhile) {
            set_mode_of(self.handle.as_fd(), self.mode).ok(); // it was set a moment ago
        }
    }
}

/// The directories above one path after another, each open to its owner while the paths are in it. Holds as many handles as a
/// path has names, if the paths come in the order of their names or in the opposite one.
#[derive(Debug)]
pub(in crate::tools) struct OpenedDirs {
    access: Access,
    dirs: BTreeMap<PathBuf, Option<Opened>>,
}

impl OpenedDirs {
    pub(in crate::tools) fn to_look() -> Self {
        Self { access: LOOK, dirs: BTreeMap::new() }
    }

    pub(in crate::tools) fn to_change() -> Self {
        Self { access: LOOK.union(Access::WRITE_OK), dirs: BTreeMap::new() }
    }

    /// Opens the directories above a path. See [`OpenedDirs::enter`].
    pub(in crate::tools) fn go_to(&mut self, workspace: &Workspace, path: &Path) {
        if let Some(parent) = path.parent() {
            self.enter(workspace, parent);
        }
    }

    /// Opens a directory and those above it, and gives all others their own modes again.
    pub(in crate::tools) fn enter(&mut self, workspace: &Workspace, dir: &Path) {
        if self.dirs.contains_key(dir) {
            return;
        }
        self.dirs.retain(|other, _| dir.starts_with(other));
        let mut missing: Vec<&Path> = dir.ancestors().collect();
        while let Some(dir) = missing.pop() {
            if !self.dirs.contains_key(dir) {
                self.dirs.insert(dir.to_owned(), workspace.open_up(dir, self.access));
            }
        }
    }

    /// Opens the regular file of a real path for reading. Returns `None` if there is none.
    pub(in crate::tools) fn open_file(&mut self, workspace: &Workspace, path: &Path) -> Option<File> {
        self.go_to(workspace, path);
        workspace.open_real(path)
    }

    /// Looks at a path. A directory that is missing on the way counts as a missing file.
    ///
    /// # Errors
    ///
    /// Those of [`Workspace::place`] and [`Place::look`].
    pub(in crate::tools) fn look(
        &mut self,
        workspace: &Workspace,
        path: &Path,
        limit: u64,
    ) -> Result<Found, PlaceError> {
        self.go_to(workspace, path);
        let Some(place) = workspace.place(path)? else { return Ok(Found::missing()) };
        let mut found = place.look(limit)?;
        if let (FileState::Dir { mode }, Some(Some(opened))) = (&mut found.state, self.dirs.get(path)) {
            *mode = opened.mode;
        }
        Ok(found)
    }

    /// Sets the mode that a directory has when it is left. Returns false if it has its own mode already.
    pub(in crate::tools) fn set_own_mode(&mut self, path: &Path, mode: u32) -> bool {
        let opened = self.dirs.get_mut(path).and_then(Option::as_mut);
        opened.map(|opened| opened.mode = mode & 0o7777).is_some()
    }

    /// Looks at the path anew when something in it is next, because it has changed.
    pub(in crate::tools) fn forget(&mut self, path: &Path) {
        self.dirs.remove(path);
    }
}

impl Workspace {
    /// Lets the owner use the directory of a real path, if its mode keeps him from that. `None` if nothing had to be done or
    /// nothing can be.
    pub(in crate::tools) fn open_up(&self, path: &Path, access: Access) -> Option<Opened> {
        let handle = self.place(path).ok()??.handle().ok()?;
        let is_dir = fs::fstat(&handle).is_ok_and(|stat| fs::FileType::from_raw_mode(stat.st_mode).is_dir());
        let denied = is_dir && lacks(&handle, access);
        if denied { Opened::add(handle, access.bits() << 6).ok() } else { None }
    }

    /// Opens the root to list it. See [`open_listed`].
    pub(in crate::tools) fn list_root(&self) -> rustix::io::Result<(OwnedFd, Option<Opened>)> {
        list(rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?)
    }

    /// Returns true if the mode of the root lets this user look into it.
    pub(in crate::tools) fn can_look(&self) -> bool {
        !lacks(&self.root, LOOK)
    }

    /// Returns the permission bits of the root.
    pub(in crate::tools) fn root_mode(&self) -> rustix::io::Result<u32> {
        mode_of(&self.root)
    }

    /// Sets the permission bits of the root, also if its mode keeps the owner out.
    pub(in crate::tools) fn set_root_mode(&self, mode: u32) -> rustix::io::Result<()> {
        set_mode_of(self.root.as_fd(), mode)
    }
}

/// Opens a directory to list it and to reach what is in it, both of which its owner may until the second value is dropped. A
/// link is not followed.
pub(in crate::tools) fn open_listed(
    dir: BorrowedFd<'_>,
    name: &OsStr,
) -> rustix::io::Result<(OwnedFd, Option<Opened>)> {
    list(enter_dir(dir, name)?)
}

fn list(handle: OwnedFd) -> rustix::io::Result<(OwnedFd, Option<Opened>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if !lacks(&handle, LOOK) {
        return Ok((fs::openat(&handle, ".", flags, Mode::empty())?, None));
    }
    let opened = Opened::add(handle, 0o500)?;
    Ok((fs::openat(&opened.handle, ".", flags, Mode::empty())?, Some(opened)))
}

fn lacks(dir: &OwnedFd, access: Access) -> bool {
    fs::accessat(dir, ".", access, AtFlags::EACCESS) == Err(Errno::ACCESS)
}

impl Place {
    /// Returns a handle that only names what is there.
    pub(super) fn handle(&self) -> Result<OwnedFd, PlaceError> {
        if self.name == "." {
            return Ok(rustix::io::fcntl_dupfd_cloexec(&self.dir, 0)?);
        }
        let flags = HANDLE.difference(OFlags::DIRECTORY) | OFlags::NOFOLLOW;
        Ok(fs::openat(&self.dir, &*self.name, flags, Mode::empty())?)
    }
}

fn mode_of(handle: impl AsFd) -> rustix::io::Result<RawMode> {
    Ok(fs::fstat(handle)?.st_mode & 0o7777)
}

/// Sets the permission bits of what the handle names.
#[cfg(target_os = "linux")]
pub(super) fn set_mode_of(handle: BorrowedFd<'_>, mode: RawMode) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    // The mode of a handle that only names something is set through its path.
    fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::from_raw_mode(mode))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn set_mode_of(handle: BorrowedFd<'_>, mode: RawMode) -> rustix::io::Result<()> {
    fs::fchmod(handle, Mode::from_raw_mode(mode))
}
