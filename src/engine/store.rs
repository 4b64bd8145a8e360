//! What sessions were read so far, for their next turns.

use crate::engine::cache::Cache;

/// The caches of sessions, the least recently used first.
pub struct Store {
    limit: usize,
    sessions: Vec<(String, Cache)>,
}

impl Store {
    /// Keeps no more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, sessions: Vec::new() }
    }

    pub fn look(&self, session: &str) -> Option<&Cache> {
        self.sessions.iter().find_map(|(name, cache)| (name == session).then_some(cache))
    }

    /// The cache that begins most like `prompt`, and how many tokens of it are the same.
    pub fn likest(&self, prompt: &[u32]) -> Option<(usize, &Cache)> {
        let all = self.sessions.iter().map(|(_, cache)| (cache.common(prompt), cache));
        all.max_by_key(|(common, _)| *common)
    }

    pub fn take(&mut self, session: &str) -> Option<Cache> {
        let at = self.sessions.iter().position(|(name, _)| name == session)?;
        Some(self.sessions.remove(at).1)
    }

    /// Keeps a cache, and gives up the oldest ones where all are too large together.
    pub fn put(&mut self, session: &str, cache: Cache) {
        self.sessions.push((session.to_owned(), cache));
        while self.bytes() > self.limit {
            self.sessions.remove(0);
        }
    }

    pub fn clear(&mut self) {
        self.sessions = Vec::new();
    }

    pub fn bytes(&self) -> usize {
        self.sessions.iter().map(|(_, cache)| cache.bytes()).sum()
    }
}
