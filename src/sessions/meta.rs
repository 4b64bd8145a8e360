//! `<id>.meta.json`: settings that belong to a conversation.

use serde_json::{Map, Value};

use super::{SessionError, Sessions};
use crate::{
    config::{file::read_text, write_atomic},
    core::{Name, SessionId},
};

/// Source: architecture seed, "Session Persistence".
const DEFAULT_AGENT: &str = "default_agent";

/// The key for the session whose run started this one as a subagent.
const PARENT: &str = "parent";

/// The maximum size that is read, in bytes. It is a hundred times what the daemon writes.
const MAX_META: u64 = 64 * 1024;

impl Sessions {
    /// Returns the agent that runs of this session use by default.
    pub fn default_agent(&self, id: &SessionId) -> Option<Name> {
        self.meta(id).get(DEFAULT_AGENT)?.as_str()?.parse().ok()
    }

    /// Sets [`Sessions::default_agent`]. Other keys of the file are not changed.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`] when there is no such session.
    pub fn set_default_agent(&self, id: &SessionId, agent: &Name) -> Result<(), SessionError> {
        self.set(id, DEFAULT_AGENT, agent.as_str())
    }

    /// Returns the session whose run started this one as a subagent.
    pub fn parent(&self, id: &SessionId) -> Option<SessionId> {
        self.meta(id).get(PARENT)?.as_str()?.parse().ok()
    }

    /// Sets [`Sessions::parent`]. Other keys of the file are not changed.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`] when there is no such session.
    pub fn set_parent(&self, id: &SessionId, parent: &SessionId) -> Result<(), SessionError> {
        self.set(id, PARENT, parent.as_str())
    }

    fn set(&self, id: &SessionId, key: &str, value: &str) -> Result<(), SessionError> {
        if !self.exists(id) {
            return Err(SessionError::NotFound(id.to_string()));
        }
        let mut meta = self.meta(id);
        meta.insert(key.to_owned(), Value::from(value));
        let text = Value::Object(meta).to_string();
        Ok(write_atomic(&self.meta_path(id), text.as_bytes())?)
    }

    /// Returns an empty map if the file is absent or cannot be read, because a conversation must stay
    /// usable without its settings.
    fn meta(&self, id: &SessionId) -> Map<String, Value> {
        let text = read_text(&self.meta_path(id), MAX_META).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}
