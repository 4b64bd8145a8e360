//! The tokens that a worker's model may write.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// What is left of a budget. A worker's worker spends from its own and from its parent's, so that a tree
/// never takes more than its root was given.
#[derive(Debug)]
pub(super) struct TokenBudget {
    given: u32,
    left: AtomicU32,
    parent: Option<Arc<TokenBudget>>,
}

impl TokenBudget {
    pub(super) fn new(tokens: u32, parent: Option<Arc<TokenBudget>>) -> Self {
        Self { given: tokens, left: AtomicU32::new(tokens), parent }
    }

    pub(super) fn total(&self) -> u32 {
        self.given
    }

    pub(super) fn remaining(&self) -> u32 {
        let own = self.left.load(Ordering::Relaxed);
        self.parent.as_ref().map_or(own, |parent| own.min(parent.remaining()))
    }

    /// Takes out what was used; more than is left empties it.
    pub(super) fn spend(&self, tokens: u32) {
        let less = |left: u32| Some(left.saturating_sub(tokens));
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok();
        if let Some(parent) = &self.parent {
            parent.spend(tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_spends_its_parents_tokens_too() {
        let parent = Arc::new(TokenBudget::new(100, None));
        let (a, b) = (
            TokenBudget::new(80, Some(Arc::clone(&parent))),
            TokenBudget::new(80, Some(Arc::clone(&parent))),
        );
        a.spend(70);
        assert_eq!((a.remaining(), b.remaining(), parent.remaining()), (10, 30, 30));
        b.spend(1000);
        assert_eq!((a.remaining(), b.remaining(), parent.remaining()), (0, 0, 0));
        assert_eq!(a.total(), 80);
    }
}
