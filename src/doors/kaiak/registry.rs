//! Things by their id, and those that are over for a while longer.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Things that clients name by an id. What is over is kept until so many others are, too, so that a late
/// caller hears that it is over and not that it never was.
pub(super) struct Registry<T> {
    max_tombstones: usize,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    entries: HashMap<String, Arc<T>>,
    tombstones: VecDeque<String>,
}

impl<T> Registry<T> {
    pub(super) fn new(kept: usize) -> Self {
        Self {
            max_tombstones: kept,
            inner: Mutex::new(Inner { entries: HashMap::new(), tombstones: VecDeque::new() }),
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<T>> {
        self.lock().entries.get(id).cloned()
    }

    pub(super) fn insert(&self, id: &str, value: Arc<T>) {
        self.lock().entries.insert(id.to_owned(), value);
    }

    /// Says once for each id that nothing more will happen to it.
    pub(super) fn retire(&self, id: &str) {
        let mut inner = self.lock();
        inner.tombstones.push_back(id.to_owned());
        if inner.tombstones.len() > self.max_tombstones
            && let Some(oldest) = inner.tombstones.pop_front()
        {
            inner.entries.remove(&oldest);
        }
    }

    pub(super) fn values(&self) -> Vec<Arc<T>> {
        self.lock().entries.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_stays_until_others_are() {
        let shelf = Registry::new(2);
        for id in ["a", "b", "c", "d"] {
            shelf.insert(id, Arc::new(()));
        }
        for id in ["a", "b", "c"] {
            shelf.retire(id);
        }
        let found: Vec<_> = ["a", "b", "c", "d"].map(|id| shelf.find(id).is_some()).into();
        assert_eq!(found, [false, true, true, true]);
    }
}
