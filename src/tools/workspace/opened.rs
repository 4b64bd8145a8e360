//! Opens files and directories whose mode keeps their owner out. A command can set such a mode, and what is in them is looked
//! at and restored all the same.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{self, Access, AtFlags, Mode, OFlags, RawMode},
    io::Errno,
};

use super::{Workspace, resolve::enter_dir};

/// To list a directory and to reach what is in it.
pub(super) const LOOK: Access = Access::READ_OK.union(Access::EXEC_OK);

/// A file or directory whose owner has more rights than its mode says until this is dropped. It then has its mode again.
#[derive(Debug)]
pub(in crate::tools) struct Opened {
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
