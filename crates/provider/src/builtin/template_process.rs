//! Renders the chat templates of model files in a process of its own, because a template is a program by a stranger.
//!
//! No limit within a process holds one: the engine counts steps and output, and sixty steps can make a value that takes
//! all memory, or whose elements take a year to visit, or whose depth overflows the stack. So each rendering starts this
//! executable in a hidden role with limits on memory and processor time, which the kernel enforces. That costs a few
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

use kontekst_engine::template::{Job, Outcome, Renderer, TemplateError};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use kontekst_core::Cancel;

/// The first argument of an executable in this role. The others are limits: bytes of memory, and seconds of processor
/// time.
const ROLE: &str = "render-template";

/// The address space of the process: of the executable, of a template, and of what it computes.
const MEMORY: u64 = 512 << 20;

/// The address space for each byte of the conversation. It is there as JSON, as values, as marked and joined texts, and
/// as output, whose buffer doubles.
const MEMORY_PER_BYTE: u64 = 12;

/// The processor time. The longest conversation takes the longest of today's templates a tenth of a second.
const CPU_SECONDS: u64 = 5;

/// The time after which a process that gets no processor time is ended.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest answer of the process, in bytes: twice the longest output of a template, because it is JSON.
const MAX_ANSWER: u64 = 128 << 20;

/// Runs jobs in a process for each.
#[derive(Clone, Copy)]
pub struct TemplateProcess<'a> {
    launcher: &'a Path,
    cancel: &'a Cancel,
    cpu_seconds: u64,
}

impl<'a> TemplateProcess<'a> {
    /// `launcher` is this program.
    pub fn new(launcher: &'a Path, cancel: &'a Cancel) -> Self {
        Self { launcher, cancel, cpu_seconds: CPU_SECONDS }
    }

    /// Uses another limit on the processor time.
    #[must_use]
    pub fn with_cpu_seconds(self, cpu_seconds: u64) -> Self {
        Self { cpu_seconds, ..self }
    }

    fn start(&self, input: &[u8]) -> io::Result<Child> {
        let memory = MEMORY.saturating_add(MEMORY_PER_BYTE.saturating_mul(input.len() as u64));
        Command::new(self.launcher)
            .args([ROLE, &memory.to_string(), &self.cpu_seconds.to_string()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }
}

/// The event that ends the wait for a process.
enum Event {
    /// All that it wrote.
    Answered(io::Result<Vec<u8>>),
    Cancelled,
}

impl Renderer for TemplateProcess<'_> {
    fn run(&self, job: &Job) -> Result<Vec<Outcome>, TemplateError> {
        let failed = |error: io::Error| TemplateError::Failed(error.to_string());
        let input = job.to_json();
        let mut child = self.start(&input).map_err(failed)?;
        let (sender, events) = mpsc::channel();
        let cancelled = sender.clone();
        let _hook = self.cancel.on_cancel(move || drop(cancelled.send(Event::Cancelled)));
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // The thread ends when the process does.
        let exchange = thread::Builder::new().name("chat-template".to_owned()).spawn(move || {
            sender.send(Event::Answered(exchange(&input, stdin, stdout))).ok();
        });
        let event = match exchange {
            Ok(_) => events.recv_timeout(TIMEOUT),
            Err(error) => Ok(Event::Answered(Err(error))),
        };
        let is_whole =
            matches!(&event, Ok(Event::Answered(Ok(answer))) if (answer.len() as u64) < MAX_ANSWER);
        if !is_whole {
            child.kill().ok();
        }
        let status = child.wait().map_err(failed)?;
        match event {
            Ok(Event::Answered(answer)) if is_whole => self.outcomes(&answer.map_err(failed)?, status),
            Ok(Event::Answered(Ok(_))) => {
                Err(TemplateError::Stopped(format!("it writes more than {MAX_ANSWER} bytes")))
            }
            Ok(Event::Answered(Err(error))) => Err(failed(error)),
            Ok(Event::Cancelled) => Err(TemplateError::Cancelled),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(self.too_slow()),
        }
    }
}

impl TemplateProcess<'_> {
    /// Reads the answer of a process that has ended like this.
    fn outcomes(&self, answer: &[u8], status: ExitStatus) -> Result<Vec<Outcome>, TemplateError> {
        let too_slow = [Signal::XCPU, Signal::KILL].map(|signal| Some(signal.as_raw()));
        match status.signal() {
            None if status.success() => serde_json::from_slice(answer)
                .map_err(|error| TemplateError::Failed(format!("its process sent something else: {error}"))),
            None => Err(TemplateError::Failed(format!("its process ended with {status}"))),
            signal if too_slow.contains(&signal) => Err(self.too_slow()),
            Some(_) => Err(TemplateError::Stopped(
                "it takes more memory than a template may, or makes values within values without end"
                    .to_owned(),
            )),
        }
    }

    fn too_slow(&self) -> TemplateError {
        TemplateError::Stopped(format!("it takes longer than {} seconds", self.cpu_seconds))
    }
}

/// Writes the job and reads the answer. The process reads all of it before it writes anything.
fn exchange(input: &[u8], stdin: Option<impl Write>, stdout: Option<impl Read>) -> io::Result<Vec<u8>> {
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { return Ok(Vec::new()) };
    match stdin.write_all(input) {
        // The end of the process says why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    drop(stdin);
    let mut answer = Vec::new();
    stdout.take(MAX_ANSWER).read_to_end(&mut answer)?;
    Ok(answer)
}

/// The hidden role: limits this process, reads a job and writes its outcomes.
///
/// # Errors
///
/// The limits cannot be set, or the job cannot be read or its outcomes written.
pub fn render(memory: u64, cpu_seconds: u64, mut input: impl Read, mut output: impl Write) -> io::Result<()> {
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
    let mut json = Vec::new();
    input.read_to_end(&mut json)?;
    let outcomes = Job::from_json(&json)?.run();
    serde_json::to_writer(&mut output, &outcomes)?;
    output.flush()
}
