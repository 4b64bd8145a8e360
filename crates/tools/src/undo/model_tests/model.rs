//! Random calls, done on disk and to a tree in memory.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::json;

use kontekst_core::CallId;

use super::tree::{Node, Step, Tree};

use crate::{
    hostile_input::Random,
    tree::{TreeBefore, run_covered},
    undo::tests::TestUndo,
};

/// A test with the tree that the working directory should have.
pub(super) struct Model {
    pub(super) test: TestUndo,
    pub(super) tree: Tree,
    pub(super) random: Random,
    /// Makes every text another one.
    count: u32,
}

impl Model {
    /// Begins with an empty directory.
    pub(super) fn new(seed: u64) -> Self {
        let model =
            Self { test: TestUndo::in_memory(), tree: Tree::default(), random: Random::new(seed), count: 0 };
        fs::set_permissions(model.test.file(""), fs::Permissions::from_mode(0o700)).unwrap();
        model
    }

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
    pub(super) fn call(&mut self) {
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
                let mut steps = Vec::new();
                for _ in 0..1 + self.random.below(4) {
                    steps.extend(self.command().unwrap_or_default());
                }
                self.run_command(&steps);
            }
        }
    }

    fn edit(&mut self) {
        let Some(path) = self.existing().filter(|path| self.tree.is_open(path)) else { return };
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

    /// Returns the steps of a random command, after doing the same to the model.
    fn command(&mut self) -> Option<Vec<Step>> {
        let path = self.existing().filter(|_| self.random.below(3) > 0).unwrap_or_else(|| self.path());
        let free = self.tree.get(&path).is_none() && self.tree.is_dir(path.parent()?);
        let text = self.text().into_bytes();
        Some(match (self.random.below(8), self.tree.get(&path).cloned()) {
            (0, Some(_)) => {
                self.tree.remove(&path);
                vec![Step::Remove(path)]
            }
            (1, Some(_)) => {
                let to = self.path();
                if self.tree.get(&to).is_some() || !self.tree.is_dir(to.parent()?) || to.starts_with(&path) {
                    return None;
                }
                self.tree.rename(&path, &to);
                vec![Step::Rename(path, to)]
            }
            (2, Some(node @ (Node::Dir(_) | Node::File(..)))) => {
                let mode = [0o600, 0o640, 0o755, 0o700, 0o500, 0o300, 0o001, 0o000][self.random.below(8)];
                let node = match node {
                    Node::File(_, content) => Node::File(mode, content),
                    _ => Node::Dir(mode),
                };
                self.tree.0.insert(path.clone(), node);
                vec![Step::SetMode(path, mode)]
            }
            // The same number of bytes in the same file, so that only its times change.
            (3, Some(Node::File(mode, mut content))) => {
                content.iter_mut().for_each(|byte| *byte = b'0' + byte.wrapping_add(1) % 10);
                self.tree.0.insert(path.clone(), Node::File(mode, content.clone()));
                vec![Step::Overwrite(path, content)]
            }
            (4, Some(Node::File(mode, mut content))) => {
                content.extend_from_slice(&text);
                self.tree.0.insert(path.clone(), Node::File(mode, content));
                vec![Step::Append(path, text)]
            }
            (5, Some(Node::Dir(_))) => {
                self.tree.remove(&path);
                vec![Step::Remove(path.clone()), self.make(path, Node::File(0o600, b"\0\xff".to_vec()))]
            }
            (5, Some(_)) => {
                self.tree.remove(&path);
                vec![Step::Remove(path.clone()), self.make(path, Node::Dir(0o700))]
            }
            (6, None) if free => {
                let target = ["a", "../b", "/etc/passwd", "missing"][self.random.below(4)];
                vec![self.make(path, Node::Link(target.into()))]
            }
            (7, Some(node @ Node::File(..))) => {
                let to = self.path();
                if self.tree.get(&to).is_some() || !self.tree.is_dir(to.parent()?) {
                    return None;
                }
                self.tree.0.insert(to.clone(), node);
                vec![Step::Link(path, to)]
            }
            (_, None) if free => vec![self.make(path, Node::Dir(0o700))],
            _ => return None,
        })
    }

    fn make(&mut self, path: PathBuf, node: Node) -> Step {
        self.tree.0.insert(path.clone(), node.clone());
        Step::Make(path, node)
    }

    fn run_command(&mut self, steps: &[Step]) {
        self.test.calls += 1;
        let id = CallId::new(format!("call_{}", self.test.calls));
        let work_dir = self.test.work_dir.for_call(&id, "run_command");
        let root = self.test.file("");
        // Rules that the command writes count for nothing. Somebody else removes them.
        let ignore_all = (self.random.below(3) == 0).then(|| root.join(".gitignore"));
        let run = |_: TreeBefore<'_>| {
            steps.iter().for_each(|step| step.carry_out(&root));
            ignore_all.iter().for_each(|file| fs::write(file, "*\n").unwrap());
        };
        run_covered(&work_dir, run, |(), _| ()).unwrap();
        ignore_all.iter().for_each(|file| fs::remove_file(file).unwrap());
    }

    /// Changes something without a record, as another program.
    pub(super) fn edit_by_others(&mut self) {
        let root = self.test.file("");
        self.command().unwrap_or_default().iter().for_each(|step| step.carry_out(&root));
    }

    /// Returns true if the last run or undo has recorded anything.
    pub(super) fn has_entry(&self) -> bool {
        self.test.journal.read(&self.test.run).is_ok()
    }

    pub(super) fn check(&self, after: &str) {
        let now = Tree::read(&self.test.file(""));
        assert_eq!(now, self.tree, "after {after}");
    }
}
