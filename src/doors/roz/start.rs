//! The start of a session, and of each of its turns.

use uuid::Uuid;

use crate::{
    agent::{
        AgentCore, Conversation, DaemonTool, DaemonTools, ExtraContext, History, Prompt, RunOverrides,
        SPAWN_WORKER, StartRun, SubagentOptions, ToolOptions,
    },
    config::RozModels,
    core::SessionId,
    pb::roz::{
        AgentPlacement, BinaryContent, ContentBlock, RegisterTools, StartSession, UserMessage,
        content_block::Block,
    },
};

use super::{
    client_run::WireIds,
    history,
    server_event::{Fault, ServerEvent, Usage},
    tools::{self, ToolRegistry},
};

/// Bytes of an id that a client makes up; it comes back in every frame.
const MAX_ID_BYTES: usize = 256;
/// Bytes of context that a message may leave for the next turn.
const MAX_PENDING_CONTEXT: usize = 256 * 1024;

/// A session that was started.
pub(super) struct OpenSession {
    pub(super) id: SessionId,
    pub(super) conversation: Conversation,
    agent: String,
    model: Option<String>,
    project_context: Vec<String>,
    context_size: Option<u32>,
    tools: ToolRegistry,
    /// The daemon's tools that join the client's.
    daemon_tools: Vec<DaemonTool>,
    /// Left by `RegisterTools` for the next turn that brings none of its own.
    pending_context: Option<String>,
    turn_count: u32,
    pub(super) wire_ids: WireIds,
    pub(super) totals: Usage,
    mode_note_sent: bool,
}

/// A turn that can begin.
pub(super) struct TurnStart {
    pub(super) request: StartRun,
    pub(super) message: String,
    pub(super) index: u32,
    /// What the client should know about it.
    pub(super) note: Option<String>,
}

impl OpenSession {
    /// Takes a session's start.
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
            return Err(Fault::invalid_argument(format!(
                "a history of {count} messages; the limit is {limit}"
            )));
        }
        if start.host_id.as_ref().is_some_and(|host| !host.is_empty()) {
            tracing::info!("a session names a host; there are none here, and it runs without");
        }
        let tools = ToolRegistry::new(tools::parse_tools(start.tools)?);
        let config = &core.config().roz;
        let mut own = core.daemon_tools().await;
        own.retain(|tool| config.daemon_tools.contains(&tool.name));
        let model = core
            .choose_model(&config.agent, resolve_alias(&start.model.unwrap_or_default(), &config.models))
            .await;
        let id: SessionId = Uuid::new_v4().to_string().parse().expect("a UUID is a good name");
        let news = ServerEvent::Started {
            session: id.to_string(),
            model: model.name,
            permissions: tools.permissions(&own),
        };
        let open = Self {
            conversation: Conversation::new(id.clone(), history::messages(start.history)),
            id,
            agent: config.agent.clone(),
            model: model.requested,
            project_context: start.project_context,
            context_size: start.max_context_tokens.filter(|&tokens| tokens > 0),
            tools,
            daemon_tools: own,
            pending_context: None,
            turn_count: 0,
            wire_ids: WireIds::default(),
            totals: Usage::default(),
            mode_note_sent: false,
        };
        Ok((open, news))
    }

    /// Changes the tools of the turns to come.
    pub(super) fn register(&mut self, register: RegisterTools) -> Result<(), Fault> {
        let context = register.system_context.filter(|context| !context.trim().is_empty());
        if context.as_ref().is_some_and(|context| context.len() > MAX_PENDING_CONTEXT) {
            return Err(Fault::invalid_argument(format!(
                "system_context has more than {MAX_PENDING_CONTEXT} bytes"
            )));
        }
        let source = register.source.unwrap_or_default();
        if source.len() > MAX_ID_BYTES {
            return Err(Fault::invalid_argument(format!("source has more than {MAX_ID_BYTES} bytes")));
        }
        self.tools.register(&source, tools::parse_tools(register.tools)?)?;
        // The last one to leave something is read, whatever its source.
        if context.is_some() {
            self.pending_context = context;
        }
        Ok(())
    }

    /// Takes a prompt.
    pub(super) fn begin_turn(&mut self, message: UserMessage) -> Result<TurnStart, Fault> {
        let id = message.message_id.unwrap_or_default();
        if id.len() > MAX_ID_BYTES {
            return Err(Fault::invalid_argument(format!("message_id has more than {MAX_ID_BYTES} bytes")));
        }
        if message.content.trim().is_empty() {
            return Err(Fault::invalid_argument("the message is empty"));
        }
        let client_tools = match message.tools {
            none if none.is_empty() => self.tools.snapshot(),
            snapshot => tools::parse_tools(snapshot)?,
        };
        let ours =
            self.daemon_tools.iter().filter(|own| client_tools.iter().all(|tool| tool.def.name != own.name));
        let own: Vec<String> = ours.map(|own| own.name.clone()).collect();
        // What comes with the message goes first, and leaves what is pending where it is.
        let inline = message.system_context.filter(|context| !context.trim().is_empty());
        let workflow = inline.or_else(|| self.pending_context.take());
        self.turn_count += 1;
        let note =
            message.ai_mode.filter(|mode| mode.starts_with("ooda")).filter(|_| !self.mode_note_sent).map(
                |_| {
                    self.mode_note_sent = true;
                    "there are no modes here: this runs as react".to_owned()
                },
            );
        let request = StartRun {
            prompt: Prompt::Text(message.content),
            history: History::InMemory(self.conversation.clone()),
            agent: self.agent.clone(),
            subagents: SubagentOptions {
                allow: own.iter().any(|name| name == SPAWN_WORKER),
                ..SubagentOptions::default()
            },
            tools: ToolOptions {
                daemon: DaemonTools::Only(own),
                client: client_tools,
                ..ToolOptions::default()
            },
            context: ExtraContext {
                system: self.project_context.clone(),
                before_prompt: workflow
                    .into_iter()
                    .chain(message.context.into_iter().filter_map(context_block))
                    .collect(),
                ..ExtraContext::default()
            },
            overrides: RunOverrides {
                model: self.model.clone(),
                context_size: self.context_size,
                ..RunOverrides::default()
            },
            ..StartRun::default()
        };
        let message = if id.is_empty() { Uuid::new_v4().to_string() } else { id };
        Ok(TurnStart { request, message, index: self.turn_count, note })
    }
}

/// A labelled block as the model reads it.
fn context_block(block: ContentBlock) -> Option<String> {
    let label = block.label.filter(|label| !label.trim().is_empty()).unwrap_or_else(|| "Context".to_owned());
    match block.block? {
        Block::Text(text) if text.trim().is_empty() => None,
        Block::Text(text) => Some(format!("[{label}]\n{text}")),
        Block::Binary(BinaryContent { mime_type, data }) => {
            let kind = history::printable_media_type(&mime_type);
            Some(format!("[{label}]\n({kind}, {} bytes, not shown)", data.len()))
        }
    }
}

/// What a short name stands for.
fn resolve_alias<'a>(model: &'a str, models: &'a RozModels) -> &'a str {
    match model {
        "fast" => &models.fast,
        "standard" => &models.standard,
        "max" => &models.max,
        name => name,
    }
}
