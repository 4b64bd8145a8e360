//! The caches of sessions between their turns.

use crate::inference::sequence_cache::SequenceCache;

/// The caches of sessions, the least recently used first.
pub(crate) struct SessionStore {
    max_bytes: usize,
    sessions: Vec<(String, SequenceCache)>,
}

impl SessionStore {
    /// Keeps no more than `max_bytes` of memory.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, sessions: Vec::new() }
    }

    pub(crate) fn get(&self, session: &str) -> Option<&SequenceCache> {
        self.sessions.iter().find_map(|(name, cache)| (name == session).then_some(cache))
    }

    /// The cache that shares most tokens with the start of `prompt`, and how many these are.
    pub(crate) fn longest_common_prefix(&self, prompt: &[u32]) -> Option<(usize, &SequenceCache)> {
        let all = self.sessions.iter().map(|(_, cache)| (cache.common_prefix(prompt), cache));
        all.max_by_key(|(common, _)| *common)
    }

    pub(crate) fn take(&mut self, session: &str) -> Option<SequenceCache> {
        let at = self.sessions.iter().position(|(name, _)| name == session)?;
        Some(self.sessions.remove(at).1)
    }

    /// Keeps a cache as the most recently used one, and drops the oldest ones if all together are too large.
    pub(crate) fn put(&mut self, session: &str, cache: SequenceCache) {
        self.sessions.push((session.to_owned(), cache));
        while self.bytes() > self.max_bytes {
            self.sessions.remove(0);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sessions.iter().map(|(_, cache)| cache.bytes()).sum()
    }
}
