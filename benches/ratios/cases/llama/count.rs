//! The number of requests that it takes to count the tokens of a conversation.

use std::fmt::Write as _;

use serde_json::json;

use super::{WINDOW, events, llama, of_type, with_server};
use crate::{
    Failure, fixture::Options, llama_server::LlamaServer, recording_proxy::RecordingProxy, table::Row,
};

const MESSAGES: usize = 100;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let llama_server = LlamaServer::start(llama(options)?, WINDOW)?;
    let proxy = RecordingProxy::before(llama_server.address)?;
    let home = with_server(options, proxy.address)?;
    let mut session = String::new();
    for message in 0..MESSAGES {
        let role = if message % 2 == 0 { "user" } else { "assistant" };
        let content = format!("Message {message}: it works as expected.");
        let tokens = llama_server.count(&content)?;
        writeln!(session, "{}", json!({ "role": role, "content": content, "tokens": tokens }))?;
    }
    std::fs::create_dir_all(home.data_dir.join("sessions"))?;
    std::fs::write(home.data_dir.join("sessions/long.jsonl"), session)?;

    let events = events(home.kontekst(&["run", "--json", "--session", "long", "And now?"]))?;
    let messages = of_type(&events, "turn_completed")?["context"]["total_messages"].as_u64().unwrap_or(0);
    if messages <= MESSAGES as u64 {
        return Err(format!("only {messages} messages were sent").into());
    }
    let requests = proxy.bodies("/tokenize").len();
    Ok(vec![Row::amount("to tokenise 100 messages", requests as f64, 1.0, "requests")])
}
