//! The thread that asks one question: what it writes, what it reads, and the programs to which it gives the terminal.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::{fs::OpenOptionsExt as _, net::UnixStream},
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    termios::{QueueSelector, tcflush},
};

use kontekst_core::Environment;

use crate::cli::{editor::TextEditor, output::columns, pager::Pager, wrap::wrap};

use super::{
    approval_prompt::{ApprovalAnswer, TypedLine, parse_answer},
    reason_file::ReasonFile,
    terminal_program::TerminalProgram,
};

/// The controlling terminal, which is there even if stdin and stdout are pipes.
pub(super) struct Terminal {
    /// Does not block, because another process can read a line between the poll and the read.
    input: File,
    output: File,
}

impl Terminal {
    /// Opens the terminal. A process under cron or in a service has none.
    pub(super) fn open() -> Option<Self> {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let input = File::options().read(true).custom_flags(nonblocking).open("/dev/tty").ok()?;
        let output = File::options().write(true).open("/dev/tty").ok()?;
        Some(Self { input, output })
    }
}

/// The texts of a question. All of them are ready for the terminal.
pub(super) struct QuestionTexts {
    /// The call, shortened where it is long.
    pub(super) call: String,
    pub(super) whole_call: String,
    /// The call without colours, for the file in which a reason is written.
    pub(super) plain_call: String,
    /// The line that asks for an answer.
    pub(super) prompt: String,
    /// Explains the answers.
    pub(super) help: String,
}

/// The programs that the user has chosen, for what a line of the question cannot do.
#[derive(Default)]
pub(in crate::cli) struct QuestionPrograms {
    /// Shows all of a call. Without it, all is printed.
    pager: Option<Pager>,
    /// Writes a long reason.
    editor: Option<TextEditor>,
}

impl QuestionPrograms {
    pub(in crate::cli) fn new(environment: &Environment) -> Self {
        Self { pager: Pager::new(environment), editor: Some(TextEditor::new(environment)) }
    }
}

/// The end of a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QuestionOutcome {
    Answered(ApprovalAnswer),
    /// It was taken away, and nothing that the user types is an answer to it.
    Withdrawn,
}

/// A message to the asking thread.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    /// Show the question again, because another program has used the terminal.
    Redraw,
    Withdrawn(WithdrawalReason),
    /// The question was dropped.
    Closed,
}

/// The reason why a question is taken away.
#[derive(Clone, Copy)]
pub(super) enum WithdrawalReason {
    /// Another client approved the call.
    Approved,
    /// Another client denied the call.
    Denied,
    /// The worker that made the call has ended.
    WorkerEnded,
}

impl Signal {
    pub(super) const REDRAW: u8 = b'r';
    pub(super) const APPROVED: u8 = b'y';
    pub(super) const DENIED: u8 = b'n';
    pub(super) const WORKER_ENDED: u8 = b'w';

    /// Reads the next signal. The end of the stream means that the question was dropped.
    fn read(mut signals: &UnixStream) -> Self {
        let mut byte = [0];
        match (signals.read(&mut byte), byte[0]) {
            (Ok(1), Self::REDRAW) => Self::Redraw,
            (Ok(1), Self::APPROVED) => Self::Withdrawn(WithdrawalReason::Approved),
            (Ok(1), Self::DENIED) => Self::Withdrawn(WithdrawalReason::Denied),
            (Ok(1), _) => Self::Withdrawn(WithdrawalReason::WorkerEnded),
            _ => Self::Closed,
        }
    }
}

/// The thread of a question.
pub(super) struct Asker {
    pub(super) terminal: Terminal,
    pub(super) signals: UnixStream,
    pub(super) texts: QuestionTexts,
    pub(super) programs: Arc<QuestionPrograms>,
    pub(super) runs_program: Arc<AtomicBool>,
    pub(super) quiet: Duration,
}

/// The event that came first.
enum Wakeup {
    Signal(Signal),
    Input,
    Timeout,
}

/// The end of reading an answer.
enum Reply {
    Line(TypedLine),
    Signal(Signal),
}

/// The end of a program that had the terminal.
enum ProgramEnd {
    Left(ExitStatus),
    Signal(Signal),
}

