//! What it costs to know how long a conversation is.

use std::fmt::Write as _;

use serde_json::json;

use super::{WINDOW, events, llama, of_type, with_server};
use crate::{Failure, lab::Setup, real::Real, table::Row, tap::Tap};

const MESSAGES: usize = 100;

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let real = Real::start(llama(setup)?, WINDOW)?;
    let tap = Tap::before(real.address)?;
    let desk = with_server(setup, tap.address)?;
    let mut session = String::new();
    for message in 0..MESSAGES {
        let role = if message % 2 == 0 { "user" } else { "assistant" };
        let content = format!("Message {message}: it works as expected.");
        let tokens = real.count(&content)?;
        writeln!(session, "{}", json!({ "role": role, "content": content, "tokens": tokens }))?;
    }
    std::fs::create_dir_all(desk.home.join("sessions"))?;
    std::fs::write(desk.home.join("sessions/long.jsonl"), session)?;

    let events = events(desk.kontekst(&["run", "--json", "--session", "long", "And now?"]))?;
    let messages = of_type(&events, "turn_completed")?["context"]["total_messages"].as_u64().unwrap_or(0);
    if messages <= MESSAGES as u64 {
        return Err(format!("only {messages} messages were sent").into());
    }
    let requests = tap.bodies("/tokenize").len();
    Ok(vec![Row::amount("to tokenise 100 messages", requests as f64, 1.0, "requests")])
}
