//! The model client, the router and the supervisor against servers of our own making.
#![allow(clippy::unwrap_used, reason = "tests")]

mod cancel;
mod chat;
mod failover;
mod hostile_server;
mod prompted;
mod real_llama;
mod supervisor;
mod transcripts;

use std::{sync::Arc, time::Duration};

use kontekst::{
    core::{Cancel, Message, Role, Sampling, ToolDef},
    provider::{
        ChatRequest, Delta, Provider as _, ProviderError, ToolRole, Turn,
        openai::{OpenAiProvider, Probe, Server, ServerClient, Timing, probe},
    },
};
use serde_json::json;

/// Short enough for tests, long enough for a busy machine.
const TIMING: Timing = Timing {
    connect: Duration::from_secs(5),
    probe: Duration::from_secs(5),
    first_token: Duration::from_secs(20),
    between_tokens: Duration::from_secs(20),
    after_finish: Duration::from_millis(200),
    load: Duration::from_secs(20),
    backoff: Duration::from_millis(1),
};

/// The provider for what answers at `url`.
fn connect(url: &str, timing: Timing) -> OpenAiProvider {
    let link = ServerClient::new(url, None, timing.connect);
    let Probe::Ready(found) = probe(&link, "tiny.gguf", &Cancel::new(), timing.probe).unwrap() else {
        panic!("it is loading")
    };
    OpenAiProvider::new(Arc::new(Server::new(link, found.slots, timing)), "tiny.gguf", found)
}

fn prompt(text: &str) -> ChatRequest {
    ChatRequest {
        system: "Be brief.".into(),
        messages: vec![Message::text(Role::User, text)],
        tools: Arc::new([]),
        sampling: Sampling::default(),
        max_tokens: 64,
        tool_role: ToolRole::Auto,
        force_tool: None,
        session: None,
        prompt_tokens: 0,
    }
}

fn read_file() -> ToolDef {
    ToolDef {
        name: "read_file".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }
}

/// Asks and collects the deltas.
fn ask(provider: &OpenAiProvider, request: &ChatRequest) -> (Result<Turn, ProviderError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let turn = provider.generate(request, &Cancel::new(), &mut |delta| deltas.push(delta));
    (turn, deltas)
}

/// The text of the deltas, put together.
fn text(deltas: &[Delta]) -> String {
    let text = |delta: &Delta| if let Delta::Text(text) = delta { text.clone() } else { String::new() };
    deltas.iter().map(text).collect()
}
