//! What a network remembers of the tokens it has read.
//!
//! Keys and values are kept in half precision, sixteen positions to a tile, in the order in which
//! `attention` reads them. Going back to an earlier position costs nothing: what lies behind it is overwritten.

use crate::engine::{math::LANES, shape::Shape};

/// Everything remembered of one text.
#[derive(Clone, Default)]
pub struct Cache {
    /// The tokens that were read. Positions beyond them are not valid.
    pub tokens: Vec<u32>,
    pub layers: Vec<Layer>,
}

/// What one layer remembers.
#[derive(Clone, Default)]
pub struct Layer {
    /// By head. In each tile, number by number, sixteen positions.
    pub keys: Vec<Vec<u16>>,
    /// By head. In each tile, sixteen numbers at a time, position by position.
    pub values: Vec<Vec<u16>>,
    /// What a convolution was given, position by position.
    pub inputs: Vec<u16>,
}

impl Cache {
    pub fn new(shape: &Shape) -> Self {
        let layer = |&heads: &usize| Layer {
            keys: vec![Vec::new(); heads],
            values: vec![Vec::new(); heads],
            inputs: Vec::new(),
        };
        Self { tokens: Vec::new(), layers: shape.kv_heads.iter().map(layer).collect() }
    }

    /// Forgets what lies behind the first `count` tokens.
    pub fn rewind(&mut self, count: usize) {
        self.tokens.truncate(count);
    }

    /// How many of `tokens` need not be read again.
    pub fn common(&self, tokens: &[u32]) -> usize {
        self.tokens.iter().zip(tokens).take_while(|(left, right)| left == right).count()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let sum = |list: &[Vec<u16>]| list.iter().map(Vec::capacity).sum::<usize>();
        let layer = |layer: &Layer| sum(&layer.keys) + sum(&layer.values) + layer.inputs.capacity();
        2 * self.layers.iter().map(layer).sum::<usize>() + 4 * self.tokens.capacity()
    }
}

/// Numbers of a head with those that fill up its last [`LANES`].
pub fn padded(head: usize) -> usize {
    head.next_multiple_of(LANES)
}

impl Layer {
    /// Makes room for `count` positions of heads of `head` numbers.
    pub fn reserve(&mut self, count: usize, head: usize) {
        let size = count.div_ceil(LANES) * LANES * padded(head);
        for list in self.keys.iter_mut().chain(&mut self.values) {
            if list.len() < size {
                list.resize(size, 0);
            }
        }
    }
}
