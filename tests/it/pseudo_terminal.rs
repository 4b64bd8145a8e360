//! Runs the real binary on a pseudo-terminal: what it writes there, and what a person types.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::{
    test_home::TestHome,
    wait::{Deadline, TIMEOUT},
};

/// The time between two looks at a command that prints nothing and is to end.
const LOOK: Duration = Duration::from_millis(10);

/// A command whose controlling terminal is a pseudo-terminal.
pub(crate) struct TerminalCommand {
    child: Child,
    keyboard: File,
    output: mpsc::Receiver<Vec<u8>>,
    /// Everything that was on the screen.
    screen: String,
    /// The part of the screen that earlier waits have passed, in bytes.
    passed: usize,
    /// Keeps what was typed and not read.
    terminal: File,
}

impl TestHome {
    /// Starts a command on a terminal of its own, with stdin, stdout and stderr there.
    pub(crate) fn on_terminal(&self, words: &[&str]) -> TerminalCommand {
        self.on_terminal_with(words, 0, &[("NO_COLOR", "1")])
    }

    /// Does what [`TestHome::on_terminal`] does, on a terminal with this many columns and with variables.
    pub(crate) fn on_terminal_with(
        &self,
        words: &[&str],
        columns: u16,
        variables: &[(&str, &str)],
    ) -> TerminalCommand {
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_kontekst"));
        self.program_on_terminal(binary, words, columns, variables)
    }

    /// Starts any program on a terminal of its own.
    pub(crate) fn program_on_terminal(
        &self,
        program: &std::path::Path,
        words: &[&str],
        columns: u16,
        variables: &[(&str, &str)],
    ) -> TerminalCommand {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let flags = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true).write(true), flags);
        let terminal = options.open(name).unwrap();
        if columns > 0 {
            let size = rustix::termios::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            rustix::termios::tcsetwinsize(&terminal, size).unwrap();
        }
        // A new session has no terminal. `setsid --ctty` gives it the one on stdin.
        let mut command = Command::new("/usr/bin/setsid");
        command.arg("--ctty").arg(program).args(words).env_clear();
        command
            .env("KONTEKST_HOME", self.root())
            .envs(variables.iter().copied())
            .env("KONTEKST_PORTS", "")
            .current_dir(self.work_dir());
        let stdio = || Stdio::from(terminal.try_clone().unwrap());
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        drop(command);
        let output = read_in_thread(keyboard.try_clone().unwrap());
        let keyboard = File::from(keyboard);
        TerminalCommand { child, keyboard, output, screen: String::new(), passed: 0, terminal }
    }
}

impl TerminalCommand {
    /// Waits until `text` is on the screen, below what earlier calls waited for. Returns what came before it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        // A line that is drawn again every second must not make this wait forever.
        let deadline = Deadline::start();
        loop {
            if let Some(at) = self.screen[self.passed..].find(text) {
                let before = self.screen[self.passed..self.passed + at].to_owned();
                self.passed += at + text.len();
                return before;
            }
            match self.output.recv_timeout(deadline.left()) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} is not on the screen:\n{}", self.screen),
            }
        }
    }

    /// Types keys. A line ends with `\n`; `\x03` is Ctrl-C and `\x04` Ctrl-D.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the end of the command. Returns its exit code and everything that was on the screen.
    #[track_caller]
    pub(crate) fn end(self) -> (i32, String) {
        let (code, screen, _) = self.end_with_unread_line();
        (code, screen)
    }

    /// Waits for the end, which must have this exit code, and returns the whole screen.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> String {
        let (ended, screen) = self.end();
        assert_eq!(ended, code, "{screen}");
        screen
    }

    /// Does what [`TerminalCommand::end`] does, and also returns the line that was typed and that nobody has read.
    #[track_caller]
    pub(crate) fn end_with_unread_line(mut self) -> (i32, String, String) {
        let deadline = Deadline::start();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(!deadline.left().is_zero(), "the command has not ended:\n{:?}", self.screen);
            if let Ok(bytes) = self.output.recv_timeout(LOOK) {
                self.screen.push_str(&String::from_utf8_lossy(&bytes));
            }
        };
        let unread = self.unread_line();
        drop(self.terminal);
        while let Ok(bytes) = self.output.recv_timeout(TIMEOUT) {
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status.code().unwrap_or(-1), self.screen, unread)
    }

    fn unread_line(&mut self) -> String {
        rustix::io::ioctl_fionbio(&self.terminal, true).unwrap();
        let mut line = [0; 256];
        let count = self.terminal.read(&mut line).unwrap_or(0);
        String::from_utf8_lossy(&line[..count]).into_owned()
    }
}

/// Reads until every process has closed the terminal.
fn read_in_thread(keyboard: OwnedFd) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    let mut keyboard = File::from(keyboard);
    thread::spawn(move || {
        let mut block = [0; 4096];
        let mut bytes = Vec::new();
        while let Ok(count @ 1..) = keyboard.read(&mut block) {
            bytes.extend_from_slice(&block[..count]);
            // The rest of a character comes with the next block.
            let whole = match std::str::from_utf8(&bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => bytes.len(),
            };
            if send.send(bytes.drain(..whole).collect()).is_err() {
                return;
            }
        }
    });
    receive
}

/// Returns the text of a screen without the sequences that move the cursor or set colours, each replaced by a blank.
pub(crate) fn without_escapes(screen: &str) -> String {
    let mut text = String::with_capacity(screen.len());
    let mut rest = screen;
    while let Some((before, sequence)) = rest.split_once("\x1b[") {
        text.push_str(before);
        text.push(' ');
        let end = sequence.find(|c: char| ('@'..='~').contains(&c)).map_or(sequence.len(), |at| at + 1);
        rest = &sequence[end..];
    }
    text.push_str(rest);
    text
}

/// Returns the rows that a terminal of 24 rows shows, and before them those that have left it at the top. Rows into which the
/// terminal has broken a line are one.
pub(crate) fn rows_of(screen: &str, columns: u16) -> Vec<String> {
    const ROWS: u16 = 24;
    let mut terminal = vt100::Parser::new(ROWS, columns, 100_000);
    terminal.process(screen.as_bytes());
    terminal.screen_mut().set_scrollback(usize::MAX);
    let mut rows: Vec<String> = Vec::new();
    let mut is_wrapped = false;
    let mut above = terminal.screen().scrollback();
    loop {
        terminal.screen_mut().set_scrollback(above);
        // The rows that are to be seen now and were not before.
        let count = if above == 0 { ROWS } else { u16::try_from(above).unwrap_or(ROWS).min(ROWS) };
        for (number, row) in (0..count).zip(terminal.screen().rows(0, columns)) {
            match rows.last_mut() {
                Some(last) if is_wrapped => last.push_str(&row),
                _ => rows.push(row),
            }
            is_wrapped = terminal.screen().row_wrapped(number);
        }
        if above == 0 {
            break;
        }
        above -= usize::from(count);
    }
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}
