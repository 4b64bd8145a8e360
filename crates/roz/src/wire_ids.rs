//! The ids under which a session's tool calls are known on the wire.

use std::collections::HashSet;

use uuid::Uuid;

use kontekst_core::CallId;

/// The number of ids that a session remembers. Calls after that get new ids.
const MAX_IDS: usize = 10_000;

/// The longest id, in bytes, that is taken over from the model.
const MAX_ID_BYTES: usize = 128;

/// The ids that a session has used.
///
/// Some models count their calls from zero in each answer. Such a call gets another id on the wire, so that a
/// late result never meets a later call.
#[derive(Default)]
pub(super) struct WireIds(HashSet<String>);

impl WireIds {
    /// Returns an id for `call` that the session has not used: the model's own if possible, else a new UUID.
    pub(super) fn assign(&mut self, call: &CallId) -> String {
        let id = call.as_str();
        let usable = self.0.len() < MAX_IDS && (1..=MAX_ID_BYTES).contains(&id.len());
        if usable && self.0.insert(id.to_owned()) {
            return id.to_owned();
        }
        Uuid::new_v4().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_used_once_in_a_session() {
        let mut ids = WireIds::default();
        let call = CallId::new("call_0");
        assert_eq!(ids.assign(&call), "call_0");
        let (second, third) = (ids.assign(&call), ids.assign(&call));
        assert!(second != "call_0" && second != third);
        assert!(!ids.assign(&CallId::new("")).is_empty());
    }
}
