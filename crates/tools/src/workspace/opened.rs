//! Opens files and directories whose mode keeps their owner out. A command can set such a mode, and what is in them is looked
//! at and restored all the same.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{self, Access, AtFlags, Mode, OFlags, RawMode},
    io::Errno,
};

use super::Workspace;

/// To list a directory and to reach what is in it.
pub(super) const LOOK: Access = Access::READ_OK.union(Access::EXEC_OK);

/// A file or directory whose owner has more rights than its mode says until this is dropped. It then has its mode again.
#[derive(Debug)]
pub(crate) struct Opened {
    handle: OwnedFd,
    /// The mode that it has when this is dropped.
    pub(super) mode: RawMode,
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

impl Workspace {
    /// Opens the root to list it, which its owner may until the second value is dropped.
    pub(super) fn list_root(&self) -> rustix::io::Result<(OwnedFd, Option<Opened>)> {
        let handle = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = if lacks(&handle, LOOK) { Some(Opened::add(handle, 0o500)?) } else { None };
        Ok((fs::openat(&self.root, ".", flags, Mode::empty())?, opened))
    }

    /// Returns true if the mode of the root lets this user look into it.
    pub(crate) fn can_look(&self) -> bool {
        !lacks(&self.root, LOOK)
    }

    /// Returns the permission bits of the root.
    pub(crate) fn root_mode(&self) -> rustix::io::Result<u32> {
        mode_of(&self.root)
    }
}

/// Returns true if the mode of the directory denies this user one of the rights.
pub(super) fn lacks(dir: &OwnedFd, access: Access) -> bool {
    fs::accessat(dir, ".", access, AtFlags::EACCESS) == Err(Errno::ACCESS)
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
