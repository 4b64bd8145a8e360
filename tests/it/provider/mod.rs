//! The model client, the router and the supervisor with fake servers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod cancel;
mod chat;
mod discovery;
mod failover;
mod hostile_server;
mod prompted;
mod real_llama;
mod steps;
mod strangers;
mod supervisor;
mod transcripts;
mod windows;

use std::{sync::Arc, time::Duration};

use kontekst_core::{AnswerOptions, Cancel, Message, Role, Sampling, ToolDef, ToolResult};
use kontekst_provider::{
    ChatRequest, Delta, Provider as _, ProviderError, StepOptions, ToolRole, Turn,
    openai::{OpenAiProvider, Probe, Server, ServerClient, Timing, probe},
};
use serde_json::json;

/// Time limits that are short enough for tests and long enough for a busy machine.
const TIMING: Timing = Timing {
    connect: Duration::from_secs(5),
    probe: Duration::from_secs(5),
    first_token: Duration::from_secs(20),
    between_tokens: Duration::from_secs(20),
    after_finish: Duration::from_millis(200),
    load: Duration::from_secs(20),
    backoff: Duration::from_millis(1),
};

/// Probes the server at `url` and returns a provider for it.
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
        options: AnswerOptions::default(),
        max_tokens: 64,
        tool_role: ToolRole::Auto,
        rescue: true,
        thinking: true,
        steps: StepOptions { reminder: true, ..StepOptions::default() },
        force_tool: None,
        session: None,
        prompt_tokens: 0,
    }
}

/// Adds an answer with a call of `read_file`, and the result of the call.
fn push_result(request: &mut ChatRequest, turn: &Turn, output: &str) {
    let mut assistant = Message::text(Role::Assistant, "");
    assistant.tool_calls.clone_from(&turn.calls);
    request.messages.push(assistant);
    request.messages.push(Message::result(ToolResult {
        call_id: turn.calls[0].id.clone(),
        name: "read_file".to_owned(),
        output: output.to_owned(),
        is_error: false,
    }));
}

fn read_file() -> ToolDef {
    ToolDef {
        name: "read_file".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        ..ToolDef::default()
    }
}

/// Sends a request and collects the deltas of the answer.
fn ask(provider: &OpenAiProvider, request: &ChatRequest) -> (Result<Turn, ProviderError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let turn = provider.generate(request, &Cancel::new(), &mut |delta| deltas.push(delta));
    (turn, deltas)
}

/// Returns the text of all deltas.
fn text(deltas: &[Delta]) -> String {
    let text = |delta: &Delta| if let Delta::Text(text) = delta { text.clone() } else { String::new() };
    deltas.iter().map(text).collect()
}
