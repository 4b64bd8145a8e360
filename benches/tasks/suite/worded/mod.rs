//! A second suite: tasks as people word them, in six languages, with many that must change nothing.

mod changes;
mod languages;
mod operations;
mod project;
mod questions;

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    [changes::tasks(), languages::tasks(), operations::tasks(), project::tasks(), questions::tasks()].concat()
}
