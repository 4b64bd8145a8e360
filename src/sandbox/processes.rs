//! The processes of a command: all of them end when the command does.

use std::{fs, io, path::PathBuf, process::Child};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Returns the path of the running program, also after an upgrade has replaced its file.
pub(super) fn this_executable() -> io::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { std::env::current_exe() }
}

/// Makes this process the parent of every descendant whose own parent ends.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Ends all that `inner` has started. `inner` has not been waited for yet.
pub(super) fn kill_all(inner: &Child) {
    kill_process_group(Pid::from_child(inner), Signal::KILL).ok();
    // Children of a process that ends become children of this one, so no generation is missed.
    loop {
        let descendants = descendants(rustix::process::getpid());
        let others: Vec<Pid> = descendants.into_iter().filter(|pid| *pid != Pid::from_child(inner)).collect();
        if others.is_empty() {
            return;
        }
        for pid in others {
            kill_process(pid, Signal::KILL).ok();
            rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG).ok();
        }
    }
}

/// Returns the processes below `root`, as far as `/proc` shows them.
fn descendants(root: Pid) -> Vec<Pid> {
    let parents = parents();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

/// Returns every process and its parent.
fn parents() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // `1234 (any name) S 1200 …`
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((Pid::from_raw(pid)?, Pid::from_raw(parent)?))
    });
    processes.collect()
}
