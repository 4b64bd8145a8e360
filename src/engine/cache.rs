//! What a network remembers of the tokens it has read.

use kontekst_kernels::Memory;

use crate::engine::shape::Shape;

/// Everything remembered of one text.
#[derive(Clone, Default)]
pub struct Cache {
    /// The tokens that were read. Positions beyond them are not valid.
    pub tokens: Vec<u32>,
    pub layers: Vec<Memory>,
}

impl Cache {
    pub fn new(shape: &Shape) -> Self {
        Self { tokens: Vec::new(), layers: shape.kv_heads.iter().map(|&heads| Memory::new(heads)).collect() }
    }

    /// Forgets what lies behind the first `count` tokens.
    pub fn rewind(&mut self, count: usize) {
        self.tokens.truncate(count);
    }

    /// How many of `tokens` need not be read again.
    pub fn common(&self, tokens: &[u32]) -> usize {
        self.common_behind(0, tokens)
    }

    /// The same of tokens that come behind the first `count`.
    pub fn common_behind(&self, count: usize, tokens: &[u32]) -> usize {
        self.tokens[count..].iter().zip(tokens).take_while(|(left, right)| left == right).count()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(Memory::bytes).sum::<usize>() + 4 * self.tokens.capacity()
    }
}
