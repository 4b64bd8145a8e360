//! Takes back any run or call, also after others have changed the same files.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use kontekst_core::RunId;

use super::{
    check_sequences,
    model::Model,
    tree::{Tree, is_same_content},
};

use crate::undo::RestoreResult;

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

/// Takes back random runs and calls, also those after which others have changed the same files, and then takes that back.
fn check_any_order(seed: u64) {
    let mut model = Model::new(seed);
    let mut runs: Vec<PastRun> = Vec::new();
    for step in 0..6 {
        let at = format!("step {step} of seed {seed}");
        if runs.is_empty() || model.random.below(2) == 0 {
            runs.extend(model.past_run());
            model.check(&at);
            continue;
        }
        if model.random.below(4) == 0 {
            model.edit_by_others();
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
