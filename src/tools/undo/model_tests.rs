//! Random sequences of edits, writes, commands and undos, compared with a model of the tree in memory.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::tests::TestUndo;
use crate::{
    core::{CallId, RunId},
    hostile_input::{Random, rounds},
    tools::tree::run_covered,
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Dir(u32),
    File(u32, Vec<u8>),
    Link(PathBuf),
}

/// A tree without its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tree(BTreeMap<PathBuf, Node>);

impl Tree {
    /// Reads the tree from disk.
    fn read(root: &Path) -> Self {
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

    fn get(&self, path: &Path) -> Option<&Node> {
        self.0.get(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || matches!(self.get(path), Some(Node::Dir(_)))
    }

    fn remove(&mut self, path: &Path) {
        self.0.retain(|other, _| !other.starts_with(path));
    }

    fn rename(&mut self, from: &Path, to: &Path) {
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
    fn write(&mut self, path: &Path, content: &[u8]) -> bool {
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

/// A test with the tree that the working directory should have.
struct Model {
    test: TestUndo,
    tree: Tree,
    random: Random,
    /// Makes every text another one.
    count: u32,
}

impl Model {
    fn path(&mut self) -> PathBuf {
        let depth = 1 + self.random.below(3);
        (0..depth).map(|_| ["a", "b", "c"][self.random.below(3)]).collect()
    }

    /// Returns a path at which there is something.
    fn existing(&mut self) -> Option<PathBuf> {
        let count = self.tree.0.len();
        (count > 0).then(|| self.tree.0.keys().nth(self.random.below(count)).unwrap().clone())
    }

    fn text(&mut self) -> String {
        self.count += 1;
        format!("x{}\n", self.count)
    }

    /// Makes one random call, on disk and in the model, if that is possible.
    fn call(&mut self) {
        match self.random.below(4) {
            0 => {
                let (path, text) = (self.path(), self.text());
                if !self.tree.write(&path, text.as_bytes()) {
                    return;
                }
                self.test.call("write_file", &json!({"path": path, "content": text}));
            }
            1 => self.edit(),
            _ => {
                let mut line = String::from("umask 077");
                for _ in 0..1 + self.random.below(4) {
                    if let Some(more) = self.command() {
                        line = format!("{line} && {more}");
                    }
                }
                self.run_command(&line);
            }
        }
    }

    fn edit(&mut self) {
        let Some(path) = self.existing() else { return };
        let new = self.text();
        let Some(Node::File(_, content)) = self.tree.0.get_mut(&path) else { return };
        let Ok(old) = String::from_utf8(content.clone()) else { return };
        let Some(line) = old.lines().next().filter(|line| !line.is_empty() && !line.contains('\0')) else {
            return;
        };
        let new = new.trim_end().to_owned();
        *content = old.replacen(line, &new, 1).into_bytes();
        if old.matches(line).count() > 1 {
            *content = old.into_bytes();
            return;
        }
        self.test.call("edit_file", &json!({"path": path, "old_str": line, "new_str": new}));
    }

    /// Returns a random command, after doing the same to the model.
    fn command(&mut self) -> Option<String> {
        let path = self.existing().filter(|_| self.random.below(3) > 0).unwrap_or_else(|| self.path());
        let shown = path.display();
        let free = self.tree.get(&path).is_none() && self.tree.is_dir(path.parent()?);
        let text = self.text();
        match (self.random.below(7), self.tree.get(&path).cloned()) {
            (0, Some(_)) => {
                self.tree.remove(&path);
                Some(format!("rm -rf {shown}"))
            }
            (1, Some(_)) => {
                let to = self.path();
                if self.tree.get(&to).is_some() || !self.tree.is_dir(to.parent()?) || to.starts_with(&path) {
                    return None;
                }
                self.tree.rename(&path, &to);
                Some(format!("mv {shown} {}", to.display()))
            }
            (2, Some(Node::Dir(_) | Node::File(..))) => {
                let mode = [0o600, 0o640, 0o755, 0o700][self.random.below(4)];
                let mode = match self.tree.0.get_mut(&path)? {
                    Node::Dir(old) => {
                        *old = mode | 0o700;
                        mode | 0o700
                    }
                    Node::File(old, _) => {
                        *old = mode;
                        mode
                    }
                    Node::Link(_) => return None,
                };
                Some(format!("chmod {mode:o} {shown}"))
            }
            // The same number of bytes in the same file, so that only its times change.
            (3, Some(Node::File(mode, old))) => {
                let mut content = old;
                content.iter_mut().for_each(|byte| *byte = b'0' + byte.wrapping_add(1) % 10);
                let written = String::from_utf8(content.clone()).unwrap();
                self.tree.0.insert(path.clone(), Node::File(mode, content));
                Some(format!("printf %s '{written}' > {shown}"))
            }
            (4, Some(Node::File(mode, mut content))) => {
                content.extend_from_slice(text.as_bytes());
                self.tree.0.insert(path.clone(), Node::File(mode, content));
                Some(format!("printf '{}' >> {shown}", text.replace('\n', "\\n")))
            }
            (5, Some(Node::Dir(_))) => {
                self.tree.remove(&path);
                self.tree.0.insert(path.clone(), Node::File(0o600, b"\0\xff".to_vec()));
                Some(format!("rm -rf {shown} && printf '\\000\\377' > {shown}"))
            }
            (5, Some(_)) => {
                self.tree.remove(&path);
                self.tree.0.insert(path.clone(), Node::Dir(0o700));
                Some(format!("rm {shown} && mkdir {shown}"))
            }
            (6, None) if free => {
                let target = ["a", "../b", "/etc/passwd", "missing"][self.random.below(4)];
                self.tree.0.insert(path.clone(), Node::Link(target.into()));
                Some(format!("ln -s {target} {shown}"))
            }
            (_, None) if free => {
                self.tree.0.insert(path.clone(), Node::Dir(0o700));
                Some(format!("mkdir {shown}"))
            }
            _ => None,
        }
    }

    fn run_command(&mut self, line: &str) {
        self.test.calls += 1;
        let id = CallId::new(format!("call_{}", self.test.calls));
        let work_dir = self.test.work_dir.for_call(&id, "run_command");
        let root = self.test.file("");
        let status =
            run_covered(&work_dir, |_| Command::new("sh").args(["-c", line]).current_dir(root).status());
        assert!(status.unwrap().unwrap().success(), "{line}");
    }

    /// Returns true if the last run or undo has recorded anything.
    fn has_entry(&self) -> bool {
        self.test.journal.read(&self.test.run).is_ok()
    }

    fn check(&self, after: &str) {
        let now = Tree::read(&self.test.file(""));
        assert_eq!(now, self.tree, "after {after}");
    }
}

/// Checks one of four parts, which run at the same time.
fn check_sequences(part: usize) {
    let count = rounds(200, 10_000) / 4;
    for seed in part * count..(part + 1) * count {
        check_sequence(seed as u64 + 1);
    }
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_1() {
    check_sequences(0);
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_2() {
    check_sequences(1);
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_3() {
    check_sequences(2);
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_4() {
    check_sequences(3);
}

/// A path that the run made and removed again is behind a link that was there before the run.
#[test]
fn a_path_behind_a_link_that_has_nothing_to_take_back_is_passed_over() {
    check_sequence(6890);
}

fn check_sequence(seed: u64) {
    let mut model =
        Model { test: TestUndo::new(), tree: Tree::default(), random: Random::new(seed), count: 0 };
    let outside = model.test.file("../outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "outside").unwrap();
    fs::set_permissions(model.test.file(""), fs::Permissions::from_mode(0o700)).unwrap();
    // The runs that were not taken back, and the undos after the last run, with the tree before each.
    let mut runs: Vec<(RunId, Tree)> = Vec::new();
    let mut undos: Vec<(RunId, Tree)> = Vec::new();
    for step in 0..6 {
        let what = match model.random.below(3) {
            0 if !undos.is_empty() => {
                let (undo, before) = undos.pop().unwrap();
                let now = std::mem::replace(&mut model.tree, before);
                assert_eq!(model.test.undo(&undo), [], "seed {seed}");
                // The undo of the undo can be taken back as the run could be.
                if model.has_entry() {
                    runs.push((model.test.run.clone(), now));
                }
                "an undo of an undo"
            }
            1 if !runs.is_empty() => {
                let (run, before) = runs.pop().unwrap();
                let now = std::mem::replace(&mut model.tree, before);
                assert_eq!(model.test.undo(&run), [], "seed {seed}");
                if model.has_entry() {
                    undos.push((model.test.run.clone(), now));
                }
                "an undo"
            }
            _ => {
                undos.clear();
                let before = model.tree.clone();
                model.test.begin_run(None);
                let run = model.test.run.clone();
                for _ in 0..1 + model.random.below(4) {
                    model.call();
                }
                if model.has_entry() {
                    runs.push((run, before));
                }
                "a run"
            }
        };
        model.check(&format!("{what}, step {step} of seed {seed}"));
    }
    assert_eq!(fs::read(outside.join("f")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
