//! Replaces a file that an earlier version wrote, if nobody has changed it since.

use std::{fs, io, path::Path};

use sha2::{Digest as _, Sha256};

use super::{
    PathError,
    file::{read_text, write_atomic},
};
use crate::core::hex;

/// The longest file that is compared, in bytes. No version has written a longer one.
const MAX_BYTES: u64 = 64 << 10;

/// Replaces the file by `text` if it is, byte for byte, what an earlier version wrote. Returns true if it did.
///
/// `written` has the SHA-256 of every text that a version wrote, in hexadecimal; the last one is that of `text`. A
/// symlink is somebody's own arrangement and stays as it is, as does a file that cannot be read.
///
/// # Errors
///
/// [`PathError`] if the new file cannot be written; the old one is then still there.
pub(super) fn replace(path: &Path, text: &str, written: &[&str]) -> Result<bool, PathError> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let Some(found) = is_file.then(|| read_text(path, MAX_BYTES).ok()).flatten() else { return Ok(false) };
    let [earlier @ .., _] = written else { return Ok(false) };
    if !earlier.contains(&&*sha256(&found)) {
        return Ok(false);
    }
    match write_atomic(path, text.as_bytes()) {
        Ok(()) => Ok(true),
        // The defaults of the earlier version are as good in a data directory that cannot be written.
        Err(error) if error.source.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the SHA-256 of a text in hexadecimal.
pub(super) fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text))
}
