//! Things by their id, and those that are over for a while longer.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Things that clients name by an id. What is over is kept until so many others are, too, so that a late
/// caller hears that it is over and not that it never was.
pub(super) struct Shelf<T> {
    kept: usize,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    all: HashMap<String, Arc<T>>,
    over: VecDeque<String>,
}

impl<T> Shelf<T> {
    pub(super) fn new(kept: usize) -> Self {
        Self { kept, inner: Mutex::new(Inner { all: HashMap::new(), over: VecDeque::new() }) }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<T>> {
        self.lock().all.get(id).cloned()
    }

    pub(super) fn insert(&self, id: &str, thing: Arc<T>) {
        self.lock().all.insert(id.to_owned(), thing);
    }

    /// Says once for each id that nothing more will happen to it.
    pub(super) fn over(&self, id: &str) {
        let mut inner = self.lock();
        inner.over.push_back(id.to_owned());
        if inner.over.len() > self.kept
            && let Some(oldest) = inner.over.pop_front()
        {
            inner.all.remove(&oldest);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.lock().all.values().cloned().collect()
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
        let shelf = Shelf::new(2);
        for id in ["a", "b", "c", "d"] {
            shelf.insert(id, Arc::new(()));
        }
        for id in ["a", "b", "c"] {
            shelf.over(id);
        }
        let found: Vec<_> = ["a", "b", "c", "d"].map(|id| shelf.find(id).is_some()).into();
        assert_eq!(found, [false, true, true, true]);
    }
}
