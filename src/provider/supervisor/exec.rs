//! The hidden role between the daemon and llama-server: makes sure that the child dies with its parent.
//!
//! Asking the kernel for that must happen in the child itself, between fork and exec, and a hook there
//! would be `unsafe`. So the daemon starts its own executable in this role, which then becomes
//! llama-server.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, process::Command};

use rustix::process::getppid;

/// What the executable is told to take this role.
pub const ROLE: &str = "exec-child";

/// The arguments after [`ROLE`] for a program to be run.
pub fn arguments(program: OsString, args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    // The dashes keep a command line parser away from llama-server's options.
    let mut all = vec!["--".into(), std::process::id().to_string().into(), program];
    all.extend(args);
    all
}

/// Becomes the program that `args` names: what came after [`ROLE`] on the command line, with or without
/// the dashes. Returns only if that failed.
pub fn exec_child(args: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut args = args.into_iter().skip_while(|arg| arg == "--");
    let parent = args.next().and_then(|pid| pid.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(program)) = (parent, args.next()) else {
        return io::Error::new(io::ErrorKind::InvalidInput, "expected a parent's process id and a program");
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // KILL: on a TERM llama-server may wait half a minute for a stream that nobody reads.
        if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
            return error.into();
        }
    }
    // A parent that died before the signal was armed sends none.
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return io::Error::other("the daemon is gone");
    }
    Command::new(program).args(args).exec()
}
