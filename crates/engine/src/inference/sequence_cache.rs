//! The KV cache of all layers for one sequence of tokens.

use crate::inference::{kernels::KvCache, shape::Shape};

/// The keys and values that the network computed for the tokens that it has read.
#[derive(Clone, Default)]
pub(crate) struct SequenceCache {
    /// The tokens that were read. Positions beyond them hold nothing that may be used.
    pub tokens: Vec<u32>,
    pub layers: Vec<KvCache>,
}

impl SequenceCache {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self { tokens: Vec::new(), layers: shape.kv_heads.iter().map(|&heads| KvCache::new(heads)).collect() }
    }

    /// Drops everything after the first `count` tokens.
    pub(crate) fn rewind(&mut self, count: usize) {
        self.tokens.truncate(count);
    }

    /// Counts the tokens at the start of `tokens` that need not be read again.
    pub(crate) fn common_prefix(&self, tokens: &[u32]) -> usize {
        self.tokens.iter().zip(tokens).take_while(|(left, right)| left == right).count()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.layers.iter().map(KvCache::bytes).sum::<usize>() + 4 * self.tokens.capacity()
    }
}
