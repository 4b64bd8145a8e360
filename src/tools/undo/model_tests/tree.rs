//! A tree of files in memory, and what a command does to one on disk.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Dir(u32),
    File(u32, Vec<u8>),
    Link(PathBuf),
}

/// One thing that a command does.
pub(super) enum Step {
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
    SetMode(PathBuf, u32),
    Overwrite(PathBuf, Vec<u8>),
    Append(PathBuf, Vec<u8>),
    Make(PathBuf, Node),
}

impl Step {
    pub(super) fn carry_out(&self, root: &Path) {
        let at = |path: &Path| root.join(path);
        match self {
            Self::Remove(path) if fs::symlink_metadata(at(path)).unwrap().is_dir() => {
                fs::remove_dir_all(at(path)).unwrap();
            }
            Self::Remove(path) => fs::remove_file(at(path)).unwrap(),
            Self::Rename(from, to) => fs::rename(at(from), at(to)).unwrap(),
            Self::SetMode(path, mode) => {
                fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)).unwrap();
            }
            Self::Overwrite(path, content) => fs::write(at(path), content).unwrap(),
            Self::Append(path, text) => {
                fs::File::options().append(true).open(at(path)).unwrap().write_all(text).unwrap();
            }
            Self::Make(path, Node::Dir(mode)) => fs::DirBuilder::new().mode(*mode).create(at(path)).unwrap(),
            Self::Make(path, Node::Link(target)) => symlink(target, at(path)).unwrap(),
            Self::Make(path, Node::File(mode, content)) => {
                let mut options = fs::File::options();
                options.write(true).create_new(true).mode(*mode);
                options.open(at(path)).unwrap().write_all(content).unwrap();
            }
        }
    }
}

impl Node {
    fn is_same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dir(_), Self::Dir(_)) => true,
            (Self::File(_, one), Self::File(_, other)) => one == other,
            (one, other) => one == other,
        }
    }
}

pub(super) fn is_same_content(one: Option<&Node>, other: Option<&Node>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same_content(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// A tree without its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<PathBuf, Node>);

impl Tree {
    /// Reads the tree from disk.
    pub(super) fn read(root: &Path) -> Self {
        fn collect(root: &Path, dir: &Path, tree: &mut Tree) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let mode = meta.permissions().mode() & 0o7777;
                let node = if meta.is_symlink() {
                    Node::Link(fs::read_link(&path).unwrap())
                } else if meta.is_dir() {
                    collect(root, &path, tree);
                    Node::Dir(mode)
                } else {
                    Node::File(mode, fs::read(&path).unwrap())
                };
                tree.0.insert(path.strip_prefix(root).unwrap().to_owned(), node);
            }
        }
        let mut tree = Self::default();
        collect(root, root, &mut tree);
        tree
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Node> {
        self.0.get(path)
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || matches!(self.get(path), Some(Node::Dir(_)))
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.0.retain(|other, _| !other.starts_with(path));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        let moved: Vec<_> = self
            .0
            .iter()
            .filter(|(path, _)| path.starts_with(from))
            .map(|(p, n)| (p.clone(), n.clone()))
            .collect();
        self.remove(from);
        for (path, node) in moved {
            let rest = path.strip_prefix(from).unwrap();
            // Joining an empty path would add a slash.
            let path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            self.0.insert(path, node);
        }
    }

    /// Does what `write_file` does. Returns false if it cannot.
    pub(super) fn write(&mut self, path: &Path, content: &[u8]) -> bool {
        let parent = path.parent().unwrap();
        let mut existing = parent;
        while !existing.as_os_str().is_empty() && self.get(existing).is_none() {
            existing = existing.parent().unwrap();
        }
        if !self.is_dir(existing) {
            return false;
        }
        let denied = match self.get(existing) {
            Some(Node::Dir(mode)) => !mode & 0o077,
            _ => 0o077,
        };
        let mode = match self.get(path) {
            Some(Node::File(mode, _)) => *mode,
            None => 0o644 & !denied,
            Some(_) => return false,
        };
        for dir in parent.ancestors().take_while(|dir| *dir != existing) {
            self.0.insert(dir.to_owned(), Node::Dir(0o700 | (0o755 & !denied)));
        }
        self.0.insert(path.to_owned(), Node::File(mode, content.to_vec()));
        true
    }
}
