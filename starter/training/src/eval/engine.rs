//! A model file under examination, in kontekst's own engine: the chat template that is in the file, its tokens,
//! and calls as kontekst reads them.

use std::{path::PathBuf, sync::Arc};

use kontekst::{
    config::ToolsConfig,
    core::{CallId, Cancel, Message, OwnListeners, Role as Speaker, Sampling, ToolCall, ToolDef, ToolResult},
    provider::{
        ChatRequest, Provider, ToolRole,
        builtin::{ModelSource, OpenError, OpenModels, Settings},
    },
};
use serde_json::Value;

use super::Model;
use crate::data::Role;

/// Tokens in the window, and in an answer.
const WINDOW: u32 = 4096;
const LONGEST: u32 = 1200;

pub struct InEngine {
    /// The owner that keeps it loaded.
    models: Arc<OpenModels>,
    provider: Arc<dyn Provider>,
    tools: Arc<[ToolDef]>,
}

impl InEngine {
    /// # Errors
    ///
    /// The file is not a model that the engine can run.
    pub fn open(file: PathBuf) -> Result<Self, String> {
        let settings = Settings { context_size: WINDOW, max_loaded: 1, keep_warm: None };
        let models = OpenModels::new(settings);
        let provider = models.open(&ModelSource::File(file), None, &Cancel::new(), &mut |_| {});
        let provider = provider.map_err(|error| match error {
            OpenError::Unsupported(reason) => reason,
            OpenError::Failed(error) => error.to_string(),
        })?;
        let tools = kontekst::tools::builtin::all(&ToolsConfig::default(), &OwnListeners::default());
        Ok(Self { models, provider, tools: tools.iter().map(|tool| tool.def()).collect() })
    }
}

impl Drop for InEngine {
    fn drop(&mut self) {
        self.models.stop();
    }
}

impl Model for InEngine {
    fn answer(&mut self, conversation: &[(Role, String)]) -> String {
        let request = ChatRequest {
            system: "You are an agent.".into(),
            messages: messages(conversation),
            tools: Arc::clone(&self.tools),
            sampling: Sampling::default(),
            max_tokens: LONGEST,
            tool_role: ToolRole::Auto,
            force: None,
            session: None,
            prompt_tokens: 0,
        };
        match self.provider.generate(&request, &Cancel::new(), &mut |_| {}) {
            Ok(turn) => match turn.calls.first() {
                Some(call) => {
                    format!(
                        "<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>",
                        call.name, call.arguments
                    )
                }
                None => turn.content,
            },
            Err(error) => format!("<tool_call>{error}"),
        }
    }
}

/// As the agent would have them.
fn messages(conversation: &[(Role, String)]) -> Vec<Message> {
    let mut name = String::new();
    let mut messages = Vec::new();
    for (role, text) in conversation {
        let call = text.strip_prefix("<tool_call>\n").and_then(|call| call.strip_suffix("}\n</tool_call>"));
        messages.push(match (role, call) {
            (Role::User, _) => Message::text(Speaker::User, text),
            (Role::Tool, _) => Message::result(ToolResult {
                call_id: CallId::new("call"),
                name: name.clone(),
                output: text.clone(),
                is_error: false,
            }),
            (Role::Assistant, Some(call)) => {
                // The arguments to the byte, as the engine hands them on.
                let (head, arguments) = call.split_once(", \"arguments\": ").unwrap_or((call, "{}"));
                name = serde_json::from_str::<Value>(&format!("{head}}}"))
                    .ok()
                    .and_then(|head| head["name"].as_str().map(str::to_owned))
                    .unwrap_or_default();
                let call =
                    ToolCall { id: CallId::new("call"), name: name.clone(), arguments: arguments.to_owned() };
                Message { tool_calls: vec![call], ..Message::text(Speaker::Assistant, "") }
            }
            (Role::Assistant, None) => Message::text(Speaker::Assistant, text),
        });
    }
    messages
}
