//! The answers of the model: each is asked for, again where that helps, and its calls are checked.

mod answer_format;
mod busy_server;
mod check;
mod generate;
mod next_turn;
mod route;
mod whole_file;

pub(crate) use generate::summarize_history;
pub(crate) use next_turn::{NextTurn, next_turn};
