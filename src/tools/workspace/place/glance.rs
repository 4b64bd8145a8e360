//! Looks at a place without reading it, and moves what is there. The cleaning after a command needs no more.

use std::{
    os::fd::AsFd as _,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{self, AtFlags, FileType, Mode},
    io::Errno,
};

use super::{Found, Place, PlaceError, Workspace, enter_dir, identity, names};
use crate::journal::FileState;

impl Place {
    /// Looks at what is there and reads no content: a file counts as [`FileState::Other`].
    ///
    /// # Errors
    ///
    /// [`PlaceError::Io`].
    pub(in crate::tools) fn glance(&self) -> Result<Found, PlaceError> {
        let stat = match self.stat() {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Found::missing()),
            Err(errno) => return Err(errno.into()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory | FileType::Symlink => self.look(0),
            _ => Ok(Found {
                state: FileState::Other,
                content: None,
                names: names(&stat),
                identity: Some(identity(&stat)),
            }),
        }
    }

    /// Returns the time at which the file was made or, where the file system does not store it, that of its last change. A
    /// program can set neither.
    pub(in crate::tools) fn made_at(&self) -> Option<SystemTime> {
        let time = |seconds: i64, nanos: i64| {
            let (seconds, nanos) = (u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
            Some(UNIX_EPOCH + Duration::new(seconds, nanos))
        };
        #[cfg(target_os = "linux")]
        {
            let wanted = fs::StatxFlags::BTIME;
            let stat = fs::statx(&self.dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
            if stat.stx_mask & wanted.bits() != 0 {
                return time(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec.into());
            }
        }
        let (seconds, nanos) = self.glance().ok()?.stamp()?.changed;
        time(seconds, nanos)
    }

    /// Gives what is there another place, unless something is there.
    ///
    /// # Errors
    ///
    /// [`PlaceError::Io`], also on a system that cannot do this in one step.
    pub(in crate::tools) fn rename_to(&self, other: &Self) -> Result<(), PlaceError> {
        #[cfg(target_os = "linux")]
        return Ok(fs::renameat_with(
            &self.dir,
            &*self.name,
            &other.dir,
            &*other.name,
            fs::RenameFlags::NOREPLACE,
        )?);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = other;
            Err(Errno::NOSYS.into())
        }
    }
}

impl Workspace {
    /// Lets the owner list and change the directory of a real path, and returns the mode that it had. No link is followed.
    ///
    /// # Errors
    ///
    /// Any [`PlaceError`] but those about changes.
    pub(in crate::tools) fn open_up(&self, path: &Path) -> Result<u32, PlaceError> {
        self.set_dir_mode(path, Mode::RWXU.as_raw_mode())
    }

    /// Sets the permission bits of the directory of a real path, and returns those that it had.
    ///
    /// # Errors
    ///
    /// As [`Workspace::open_up`].
    #[cfg(target_os = "linux")]
    pub(in crate::tools) fn set_dir_mode(&self, path: &Path, mode: u32) -> Result<u32, PlaceError> {
        use std::os::fd::AsRawFd as _;
        let inner = match self.place(path) {
            _ if path.as_os_str().is_empty() => None,
            place => {
                let place = place?.ok_or(Errno::NOENT)?;
                Some(enter_dir(place.dir.as_fd(), &place.name)?)
            }
        };
        // The mode of a handle that only names a directory is set through its path.
        let handle = inner.as_ref().unwrap_or(&self.root);
        let before = fs::fstat(handle)?.st_mode & 0o7777;
        fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::from_raw_mode(mode))?;
        Ok(before)
    }

    #[cfg(not(target_os = "linux"))]
    pub(in crate::tools) fn set_dir_mode(&self, _: &Path, _: u32) -> Result<u32, PlaceError> {
        Err(Errno::NOSYS.into())
    }
}
