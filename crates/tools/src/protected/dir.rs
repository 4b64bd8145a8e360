//! Judges many files of one directory, of whose path only the end is compared again for each of them.

use std::ffi::OsStr;

use super::{Access, class_of, index, normalized};

/// The number of names of a directory's own path that can belong to a pattern together with names in it: one less than
/// the longest pattern of the table has.
pub(super) const NAMES_ABOVE: usize = 2;

/// The names of a directory, for one kind of access to the files in it.
pub(crate) struct DirNames {
    access: Access,
    is_protected: bool,
    /// The ends of its paths that can belong to a pattern together with a name in it, all different. Their names are
    /// normalized.
    ends: Vec<Vec<String>>,
}

impl DirNames {
    /// `paths` are all paths under which the directory is known.
    pub(crate) fn new<'a>(paths: impl Iterator<Item = &'a str>, access: Access) -> Self {
        let (mut ends, mut is_protected) = (Vec::new(), false);
        for path in paths {
            // `x` stands for any file in it.
            is_protected |= class_of(&format!("{path}/x"), access).is_some();
            let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
            let end = &names[names.len().saturating_sub(NAMES_ABOVE)..];
            let end: Vec<String> = end.iter().map(|name| normalized(name)).collect();
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        Self { access, is_protected, ends }
    }

    /// Returns true if a file of this name is protected or, if it is a directory, all files in it. Where the name may
    /// stand for both, as a link does, it counts as a file.
    pub(super) fn protects_entry(&self, name: &OsStr, is_dir: bool) -> bool {
        let name = normalized(&name.to_string_lossy());
        self.is_protected || self.ends.iter().any(|end| index::protects_last(end, &name, is_dir, self.access))
    }

    /// Returns true if a person must approve the access to every file.
    pub(super) fn protects_all(&self) -> bool {
        self.is_protected
    }

    /// Returns true if a person must approve the access to the file of this name.
    pub(crate) fn protects(&self, name: &str) -> bool {
        // A pattern that ends above the file protects the whole directory.
        self.is_protected || {
            let name = normalized(name);
            self.ends.iter().any(|end| index::protects_last(end, &name, false, self.access))
        }
    }
}
