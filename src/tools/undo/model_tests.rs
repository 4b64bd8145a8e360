//! Random sequences of edits, writes, commands and undos, compared with a model of the tree in memory.
//!
//! The commands are done in this process, because what a shell does is the same and takes longer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{RestoreResult, tests::TestUndo};
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

/// One thing that a command does.
enum Step {
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
    SetMode(PathBuf, u32),
    Overwrite(PathBuf, Vec<u8>),
    Append(PathBuf, Vec<u8>),
    Make(PathBuf, Node),
}

impl Step {
    fn carry_out(&self, root: &Path) {
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
                let mut steps = Vec::new();
                for _ in 0..1 + self.random.below(4) {
                    steps.extend(self.command().unwrap_or_default());
                }
                self.run_command(&steps);
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

    /// Returns the steps of a random command, after doing the same to the model.
    fn command(&mut self) -> Option<Vec<Step>> {
        let path = self.existing().filter(|_| self.random.below(3) > 0).unwrap_or_else(|| self.path());
        let free = self.tree.get(&path).is_none() && self.tree.is_dir(path.parent()?);
        let text = self.text().into_bytes();
        Some(match (self.random.below(7), self.tree.get(&path).cloned()) {
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
                let mode = [0o600, 0o640, 0o755, 0o700][self.random.below(4)];
                let (mode, node) = match node {
                    Node::File(_, content) => (mode, Node::File(mode, content)),
                    _ => (mode | 0o700, Node::Dir(mode | 0o700)),
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
        run_covered(&work_dir, |_| steps.iter().for_each(|step| step.carry_out(&root))).unwrap();
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
fn check_sequences(part: usize, check: fn(u64)) {
    let count = rounds(100, 5_000) / 4;
    for seed in part * count..(part + 1) * count {
        check(seed as u64 + 1);
    }
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_1() {
    check_sequences(0, check_sequence);
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_2() {
    check_sequences(1, check_sequence);
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_3() {
    check_sequences(2, check_sequence);
}

#[test]
fn random_sequences_leave_exactly_the_tree_of_the_model_4() {
    check_sequences(3, check_sequence);
}

/// A path that the run made and removed again is behind a link that was there before the run.
#[test]
fn a_path_behind_a_link_that_has_nothing_to_take_back_is_passed_over() {
    check_sequence(6890);
}

#[test]
fn an_undo_of_any_run_or_call_touches_only_what_that_changed_1() {
    check_sequences(0, check_any_order);
}

#[test]
fn an_undo_of_any_run_or_call_touches_only_what_that_changed_2() {
    check_sequences(1, check_any_order);
}

#[test]
fn an_undo_of_any_run_or_call_touches_only_what_that_changed_3() {
    check_sequences(2, check_any_order);
}

#[test]
fn an_undo_of_any_run_or_call_touches_only_what_that_changed_4() {
    check_sequences(3, check_any_order);
}

/// A run with the id of each of its calls, and the trees before and after each.
struct PastRun {
    run: RunId,
    calls: Vec<(String, Tree, Tree)>,
}

impl PastRun {
    /// Returns the trees before and after the run or the call.
    fn trees(&self, call: Option<usize>) -> (&Tree, &Tree) {
        let (first, last) = call.map_or((0, self.calls.len() - 1), |call| (call, call));
        (&self.calls[first].1, &self.calls[last].2)
    }

    /// Returns the paths that the run or the call has changed, also those that it changed back in a later call.
    fn changed(&self, call: Option<usize>) -> BTreeSet<PathBuf> {
        let calls = call.map_or(&self.calls[..], |call| &self.calls[call..=call]);
        calls
            .iter()
            .flat_map(|(_, before, after)| {
                let paths = before.0.keys().chain(after.0.keys());
                paths.filter(|path| before.get(path) != after.get(path))
            })
            .cloned()
            .collect()
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

fn is_same_content(one: Option<&Node>, other: Option<&Node>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same_content(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Takes back random runs and calls, also those after which others have changed the same files, and then takes that back.
fn check_any_order(seed: u64) {
    let mut model =
        Model { test: TestUndo::in_memory(), tree: Tree::default(), random: Random::new(seed), count: 0 };
    fs::set_permissions(model.test.file(""), fs::Permissions::from_mode(0o700)).unwrap();
    let mut runs: Vec<PastRun> = Vec::new();
    for step in 0..6 {
        let at = format!("step {step} of seed {seed}");
        if runs.is_empty() || model.random.below(2) == 0 {
            runs.extend(model.past_run());
            model.check(&at);
            continue;
        }
        let past = &runs[model.random.below(runs.len())];
        let call = (model.random.below(2) == 0).then(|| model.random.below(past.calls.len()));
        let before = model.tree.clone();
        model.undo_and_check(past, call, &at);
        if model.has_entry() && model.random.below(2) == 0 {
            let undo = model.test.run.clone();
            assert_eq!(model.test.undo(&undo), [], "{at}");
            model.tree = before;
            model.check(&format!("an undo of an undo, {at}"));
        }
    }
}

impl Model {
    /// Makes a run. Returns `None` if it has changed nothing.
    fn past_run(&mut self) -> Option<PastRun> {
        self.test.begin_run(None);
        let (run, mut calls) = (self.test.run.clone(), Vec::new());
        for _ in 0..1 + self.random.below(4) {
            let before = self.tree.clone();
            self.call();
            if self.tree != before {
                calls.push((format!("call_{}", self.test.calls), before, self.tree.clone()));
            }
        }
        (!calls.is_empty()).then_some(PastRun { run, calls })
    }

    /// Takes a run or one of its calls back. The tree of the model is then the one on disk.
    fn undo_and_check(&mut self, past: &PastRun, call: Option<usize>, at: &str) {
        let id = call.map(|call| past.calls[call].0.as_str());
        let report = self.test.undo_with_report(&past.run, id);
        let now = std::mem::replace(&mut self.tree, Tree::read(&self.test.file("")));
        let (end, (old, new), changed) = (&self.tree, past.trees(call), past.changed(call));
        let left = |path: &Path| {
            let of_path = report.iter().filter(|restored| restored.path == path);
            of_path.map(|restored| &restored.result).any(|result| *result != RestoreResult::Done)
        };
        let paths: BTreeSet<&PathBuf> = now.0.keys().chain(end.0.keys()).chain(&changed).collect();
        for path in paths {
            let (is, was) = (end.get(path), now.get(path));
            let at = format!("{}, {id:?}, {at}: {was:?} is {is:?}, {report:?}", path.display());
            if !changed.contains(path) {
                assert_eq!(is, was, "something else was touched: {at}");
                continue;
            }
            let before = old.get(path);
            let is_restored = is_same_content(is, before);
            assert!(is_restored || is == was, "neither old nor as it was: {at}");
            assert!(is_restored || left(path), "not restored, and not said: {at}");
            let is_behind_other =
                || path.ancestors().skip(1).any(|above| !now.is_dir(above) && now.get(above).is_some());
            let has_others = || end.0.keys().any(|other| other != path && other.starts_with(path));
            let has_dir = end.is_dir(path.parent().unwrap());
            // Nothing has changed it since, so nothing keeps it from being restored.
            if was == new.get(path) && !is_behind_other() && !has_others() && (has_dir || before.is_none()) {
                assert_eq!(is, before, "not restored: {at}");
            }
        }
    }
}

fn check_sequence(seed: u64) {
    let mut model =
        Model { test: TestUndo::in_memory(), tree: Tree::default(), random: Random::new(seed), count: 0 };
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
