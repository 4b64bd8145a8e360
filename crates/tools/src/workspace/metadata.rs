//! Reads and sets the modification time and the extended attributes of files.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use rustix::{
    buffer::spare_capacity,
    fs::{self, Mode, RawMode, Timespec, Timestamps, UTIME_OMIT, XattrFlags},
    io::{Errno, Result},
};

use kontekst_store::journal::{Attribute, Metadata};

/// The most bytes of all names, and of one value, that Linux has.
const MAX_BYTES: usize = 64 << 10;
/// The most bytes of names and values of one file that are recorded. All files of a tree are recorded before a command.
const MAX_RECORDED: usize = 1024;

/// Returns what can be read of the metadata. Attributes that are too large are not known.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ by system")]
pub(super) fn read(file: &File) -> Metadata {
    let stat = fs::fstat(file).ok();
    let modified = stat.map(|stat| (stat.st_mtime as i64, stat.st_mtime_nsec as i64));
    Metadata { modified, attributes: attributes(file, MAX_RECORDED).ok() }
}

/// Sets the mode and what is known of the metadata. The mode of the file has to let its owner write, because attributes can be
/// set only then.
pub(super) fn set(file: &File, mode: RawMode, to: &Metadata) -> Result<()> {
    let set = to.attributes.as_ref().map_or(Ok(()), |attributes| set_attributes(file, attributes));
    fs::fchmod(file, Mode::from_raw_mode(mode & 0o7777))?;
    set?;
    let Some((tv_sec, tv_nsec)) = to.modified else { return Ok(()) };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    fs::futimens(file, &Timestamps { last_access, last_modification: Timespec { tv_sec, tv_nsec } })
}

/// Gives a file all attributes of another one, if there can be any.
pub(super) fn copy_attributes(from: &File, to: &File) -> Result<()> {
    attributes(from, usize::MAX).map_or(Ok(()), |attributes| set_attributes(to, &attributes))
}

fn set_attributes(file: &File, to: &[Attribute]) -> Result<()> {
    let old = attributes(file, usize::MAX)?;
    let gone = old.iter().filter(|old| to.iter().all(|new| new.name != old.name));
    gone.map(|old| &*old.name).try_for_each(|name| fs::fremovexattr(file, name))?;
    to.iter().try_for_each(|Attribute { name, value }| {
        fs::fsetxattr(file, &**name, value.as_bytes(), XattrFlags::empty())
    })
}

fn attributes(file: &File, limit: usize) -> Result<Vec<Attribute>> {
    let (mut list, mut left) = (Vec::with_capacity(MAX_BYTES), limit);
    fs::flistxattr(file, spare_capacity(&mut list))?;
    let names = list.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let read = |name: &[u8]| -> Result<Attribute> {
        let mut value = Vec::with_capacity(MAX_BYTES);
        fs::fgetxattr(file, name, spare_capacity(&mut value))?;
        left = left.checked_sub(name.len() + value.len()).ok_or(Errno::RANGE)?;
        Ok(Attribute { name: OsStr::from_bytes(name).to_owned(), value: OsString::from_vec(value) })
    };
    let mut attributes: Vec<Attribute> = names.map(read).collect::<Result<_>>()?;
    attributes.sort_unstable();
    Ok(attributes)
}
