//! Does work of this program in a process of its own, because what it reads was written by a stranger.
//!
//! No limit within a process holds such work: a few steps of a program can make a value that takes all
//! memory, and a page that nests deeply overflows the stack. So each piece of work starts this executable in
//! a hidden role with limits on memory and processor time, which the kernel enforces. That costs a few
//! milliseconds and leaves nothing behind. A cancel ends the process at once.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use kontekst_core::Cancel;

/// The time after which a process that gets no processor time is ended.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest result, in bytes: twice the longest output of a template, because it is JSON.
const MAX_RESULT: u64 = 128 << 20;

/// Work in a role of this program, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitedWork<'a> {
    /// This program.
    pub launcher: &'a Path,
    /// The first argument of the process. The others are the limits.
    pub role: &'static str,
    /// The address space, in bytes.
    pub memory: u64,
    /// The processor time.
    pub cpu_seconds: u64,
}

/// A reason why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitedError {
    Cancelled,
    /// A limit was reached. Says which one, about the work as "it".
    Stopped(String),
    /// It could not be done at all.
    Failed(String),
}

/// The event that ends the wait for a process.
enum Event {
    /// All that it wrote.
    Answered(io::Result<Vec<u8>>),
    Cancelled,
}

impl LimitedWork<'_> {
    /// Does the work and blocks until its process has ended.
    ///
    /// # Errors
    ///
    /// See [`LimitedError`].
    pub fn run(&self, input: Vec<u8>, cancel: &Cancel) -> Result<Vec<u8>, LimitedError> {
        let failed = |error: io::Error| LimitedError::Failed(error.to_string());
        let mut child = self.start().map_err(failed)?;
        let (sender, events) = mpsc::channel();
        let cancelled = sender.clone();
        let _hook = cancel.on_cancel(move || drop(cancelled.send(Event::Cancelled)));
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // The thread ends when the process does.
        let exchange = thread::Builder::new().name(self.role.to_owned()).spawn(move || {
            sender.send(Event::Answered(exchange(&input, stdin, stdout))).ok();
        });
        let event = match exchange {
            Ok(_) => events.recv_timeout(TIMEOUT),
            Err(error) => Ok(Event::Answered(Err(error))),
        };
        let is_whole =
            matches!(&event, Ok(Event::Answered(Ok(result))) if (result.len() as u64) < MAX_RESULT);
        if !is_whole {
            child.kill().ok();
        }
        let status = child.wait().map_err(failed)?;
        match event {
            Ok(Event::Answered(Ok(result))) if is_whole => self.check_end(status).map(|()| result),
            Ok(Event::Answered(Ok(_))) => {
                Err(LimitedError::Stopped(format!("it writes more than {MAX_RESULT} bytes")))
            }
            Ok(Event::Answered(Err(error))) => Err(failed(error)),
            Ok(Event::Cancelled) => Err(LimitedError::Cancelled),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(self.too_slow()),
        }
    }

    fn start(&self) -> io::Result<Child> {
        Command::new(self.launcher)
            .args([self.role, &self.memory.to_string(), &self.cpu_seconds.to_string()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }

    fn check_end(&self, status: ExitStatus) -> Result<(), LimitedError> {
        let too_slow = [Signal::XCPU, Signal::KILL].map(|signal| Some(signal.as_raw()));
        match status.signal() {
            None if status.success() => Ok(()),
            None => Err(LimitedError::Failed(format!("its process ended with {status}"))),
            signal if too_slow.contains(&signal) => Err(self.too_slow()),
            Some(_) => Err(LimitedError::Stopped(
                "it takes more memory than it may, or goes deeper and deeper without end".to_owned(),
            )),
        }
    }

    fn too_slow(&self) -> LimitedError {
        LimitedError::Stopped(format!("it takes longer than {} seconds", self.cpu_seconds))
    }
}

/// Writes the input and reads the result. The process reads all of the input before it writes anything.
fn exchange(input: &[u8], stdin: Option<impl Write>, stdout: Option<impl Read>) -> io::Result<Vec<u8>> {
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { return Ok(Vec::new()) };
    match stdin.write_all(input) {
        // The end of the process says why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    drop(stdin);
    let mut result = Vec::new();
    stdout.take(MAX_RESULT).read_to_end(&mut result)?;
    Ok(result)
}

/// The hidden role: limits this process, does the work with what it reads, and writes the result.
///
/// # Errors
///
/// The limits cannot be set, the input cannot be read or the result written, or the work fails.
pub fn do_limited_work(
    memory: u64,
    cpu_seconds: u64,
    mut input: impl Read,
    mut output: impl Write,
    work: impl FnOnce(&[u8]) -> io::Result<Vec<u8>>,
) -> io::Result<()> {
    let limit = |resource, limit| {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }).map_err(io::Error::from)
    };
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, cpu_seconds)?;
    match limit(Resource::As, memory) {
        // macOS has no such limit. There the others have to do.
        Err(_) if cfg!(target_os = "macos") => {}
        done => done?,
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    output.write_all(&work(&bytes)?)?;
    output.flush()
}
