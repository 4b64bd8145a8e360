//! Runs a command with a limit of time.

use std::{
    fs::{self, File},
    io,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The end of a command.
pub(crate) struct Ended {
    /// The exit status, or `None` if a signal ended it or the time was over.
    pub(crate) exit: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) stdout: String,
    pub(crate) seconds: f64,
}

/// Returns a command without a terminal, so that it can ask nobody, and with no environment but `PATH`, `LANG` and `HOME`.
pub(crate) fn without_terminal(program: &Path, home: &Path) -> Command {
    let setsid = Path::new("/usr/bin/setsid");
    let mut command = if setsid.exists() { Command::new(setsid) } else { Command::new(program) };
    if setsid.exists() {
        command.arg(program);
    }
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8");
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Runs a command with `input` on stdin, and kills it after `timeout`. Its stdout and stderr are kept in `dir`.
pub(crate) fn run(
    mut command: Command,
    input: Option<&str>,
    dir: &Path,
    timeout: Duration,
) -> io::Result<Ended> {
    let (out, err, data) = (dir.join("stdout"), dir.join("stderr"), dir.join("stdin"));
    let stdin = match input {
        Some(text) => {
            fs::write(&data, text)?;
            Stdio::from(File::open(&data)?)
        }
        None => Stdio::null(),
    };
    command.stdin(stdin).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let began = Instant::now();
    let mut child = command.spawn()?;
    let (status, timed_out) = loop {
        if let Some(status) = child.try_wait()? {
            break (status, false);
        }
        if began.elapsed() > timeout {
            child.kill()?;
            break (child.wait()?, true);
        }
        thread::sleep(Duration::from_millis(10));
    };
    let exit = if timed_out { None } else { status.code() };
    let stdout = String::from_utf8_lossy(&fs::read(&out)?).into_owned();
    Ok(Ended { exit, timed_out, stdout, seconds: began.elapsed().as_secs_f64() })
}
