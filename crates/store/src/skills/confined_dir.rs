//! Opens files in one directory only. Symbolic links that lead out of it are refused.

use std::{
    fs::{self, File},
    io,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
};

/// An open directory.
pub(super) struct ConfinedDir {
    handle: OwnedFd,
    path: PathBuf,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

impl ConfinedDir {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, READ | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Returns the names of all entries. Names that are not UTF-8 are left out.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.path)?
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect()
    }

    /// Opens a file for reading. It never blocks, not even on a FIFO.
    pub(super) fn open_file(&self, path: &Path) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(&self.handle, path, READ, Mode::empty(), beneath) {
                // This is a kernel before 5.6, or a sandbox that does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => {}
                opened => return Ok(File::from(opened?)),
            }
        }
        self.open_without_links(path)
    }

    /// Opens a file without following any link, because no link is safe if the kernel cannot confine it.
    fn open_without_links(&self, path: &Path) -> io::Result<File> {
        let mut at = self.handle.try_clone()?;
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else { return Err(Errno::XDEV.into()) };
            let kind = if components.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() };
            at = rustix::fs::openat(&at, name, READ | OFlags::NOFOLLOW | kind, Mode::empty())?;
        }
        Ok(File::from(at))
    }
}

/// Describes an error of opening a file. The kernel reports a link that leads out with special error codes.
pub(super) fn describe_error(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::XDEV | Errno::LOOP) => "a link that leads out of the skills directory".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_do_not_lead_out_with_and_without_openat2() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("d")).unwrap();
        fs::write(root.join("d/f"), "in").unwrap();
        fs::write(outer.path().join("f"), "out").unwrap();
        symlink("../f", root.join("file")).unwrap();
        symlink("..", root.join("dir")).unwrap();
        symlink("/etc/passwd", root.join("absolute")).unwrap();
        let dir = ConfinedDir::open(&root).unwrap();
        for open in [ConfinedDir::open_file, ConfinedDir::open_without_links] {
            assert!(open(&dir, "d/f".as_ref()).is_ok());
            for out in ["file", "dir/f", "absolute", "../f"] {
                let error = open(&dir, out.as_ref()).unwrap_err();
                assert_ne!(error.kind(), io::ErrorKind::NotFound, "{out}");
            }
        }
    }
}
