//! The ways of counting what one process does.

use std::{
    fs, io,
    io::Write as _,
    process::{Command, Stdio},
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::Failure;

/// The system calls that are counted. How often a client waits, is woken and reads depends on the pieces in which an answer
/// arrives: all calls of a one-shot together were between 113 and 122 in 13 counts, each of them the least of ten runs.
const STEADY: &str = "trace=!epoll_pwait,recvfrom,write,writev,futex";

/// A way of counting. The last two slow the process down, so each has its own runs.
#[derive(Clone, Copy)]
pub(super) enum Probe {
    /// The kernel's own counts of a process, from `/proc`.
    Kernel,
    /// `strace` counts the system calls of [`STEADY`].
    Strace,
    /// valgrind counts instructions.
    Callgrind,
}

/// The counts of the kernel for one process.
pub(super) struct KernelCounts {
    pub(super) page_faults: u64,
    /// Bytes that were written to files, pipes and terminals, but not to sockets.
    pub(super) bytes_written: u64,
}

/// Returns what can be counted on this machine, and names the tools that are missing.
pub(super) fn available() -> Result<Vec<Probe>, Failure> {
    let mut probes = vec![Probe::Kernel];
    for (probe, tool) in [(Probe::Strace, "strace"), (Probe::Callgrind, "valgrind")] {
        let version =
            Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        match version {
            Ok(status) if status.success() => probes.push(probe),
            _ => writeln!(io::stdout(), "NOT COUNTED, because {tool} is not installed: {:?}", probe.names())?,
        }
    }
    Ok(probes)
}

impl Probe {
    /// Returns the names of what [`Probe::count`] counts, in its order.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Kernel => &["page_faults", "bytes_written"],
            Self::Strace => &["system_calls"],
            Self::Callgrind => &["instructions"],
        }
    }

    /// Runs a command to its successful end and counts.
    pub(super) fn count(self, command: Command) -> Result<Vec<u64>, Failure> {
        match self {
            Self::Kernel => {
                let counts = of_process_at_end(command)?;
                Ok(vec![counts.page_faults, counts.bytes_written])
            }
            Self::Strace => {
                let log = tempfile::NamedTempFile::new()?;
                let mut strace = below("strace", &command);
                strace.args(["-f", "-c", "-e", STEADY, "-o"]).arg(log.path());
                output(strace, &command)?;
                // The columns of the last line are: share, seconds, microseconds for each call, calls, errors, "total".
                let table = fs::read_to_string(log.path())?;
                let total = table.lines().last().and_then(|line| line.split_whitespace().nth(3));
                Ok(vec![total.ok_or("strace has printed no table")?.parse()?])
            }
            Self::Callgrind => {
                let mut valgrind = below("valgrind", &command);
                valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
                let printed = output(valgrind, &command)?;
                let counted = printed.lines().find_map(|line| line.split_once("Collected :"));
                Ok(vec![counted.ok_or("valgrind has counted nothing")?.1.trim().parse()?])
            }
        }
    }
}

/// Returns a command with the environment and the directory of another one.
fn below(program: &str, command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(dir) = command.get_current_dir() {
        outer.current_dir(dir);
    }
    outer
}

/// Runs a command below a tool, and returns what both printed to stderr.
fn output(mut tool: Command, command: &Command) -> Result<String, Failure> {
    let output = tool.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null()).output()?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(printed) } else { Err(format!("{tool:?}: {printed}").into()) }
}

/// Runs a process to its successful end and returns its counts.
pub(super) fn of_process_at_end(mut command: Command) -> Result<KernelCounts, Failure> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let pid = Pid::from_child(&child);
    // The counts of a process that has ended can be read until its parent takes notice of the end.
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
    let counts = of_process(child.id());
    let status = child.wait()?;
    if status.success() { counts } else { Err(format!("{command:?}: {status}").into()) }
}

/// Returns the counts of a process so far.
pub(super) fn of_process(pid: u32) -> Result<KernelCounts, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain any character. The minor and the major faults are the 8th and the 10th
    // field after it, with those of children that were waited for in between.
    let (_, rest) = stat.rsplit_once(") ").ok_or("stat without a name")?;
    let faults = rest.split(' ').skip(7).step_by(2).take(2).map(str::parse::<u64>);
    let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")).ok_or("io without wchar")?;
    Ok(KernelCounts { page_faults: faults.sum::<Result<u64, _>>()?, bytes_written: written.parse()? })
}
