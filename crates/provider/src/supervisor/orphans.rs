//! Servers that outlived a killed daemon. A record is written when a server is started, and the next daemon ends the
//! processes in the records that it finds.
//!
//! A process id alone does not identify a process, because the kernel reuses ids. A record has the id, the start time
//! and the boot id, which no other process can share.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use kontekst_store::config::file::read_text;

/// The beginning and the end of a record's file name. The process id is between them.
const NAME: (&str, &str) = ("model-server-", ".json");

/// The largest record in bytes. It has about 200.
const LIMIT: u64 = 16 * 1024;

/// The record of one server. The file is removed when this is dropped, after the process has been waited for.
pub(super) struct ServerRecord {
    path: PathBuf,
    identity: ProcessIdentity,
}

/// Identifies a process among all that ever had its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProcessIdentity {
    pid: i32,
    /// Clock ticks between the boot and the start of the process.
    started: u64,
    /// Differs after each boot.
    boot: String,
    /// The executable, once the server is ready. Before that, the process is still becoming llama-server.
    exe: Option<PathBuf>,
}

impl ServerRecord {
    /// Writes the record of the process `pid` to `dir`. Returns `None` on systems that do not tell when a process was
    /// started.
    pub(super) fn write(dir: &Path, pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok()?;
        let identity = ProcessIdentity { pid, started: started(pid)?, boot: boot()?, exe: None };
        let record = Self { path: dir.join(format!("{}{pid}{}", NAME.0, NAME.1)), identity };
        record.save();
        Some(record)
    }

    /// Records the executable. Called when the server is ready.
    pub(super) fn mark_ready(&mut self) {
        self.identity.exe = exe(self.identity.pid);
        self.save();
    }

    fn save(&self) {
        let json = serde_json::to_vec(&self.identity).expect("strings and numbers");
        // Not synced, because a process does not survive a power failure either.
        if let Err(error) = fs::write(&self.path, &json) {
            tracing::warn!(%error, "a killed daemon would leave its model server behind");
        }
    }
}

impl Drop for ServerRecord {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// Ends the processes in the records of `dir` and removes the records. The caller must hold the daemon's lock, because
/// the servers of a running daemon are in use.
pub(super) fn reap(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let record = name.to_str().and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1));
        if record.is_none() {
            continue;
        }
        let identity = read_text(&entry.path(), LIMIT).ok().and_then(|text| serde_json::from_str(&text).ok());
        match identity.map(|identity: ProcessIdentity| (identity.pid, kill(&identity))) {
            Some((pid, Ok(true))) => {
                tracing::warn!(pid, "ended a model server that a killed daemon had left");
            }
            Some((_, Ok(false))) | None => {}
            Some((pid, Err(error))) => tracing::warn!(pid, %error, "cannot end a model server that was left"),
        }
        fs::remove_file(entry.path()).ok();
    }
}

/// Kills exactly this process and waits until it has ended. Returns false if it had ended before.
#[cfg(target_os = "linux")]
fn kill(identity: &ProcessIdentity) -> io::Result<bool> {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
    };
    if identity.pid <= 1 {
        return Ok(false);
    }
    let pid = Pid::from_raw(identity.pid).expect("a positive number");
    // The handle is opened before the process is identified, so that both are about the same process.
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if !identity.is_still_there() {
        return Ok(false);
    }
    // SIGKILL, because the server has no clients and nothing to clean up.
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    // Freeing its memory takes the kernel a while, since it may be most of the machine's memory.
    let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
    let mut gone = [PollFd::new(&handle, PollFlags::IN)];
    while matches!(poll(&mut gone, Some(&patience)), Err(rustix::io::Errno::INTR)) {}
    Ok(true)
}

/// On this system no records are written: see [`ServerRecord::write`].
#[cfg(not(target_os = "linux"))]
fn end(_: &ProcessIdentity) -> io::Result<bool> {
    Ok(false)
}

impl ProcessIdentity {
    fn is_still_there(&self) -> bool {
        boot().as_ref() == Some(&self.boot)
            && started(self.pid) == Some(self.started)
            && self.exe.as_ref().is_none_or(|known| exe(self.pid).is_none_or(|now| now == *known))
    }
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns when a process was started, in clock ticks after the boot. `exec` does not change it.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses, which may itself have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

fn exe(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> (Child, u32) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        (child, pid)
    }

    fn records(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn an_orphan_is_killed_by_its_record() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, pid) = sleeper();
        let mut record = ServerRecord::write(dir.path(), pid).unwrap();
        record.mark_ready();
        std::mem::forget(record); // as a kill does
        fs::write(dir.path().join("daemon.json"), "{}").unwrap();
        reap(dir.path());
        assert_eq!(rustix::process::Signal::KILL.as_raw(), signal(&mut child));
        assert_eq!(records(dir.path()), 1);
    }

    fn signal(child: &mut Child) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        child.wait().unwrap().signal().unwrap()
    }

    #[test]
    fn another_process_with_the_same_id_is_not_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, pid) = sleeper();
        let path = dir.path().join(format!("model-server-{pid}.json"));
        let real = ProcessIdentity {
            pid: pid.cast_signed(),
            started: started(pid.cast_signed()).unwrap(),
            boot: boot().unwrap(),
            exe: exe(pid.cast_signed()),
        };
        let others = [
            serde_json::to_string(&ProcessIdentity { started: real.started - 1, ..real.clone() }).unwrap(),
            serde_json::to_string(&ProcessIdentity { boot: "another".to_owned(), ..real.clone() }).unwrap(),
            serde_json::to_string(&ProcessIdentity { exe: Some("/bin/other".into()), ..real.clone() })
                .unwrap(),
            serde_json::to_string(&ProcessIdentity { pid: 1, ..real.clone() }).unwrap(),
            serde_json::to_string(&ProcessIdentity { pid: -pid.cast_signed(), ..real }).unwrap(),
            format!("{{\"pid\":{pid}}}"),
            String::new(),
        ];
        for other in others {
            fs::write(&path, &other).unwrap();
            reap(dir.path());
            assert!(child.try_wait().unwrap().is_none(), "{other}");
            assert_eq!(records(dir.path()), 0);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_child_that_was_waited_for_has_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let record = ServerRecord::write(dir.path(), std::process::id()).unwrap();
        assert_eq!(records(dir.path()), 1);
        drop(record);
        assert_eq!(records(dir.path()), 0);
    }
}
