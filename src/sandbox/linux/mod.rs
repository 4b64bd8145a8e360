//! The layers on Linux: namespaces with a file system view of their own, and Landlock with a seccomp filter.

mod filter;
mod landlock;
mod mount_table;
mod mounts;
mod namespaces;
mod privileges;
mod proc_mount;
mod resources;
mod sockets;
mod step;

use std::io;

use super::job::Job;

pub(super) use namespaces::start_loopback;
pub(super) use privileges::close_inherited_files;

/// What the keeper does before it starts the inner process, which then is the first one in its namespaces.
pub(super) fn enter(job: &Job) -> io::Result<()> {
    if job.layers.namespaces { namespaces::enter(job) } else { Ok(()) }
}

/// What the inner process does before it starts the command.
pub(super) fn confine(job: &Job) -> io::Result<()> {
    if job.layers.namespaces {
        proc_mount::mount_new(&job.limits)?;
    }
    resources::limit(job)?;
    privileges::drop_all()?;
    if job.layers.filters {
        landlock::restrict(job)?;
        filter::install(job)?;
    }
    Ok(())
}
