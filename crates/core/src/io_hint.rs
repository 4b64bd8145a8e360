//! The remedies for errors of the file system.

use std::io::{Error, ErrorKind};

/// Returns what to do about an I/O error, if its kind alone says that.
pub fn io_hint(error: &Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("free some disk space and try again"),
        ErrorKind::PermissionDenied => Some(
            "run kontekst as the user who owns the file, or set KONTEKST_HOME to a directory that you own",
        ),
        ErrorKind::ReadOnlyFilesystem => Some("set KONTEKST_HOME to a directory on a writable file system"),
        _ => None,
    }
}
