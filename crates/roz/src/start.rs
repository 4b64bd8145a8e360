//! The state of a started session, and the checks of what starts a session or a turn.

use uuid::Uuid;

use kontekst_agent::{
    AgentCore, Conversation, DaemonTool, DaemonTools, ExtraContext, History, Prompt, RunOverrides,
    SPAWN_WORKER, StartRun, SubagentOptions, ToolOptions,
};
use kontekst_core::SessionId;
use kontekst_pb::roz::{
    AgentPlacement, BinaryContent, ContentBlock, RegisterTools, StartSession, UserMessage,
    content_block::Block,
};
use kontekst_store::config::RozModels;
use kontekst_tools::ClientTool;

use super::{
    client_run::TurnLabel,
    history,
    server_event::{Fault, ServerEvent, Usage},
    tools::{self, ToolRegistry},
    wire_ids::WireIds,
};

/// The longest id, in bytes, that a client may choose. It is repeated in every frame.
const MAX_ID_BYTES: usize = 256;

/// The most context, in bytes, that `RegisterTools` may leave for the next turn.
const MAX_PENDING_CONTEXT: usize = 256 * 1024;

/// A session that was started.
pub(super) struct OpenSession {
    pub(super) id: SessionId,
    pub(super) conversation: Conversation,
    pub(super) wire_ids: WireIds,
    pub(super) totals: Usage,
    settings: SessionSettings,
    tools: ToolRegistry,
    /// Context that `RegisterTools` left for the next turn whose message brings none.
    pending_context: Option<String>,
    turn_count: u32,
    /// The client was told that there are no modes here.
    mode_note_sent: bool,
}

/// The settings that the start of a session makes for all of its turns.
struct SessionSettings {
    agent: String,
    model: Option<String>,
    project_context: Vec<String>,
    context_size: Option<u32>,
    /// The daemon's own tools that a turn has besides the client's.
    daemon_tools: Vec<DaemonTool>,
}

/// A turn that can begin.
pub(super) struct TurnStart {
    pub(super) request: StartRun,
    pub(super) turn: TurnLabel,
    /// A sentence for the client about how the turn runs.
    pub(super) note: Option<String>,
}

impl OpenSession {
    /// Opens a session and returns it with the event that says so. Takes up to two seconds when the model server
    /// does not answer.
    ///
    /// # Errors
    ///
    /// A [`Fault`] that ends the stream.
    pub(super) async fn new(core: &AgentCore, start: StartSession) -> Result<(Self, ServerEvent), Fault> {
        if start.agent_placement() == AgentPlacement::Edge {
            return Err(Fault::invalid_argument("this daemon has no edge workers; use AUTO or CLOUD"));
        }
        if start.history.len() > history::MAX_MESSAGES {
            let (count, limit) = (start.history.len(), history::MAX_MESSAGES);
            let message = format!("a history of {count} messages; the limit is {limit}");
            return Err(Fault::invalid_argument(message));
        }
        if start.host_id.as_ref().is_some_and(|host| !host.is_empty()) {
            tracing::info!(
                "a session names a host; this daemon has no hosts, so the session runs without one"
            );
        }
        let tools = ToolRegistry::new(tools::parse_tools(start.tools)?);
        let config = &core.config().roz;
        let mut daemon_tools = core.daemon_tools().await;
        daemon_tools.retain(|tool| config.daemon_tools.contains(&tool.name));
        let requested_model = start.model.unwrap_or_default();
        let model = core.choose_model(&config.agent, resolve_alias(&requested_model, &config.models)).await;
        let id: SessionId = Uuid::new_v4().to_string().parse().expect("a UUID is a good name");
        let started = ServerEvent::Started {
            session: id.to_string(),
            model: model.name,
            permissions: tools.permissions(&daemon_tools),
        };
        let session = Self {
            conversation: Conversation::new(id.clone(), history::messages(start.history)),
            id,
            wire_ids: WireIds::default(),
            totals: Usage::default(),
            settings: SessionSettings {
                agent: config.agent.clone(),
                model: model.requested,
                project_context: start.project_context,
                context_size: start.max_context_tokens.filter(|&tokens| tokens > 0),
                daemon_tools,
            },
            tools,
            pending_context: None,
            turn_count: 0,
            mode_note_sent: false,
        };
        Ok((session, started))
    }

