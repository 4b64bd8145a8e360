//! Values by their id. Retired values are found for a while longer.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use kontekst_core::Mutex;

/// Values that clients name by an id.
///
/// A retired value stays until `max_tombstones` others were retired after it. Until then a late caller is told that
/// the value is over, and not that it never existed.
pub(super) struct Registry<T> {
    max_tombstones: usize,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    entries: HashMap<String, Arc<T>>,
    /// The ids of retired values, the oldest first.
    tombstones: VecDeque<String>,
}

impl<T> Registry<T> {
    pub(super) fn new(max_tombstones: usize) -> Self {
        Self {
            max_tombstones,
            inner: Mutex::new(Inner { entries: HashMap::new(), tombstones: VecDeque::new() }),
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<T>> {
        self.inner.lock().entries.get(id).cloned()
    }

    pub(super) fn insert(&self, id: &str, value: Arc<T>) {
        self.inner.lock().entries.insert(id.to_owned(), value);
    }

    /// Marks a value as over. Call it once for each id.
    pub(super) fn retire(&self, id: &str) {
        let mut inner = self.inner.lock();
        inner.tombstones.push_back(id.to_owned());
        if inner.tombstones.len() > self.max_tombstones
            && let Some(oldest) = inner.tombstones.pop_front()
        {
            inner.entries.remove(&oldest);
        }
    }

    pub(super) fn values(&self) -> Vec<Arc<T>> {
        self.inner.lock().entries.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_value_stays_until_enough_others_are_retired() {
        let registry = Registry::new(2);
        for id in ["a", "b", "c", "d"] {
            registry.insert(id, Arc::new(()));
        }
        for id in ["a", "b", "c"] {
            registry.retire(id);
        }
        let found: Vec<_> = ["a", "b", "c", "d"].map(|id| registry.find(id).is_some()).into();
        assert_eq!(found, [false, true, true, true]);
    }
}
