//! The state of a chat that its commands change.

use std::{process::ExitCode, rc::Rc};

use crate::{
    cli::{
        output::print_status,
        run::{RunSender, TerminalMode},
    },
    config::Home,
    pb::StartRunCommand,
};

/// The next run of a chat, and everything that sends it.
pub(super) struct ChatState<'a> {
    pub(super) home: &'a Home,
    pub(super) sender: RunSender<'a>,
    /// The next run, without its prompt.
    pub(super) start: StartRunCommand,
    /// `None` on a terminal that has no cursor to move.
    pub(super) mode: Option<Rc<TerminalMode>>,
}

/// The way in which the chat goes on after a line.
pub(super) enum Next {
    Line,
    Leave(ExitCode),
}

/// Says something that is no part of an answer.
pub(super) fn note(text: &str) {
    text.lines().for_each(print_status);
}
