//! Random sequences of edits, writes, commands and undos, compared with a model of the tree in memory.
//!
//! The commands are done in this process, because what a shell does is the same and takes longer.

mod any_order;
mod model;
mod tree;

use std::{collections::BTreeMap, fs, path::PathBuf};

use kontekst_core::RunId;

use super::{metadata_tests::Metadata, tests::as_ordinary_user};

use crate::hostile_input::rounds;
use model::Model;
use tree::{Tree, metadata_below};

/// The tree at one moment, with the times and the attributes of its files.
type Before = (Tree, BTreeMap<PathBuf, Metadata>);

/// Checks one of four parts, which run at the same time.
fn check_sequences(part: usize, check: fn(u64)) {
    let count = rounds(100, 10_000) / 4;
    as_ordinary_user(|| (part * count..(part + 1) * count).for_each(|seed| check(seed as u64 + 1)));
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
    as_ordinary_user(|| check_sequence(6890));
}

/// The mode of a directory is restored that lies above one which is open already.
#[test]
fn what_is_open_below_a_directory_with_a_new_mode_is_opened_anew() {
    as_ordinary_user(|| check_sequence(1797));
}

fn check_sequence(seed: u64) {
    let mut model = Model::new(seed);
    let outside = model.test.file("../outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "outside").unwrap();
    // The runs that were not taken back, and the undos after the last run, with the tree before each.
    let mut runs: Vec<(RunId, Before)> = Vec::new();
    let mut undos: Vec<(RunId, Before)> = Vec::new();
    for step in 0..6 {
        let what = match model.random.below(3) {
            0 if !undos.is_empty() => {
                let (undo, before) = undos.pop().unwrap();
                let now = model.undo(&undo, before, seed);
                // The undo of the undo can be taken back as the run could be.
                if model.has_entry() {
                    runs.push((model.test.run.clone(), now));
                }
                "an undo of an undo"
            }
            1 if !runs.is_empty() => {
                let (run, before) = runs.pop().unwrap();
                let now = model.undo(&run, before, seed);
                if model.has_entry() {
                    undos.push((model.test.run.clone(), now));
                }
                "an undo"
            }
            _ => {
                undos.clear();
                let before = model.now();
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

impl Model {
    fn now(&self) -> Before {
        (self.tree.clone(), metadata_below(&self.test.file("")))
    }

    /// Takes a run or an undo back, which has to lead to the tree of before. Returns the tree until then.
    fn undo(&mut self, run: &RunId, (tree, metadata): Before, seed: u64) -> Before {
        let now = self.now();
        self.tree = tree;
        assert_eq!(self.test.undo(run), [], "seed {seed}");
        assert_eq!(metadata_below(&self.test.file("")), metadata, "seed {seed}");
        now
    }
}