/// The end of writing a reason.
enum Written {
    Reason(String),
    /// The reason why there is none.
    Nothing(String),
    Signal(Signal),
}

/// The exit status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Says that there is no editor, and what else there is.
const NO_EDITOR: &str =
    "no editor was found: $VISUAL or $EDITOR names one, and a reason of one line can be typed here";

/// The time between two looks at a program, which nothing else reports the end of on all systems.
const PROGRAM_LOOK: Duration = Duration::from_millis(50);

impl Asker {
    /// Asks until there is an answer or the question is taken away.
    ///
    /// # Errors
    ///
    /// The terminal is gone.
    pub(super) fn ask(&self) -> io::Result<QuestionOutcome> {
        self.write(&self.texts.call)?;
        loop {
            let signal = match self.read_reply()? {
                Reply::Line(TypedLine::Answer(answer)) => return Ok(QuestionOutcome::Answered(answer)),
                Reply::Line(TypedLine::Explain) => {
                    self.write(&wrap(&self.texts.help, columns(&self.terminal.output)))?;
                    continue;
                }
                Reply::Line(TypedLine::ShowAll) => match self.show_all()? {
                    Some(signal) => signal,
                    None => continue,
                },
                Reply::Line(TypedLine::WriteReason) => match self.write_reason()? {
                    Written::Reason(reason) => {
                        let answer = ApprovalAnswer::NoWithReason(reason);
                        return Ok(QuestionOutcome::Answered(answer));
                    }
                    Written::Nothing(why) => {
                        self.write(&self.texts.call)?;
                        self.write(&format!("  {why}\n"))?;
                        continue;
                    }
                    Written::Signal(signal) => signal,
                },
                Reply::Signal(signal) => signal,
            };
            self.write(match signal {
                Signal::Redraw => {
                    self.write("\n")?;
                    self.write(&self.texts.call)?;
                    continue;
                }
                Signal::Withdrawn(WithdrawalReason::Approved) => "\n  decided elsewhere: approved\n",
                Signal::Withdrawn(WithdrawalReason::Denied) => "\n  decided elsewhere: denied\n",
                Signal::Withdrawn(WithdrawalReason::WorkerEnded) => {
                    "\n  not asked any more: the worker has ended\n"
                }
                Signal::Closed => "\n",
            })?;
            return Ok(QuestionOutcome::Withdrawn);
        }
    }

    /// Asks for an answer and reads it, unless a signal comes first.
    fn read_reply(&self) -> io::Result<Reply> {
        if let Some(signal) = self.discard_type_ahead()? {
            return Ok(Reply::Signal(signal));
        }
        // The Ctrl-C that ended a program has reached the process by now.
        self.runs_program.store(false, Ordering::SeqCst);
        // The terminal would break it inside of words.
        self.write(&wrap(&self.texts.prompt, columns(&self.terminal.output)))?;
        self.read_answer()
    }

    /// Shows the whole call until the user has left the pager. Returns a signal that takes the question away meanwhile.
    fn show_all(&self) -> io::Result<Option<Signal>> {
        let output = &self.terminal.output;
        let started = self.programs.pager.as_ref().and_then(|pager| {
            self.runs_program.store(true, Ordering::SeqCst);
            TerminalProgram::start_with_text(pager.command(), output, &self.texts.whole_call).ok()
        });
        let Some(pager) = started else {
            self.write(&self.texts.whole_call)?;
            return Ok(None);
        };
        if let ProgramEnd::Signal(signal) = self.wait_for_end(pager)? {
            return Ok(Some(signal));
        }
        self.write(&self.texts.call)?;
        Ok(None)
    }

