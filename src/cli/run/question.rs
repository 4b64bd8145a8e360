//! One question on the terminal, asked by a thread of its own, so that the run can be interrupted meanwhile.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::unix::{fs::OpenOptionsExt as _, net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    termios::{QueueSelector, tcflush},
};
use tokio::sync::oneshot;

use crate::cli::pager::Pager;

use super::{
    approval_prompt::{ApprovalAnswer, TypedLine, parse_answer},
    question_pager::QuestionPager,
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

/// A question that is on the terminal. Dropping it takes it away.
pub(super) struct Question {
    /// Carries [`Signal`]s to the thread.
    signals: UnixStream,
    outcome: oneshot::Receiver<QuestionOutcome>,
    /// A pager has the terminal, or has just ended.
    is_paging: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The texts of a question. All of them are ready for the terminal.
pub(super) struct QuestionTexts {
    /// The call, shortened where it is long.
    pub(super) call: String,
    pub(super) whole_call: String,
    /// The line that asks for an answer.
    pub(super) prompt: String,
    /// Explains the answers.
    pub(super) help: String,
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
enum Signal {
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
    const REDRAW: u8 = b'r';
    const APPROVED: u8 = b'y';
    const DENIED: u8 = b'n';
    const WORKER_ENDED: u8 = b'w';

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

impl Question {
    /// Shows the call, and below it the prompt. Only what is typed after that, and after the terminal was silent for
    /// `quiet`, is an answer. The whole call is shown by `pager`, or printed if there is none or it does not start.
    ///
    /// # Errors
    ///
    /// The system gives no thread or no socket.
    pub(super) fn ask(
        terminal: Terminal,
        texts: QuestionTexts,
        pager: Option<Arc<Pager>>,
        quiet: Duration,
    ) -> io::Result<Self> {
        let (signals, receiver) = UnixStream::pair()?;
        let (sender, outcome) = oneshot::channel();
        let is_paging = Arc::new(AtomicBool::new(false));
        let asker =
            Asker { terminal, signals: receiver, texts, pager, is_paging: Arc::clone(&is_paging), quiet };
        let thread = thread::Builder::new().name("question".to_owned()).spawn(move || {
            // An error means that the terminal is gone.
            let outcome = asker.ask().unwrap_or(QuestionOutcome::Answered(ApprovalAnswer::No));
            sender.send(outcome).ok();
        })?;
        Ok(Self { signals, outcome, is_paging, thread: Some(thread) })
    }

    /// Returns true if a pager has the terminal, or has just ended: the question is not there to be answered.
    pub(super) fn is_paging(&self) -> bool {
        self.is_paging.load(Ordering::SeqCst)
    }

    /// Waits for the end of the question. Nothing is lost if the returned future is dropped early.
    pub(super) async fn outcome(&mut self) -> QuestionOutcome {
        (&mut self.outcome).await.unwrap_or(QuestionOutcome::Withdrawn)
    }

    /// Shows the question again.
    pub(super) fn redraw(&self) {
        self.signal(Signal::REDRAW);
    }

    /// Takes the question away and says why. [`Question::outcome`] then resolves.
    pub(super) fn withdraw(&self, why: WithdrawalReason) {
        self.signal(match why {
            WithdrawalReason::Approved => Signal::APPROVED,
            WithdrawalReason::Denied => Signal::DENIED,
            WithdrawalReason::WorkerEnded => Signal::WORKER_ENDED,
        });
    }

    fn signal(&self, byte: u8) {
        // Fails only if the thread has ended, and then the question has its answer.
        (&self.signals).write_all(&[byte]).ok();
    }
}

impl Drop for Question {
    /// Waits until a pager has ended, which would otherwise be left alone with the terminal.
    fn drop(&mut self) {
        self.signals.shutdown(Shutdown::Both).ok();
        if self.is_paging()
            && let Some(thread) = self.thread.take()
        {
            thread.join().ok();
        }
    }
}

/// The thread of a question.
struct Asker {
    terminal: Terminal,
    signals: UnixStream,
    texts: QuestionTexts,
    pager: Option<Arc<Pager>>,
    is_paging: Arc<AtomicBool>,
    quiet: Duration,
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

/// The time between two looks at a pager, which nothing else reports the end of on all systems.
const PAGER_LOOK: Duration = Duration::from_millis(50);

impl Asker {
    fn ask(&self) -> io::Result<QuestionOutcome> {
        self.write(&self.texts.call)?;
        loop {
            let signal = match self.read_reply()? {
                Reply::Line(TypedLine::Answer(answer)) => return Ok(QuestionOutcome::Answered(answer)),
                Reply::Line(TypedLine::Explain) => {
                    self.write(&self.texts.help)?;
                    continue;
                }
                Reply::Line(TypedLine::ShowAll) => match self.show_all()? {
                    Some(signal) => signal,
                    None => continue,
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
        // The Ctrl-C that ended a pager has reached the process by now.
        self.is_paging.store(false, Ordering::SeqCst);
        self.write(&self.texts.prompt)?;
        self.read_answer()
    }

    /// Shows the whole call until the user has left the pager. Returns a signal that takes the question away meanwhile.
    fn show_all(&self) -> io::Result<Option<Signal>> {
        self.is_paging.store(true, Ordering::SeqCst);
        let pager = self.pager.as_ref();
        let started = pager
            .and_then(|pager| QuestionPager::start(pager, &self.terminal.output, &self.texts.whole_call));
        let Some(mut pager) = started else {
            self.write(&self.texts.whole_call)?;
            return Ok(None);
        };
        while !pager.has_ended() {
            match self.wait_for_signal(PAGER_LOOK)? {
                // The pager draws its screen again by itself.
                None | Some(Signal::Redraw) => {}
                Some(signal) => {
                    pager.stop();
                    return Ok(Some(signal));
                }
            }
        }
        self.write(&self.texts.call)?;
        Ok(None)
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
