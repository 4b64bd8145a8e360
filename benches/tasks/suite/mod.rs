//! The tasks, and the judges that decide whether one was done.
//!
//! A task is a small file tree with a prompt. Its judge looks at the whole tree afterwards, at the exit status, and for a
//! question at the facts in the answer; it never looks at wording. `tests/it/tasks.rs` includes this folder and checks
//! every judge with a right and a wrong outcome.

#![allow(dead_code, reason = "the bench and the tests each use a part")]

mod answers;
mod edits;
mod facts;
mod functions;
mod hazards;
pub(crate) mod judge;
mod multi_file;
mod repairs;
mod task;
mod tree;
mod worded;

pub(crate) use task::{Kind, Task};
pub(crate) use tree::Tree;

/// Returns the projects with a failing test, which are run only where they are asked for.
pub(crate) fn repairs() -> Vec<Task> {
    repairs::tasks()
}

/// Returns the second suite, of 44 tasks as people word them, those of a kind together.
pub(crate) fn worded() -> Vec<Task> {
    let mut tasks = worded::tasks();
    tasks.sort_by_key(|task| task.kind);
    tasks
}

/// Returns the forty tasks, those of a kind together.
pub(crate) fn all() -> Vec<Task> {
    let mut tasks =
        [edits::tasks(), multi_file::tasks(), functions::tasks(), answers::tasks(), hazards::tasks()]
            .concat();
    tasks.sort_by_key(|task| task.kind);
    tasks
}
