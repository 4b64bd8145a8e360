//! The hidden role of the executable between the daemon and llama-server. It makes sure that llama-server ends with the
//! daemon.
//!
//! The child itself must ask the kernel for that, between fork and exec, and a hook there would be `unsafe`. So the
//! daemon starts its own executable in this role, which then becomes llama-server by exec.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, process::Command};

use rustix::process::getppid;

/// The first argument of an executable in this role.
pub const ROLE: &str = "exec-child";

/// Returns the arguments after [`ROLE`] that run `program` with `args`.
pub(crate) fn arguments(program: OsString, args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    // The dashes keep the command line parser from reading llama-server's options.
    let mut all = vec!["--".into(), std::process::id().to_string().into(), program];
    all.extend(args);
    all
}

/// Becomes the program in `args`, which are the arguments after [`ROLE`] with or without the dashes. Returns only if that
/// fails.
pub fn exec_child(args: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut args = args.into_iter().skip_while(|arg| arg == "--");
    let parent = args.next().and_then(|pid| pid.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(program)) = (parent, args.next()) else {
        return io::Error::new(io::ErrorKind::InvalidInput, "expected a parent's process id and a program");
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // SIGKILL, because after a SIGTERM llama-server may wait half a minute for a stream without a reader.
        if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
            return error.into();
        }
    }
    // A parent that ended before the call above sends no signal.
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return io::Error::other("the daemon is gone");
    }
    Command::new(program).args(args).exec()
}
