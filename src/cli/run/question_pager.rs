//! The pager that shows all of a call while its question waits.

use std::{
    fs::File,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    termios::{OptionalActions, Termios, tcgetattr, tcsetattr},
};

use crate::cli::pager::Pager;

/// The time that a pager gets to restore the terminal before it is killed.
const PATIENCE: Duration = Duration::from_millis(500);

/// Leaves the alternate screen and shows the cursor, for a pager that was ended before it did so.
const RESTORE_SCREEN: &[u8] = b"\x1b[?47l\x1b[?25h\r\n";

/// A pager that has the terminal.
pub(super) struct QuestionPager {
    process: Child,
    terminal: File,
    /// The settings of the terminal before the pager changed them.
    settings: Option<Termios>,
}

impl QuestionPager {
    /// Shows `text` on the terminal. Returns `None` if the pager does not start.
    pub(super) fn start(pager: &Pager, terminal: &File, text: &str) -> Option<Self> {
        let output = || terminal.try_clone().ok();
        let mut command = pager.command();
        // stdout and stderr of the run can be pipes.
        command.stdout(output()?).stderr(output()?);
        let (terminal, settings) = (output()?, tcgetattr(terminal).ok());
        let mut process = command.spawn().ok()?;
        let mut input = process.stdin.take()?;
        let text = text.to_owned();
        // A pager reads as far as its user has scrolled. The thread ends when the pager does.
        let writer = move || drop(input.write_all(text.as_bytes()));
        thread::Builder::new().name("question pager".to_owned()).spawn(writer).ok()?;
        Some(Self { process, terminal, settings })
    }

    /// Returns true if the user has left the pager.
    pub(super) fn has_ended(&mut self) -> bool {
        let ended = self.process.try_wait();
        let has_ended = !matches!(ended, Ok(None));
        if has_ended {
            self.restore(ended.ok().flatten());
        }
        has_ended
    }

    /// Ends the pager, because the question is taken away.
    pub(super) fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).ok();
        let end = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > end {
                self.process.kill().ok();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.process.wait().ok();
        self.restore(status);
    }

    fn restore(&self, status: Option<ExitStatus>) {
        if let Some(settings) = &self.settings {
            tcsetattr(&self.terminal, OptionalActions::Drain, settings).ok();
        }
        if status.is_none_or(|status| status.signal().is_some()) {
            (&self.terminal).write_all(RESTORE_SCREEN).ok();
        }
    }
}