    /// Changes the tools of the turns to come.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if something is too long or a tool is not usable. Nothing has changed then.
    pub(super) fn register(&mut self, register: RegisterTools) -> Result<(), Fault> {
        let context = non_blank(register.system_context);
        if context.as_ref().is_some_and(|context| context.len() > MAX_PENDING_CONTEXT) {
            let message = format!("system_context has more than {MAX_PENDING_CONTEXT} bytes");
            return Err(Fault::invalid_argument(message));
        }
        let source = register.source.unwrap_or_default();
        if source.len() > MAX_ID_BYTES {
            return Err(Fault::invalid_argument(format!("source has more than {MAX_ID_BYTES} bytes")));
        }
        self.tools.register(&source, tools::parse_tools(register.tools)?)?;
        // A later context replaces an earlier one, whatever their sources.
        if context.is_some() {
            self.pending_context = context;
        }
        Ok(())
    }

    /// Checks a message and builds the run that answers it.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the message is empty or something in it is too long or not usable. No turn begins then.
    pub(super) fn begin_turn(&mut self, message: UserMessage) -> Result<TurnStart, Fault> {
        let message_id = message.message_id.unwrap_or_default();
        if message_id.len() > MAX_ID_BYTES {
            return Err(Fault::invalid_argument(format!("message_id has more than {MAX_ID_BYTES} bytes")));
        }
        if message.content.trim().is_empty() {
            return Err(Fault::invalid_argument("the message is empty"));
        }
        let client_tools =
            if message.tools.is_empty() { self.tools.snapshot() } else { tools::parse_tools(message.tools)? };
        let daemon_tools = self.settings.daemon_tools_besides(&client_tools);
        // A context in the message comes before a pending one, which then stays for a later turn.
        let context = non_blank(message.system_context).or_else(|| self.pending_context.take());
        let blocks = message.context.into_iter().filter_map(context_block);
        let settings = &self.settings;
        let request = StartRun {
            prompt: Prompt::Text(message.content),
            history: History::InMemory(self.conversation.clone()),
            agent: settings.agent.clone(),
            subagents: SubagentOptions {
                allow: daemon_tools.iter().any(|name| name == SPAWN_WORKER),
                ..SubagentOptions::default()
            },
            tools: ToolOptions {
                daemon: DaemonTools::Only(daemon_tools),
                client: client_tools,
                ..ToolOptions::default()
            },
            context: ExtraContext {
                system: settings.project_context.clone(),
                before_prompt: context.into_iter().chain(blocks).collect(),
                ..ExtraContext::default()
            },
            overrides: RunOverrides {
                model: settings.model.clone(),
                context_size: settings.context_size,
                ..RunOverrides::default()
            },
            ..StartRun::default()
        };
        let note = self.mode_note(message.ai_mode);
        self.turn_count += 1;
        let turn = TurnLabel {
            message_id: if message_id.is_empty() { Uuid::new_v4().to_string() } else { message_id },
            correlation: Uuid::new_v4(),
            index: self.turn_count,
        };
        Ok(TurnStart { request, turn, note })
    }

    /// Returns a note that there are no modes here, the first time that a message asks for one.
    fn mode_note(&mut self, mode: Option<String>) -> Option<String> {
        if self.mode_note_sent || !mode?.starts_with("ooda") {
            return None;
        }
        self.mode_note_sent = true;
        Some("there are no modes here: this runs as react".to_owned())
    }
}

impl SessionSettings {
    /// Returns the names of the daemon's tools that none of `client_tools` replaces. A tool of the client replaces the
    /// daemon's tool of the same name.
    fn daemon_tools_besides(&self, client_tools: &[ClientTool]) -> Vec<String> {
        let is_replaced = |own: &DaemonTool| client_tools.iter().any(|tool| tool.def.name == own.name);
        self.daemon_tools.iter().filter(|own| !is_replaced(own)).map(|own| own.name.clone()).collect()
    }
}

fn non_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Returns a labelled block as the model reads it, or `None` if it is empty.
fn context_block(block: ContentBlock) -> Option<String> {
    let label = non_blank(block.label).unwrap_or_else(|| "Context".to_owned());
    match block.block? {
        Block::Text(text) if text.trim().is_empty() => None,
        Block::Text(text) => Some(format!("[{label}]\n{text}")),
        Block::Binary(BinaryContent { mime_type, data }) => {
            let kind = history::printable_media_type(&mime_type);
            Some(format!("[{label}]\n({kind}, {} bytes, not shown)", data.len()))
        }
    }
}

/// Returns the configured model that a short name stands for. Any other name stands for itself.
fn resolve_alias<'a>(model: &'a str, models: &'a RozModels) -> &'a str {
    match model {
        "fast" => &models.fast,
        "standard" => &models.standard,
        "max" => &models.max,
        name => name,
    }
}