    /// Lets the user write a reason in the editor.
    fn write_reason(&self) -> io::Result<Written> {
        let Some(editor) = &self.programs.editor else {
            return Ok(Written::Nothing(NO_EDITOR.to_owned()));
        };
        let file = match ReasonFile::new(&self.texts.plain_call) {
            Ok(file) => file,
            Err(error) => return Ok(Written::Nothing(format!("no file for the reason: {error}"))),
        };
        self.runs_program.store(true, Ordering::SeqCst);
        let started = TerminalProgram::start_with_keys(editor.command(file.path()), &self.terminal.output);
        let Ok(program) = started else { return Ok(Written::Nothing(NO_EDITOR.to_owned())) };
        Ok(match self.wait_for_end(program)? {
            ProgramEnd::Signal(signal) => Written::Signal(signal),
            ProgramEnd::Left(status) if status.code() == Some(NOT_FOUND) => {
                Written::Nothing(NO_EDITOR.to_owned())
            }
            ProgramEnd::Left(status) if !status.success() => {
                Written::Nothing(format!("the editor ended with {status}, so nothing was decided"))
            }
            ProgramEnd::Left(_) => match file.reason() {
                Ok(reason) if reason.is_empty() => {
                    Written::Nothing("no reason was written, so nothing was decided".to_owned())
                }
                Ok(reason) => Written::Reason(reason),
                Err(error) => Written::Nothing(format!("{error}, so nothing was decided")),
            },
        })
    }

    /// Waits until the user has left a program, or ends it because a signal takes the question away.
    fn wait_for_end(&self, mut program: TerminalProgram) -> io::Result<ProgramEnd> {
        loop {
            if let Some(status) = program.end() {
                return Ok(ProgramEnd::Left(status));
            }
            match self.wait_for_signal(PROGRAM_LOOK)? {
                // The program draws its screen again by itself.
                None | Some(Signal::Redraw) => {}
                Some(signal) => {
                    program.stop();
                    return Ok(ProgramEnd::Signal(signal));
                }
            }
        }
    }

    /// Waits for a signal, and leaves what is typed to others.
    fn wait_for_signal(&self, timeout: Duration) -> io::Result<Option<Signal>> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => Ok(Some(Signal::read(&self.signals))),
            Err(error) => Err(error.into()),
        }
    }

    /// Discards what was typed before the question could be read, until nothing has come for a moment: the rest of
    /// a pasted text may still be on its way. Returns a signal that came meanwhile.
    fn discard_type_ahead(&self) -> io::Result<Option<Signal>> {
        loop {
            // Fails if this process may not use the terminal. The read then fails as well.
            tcflush(&self.terminal.input, QueueSelector::IFlush).ok();
            match self.wait(Some(self.quiet))? {
                Wakeup::Signal(signal) => return Ok(Some(signal)),
                Wakeup::Input => {}
                Wakeup::Timeout => {
                    // A line that is not complete does not wake the poll.
                    tcflush(&self.terminal.input, QueueSelector::IFlush).ok();
                    return Ok(None);
                }
            }
        }
    }

    /// Reads one line, unless a signal comes first. The end of input means no.
    fn read_answer(&self) -> io::Result<Reply> {
        let mut line = Vec::new();
        loop {
            match self.wait(None)? {
                Wakeup::Signal(signal) => return Ok(Reply::Signal(signal)),
                Wakeup::Timeout => {}
                Wakeup::Input => {
                    let mut block = [0; 4096];
                    let count = match (&self.terminal.input).read(&mut block) {
                        Ok(count) => count,
                        Err(error)
                            if matches!(
                                error.kind(),
                                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                            ) =>
                        {
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                    line.extend_from_slice(&block[..count]);
                    if line.is_empty() {
                        // The line with the question ends here, and what is printed next begins another one.
                        self.write("\n")?;
                    }
                    if count == 0 || line.ends_with(b"\n") {
                        return Ok(Reply::Line(parse_answer(&String::from_utf8_lossy(&line))));
                    }
                }
            }
        }
    }

    /// Waits for a signal or for input. Takes nothing from the terminal, so that a question that is taken away
    /// swallows no key.
    fn wait(&self, timeout: Option<Duration>) -> io::Result<Wakeup> {
        let timeout = timeout.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        loop {
            let mut fds =
                [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.terminal.input, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(Wakeup::Timeout),
                Ok(_) if !fds[0].revents().is_empty() => {
                    return Ok(Wakeup::Signal(Signal::read(&self.signals)));
                }
                Ok(_) => return Ok(Wakeup::Input),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        (&self.terminal.output).write_all(text.as_bytes())
    }
}
