//! What one layer remembers of the tokens that were read.
//!
//! Keys and values are kept in half precision, sixteen positions to a tile, in the order in which
//! `attention` reads them. Going back to an earlier position costs nothing: what lies behind it is overwritten.

use crate::math::LANES;

/// Positions are not counted here: only those that were written may be read.
#[derive(Clone, Default)]
pub struct Memory {
    /// By head. In each tile, number by number, sixteen positions.
    pub(crate) keys: Vec<Vec<u16>>,
    /// By head. In each tile, sixteen numbers at a time, position by position.
    pub(crate) values: Vec<Vec<u16>>,
    /// What a convolution was given, position by position, in half precision.
    pub inputs: Vec<u16>,
}

/// Numbers of a head with those that fill up its last [`LANES`].
pub(crate) fn padded(head: usize) -> usize {
    head.next_multiple_of(LANES)
}

impl Memory {
    /// For so many heads of keys.
    pub fn new(heads: usize) -> Self {
        Self { keys: vec![Vec::new(); heads], values: vec![Vec::new(); heads], inputs: Vec::new() }
    }

    /// Heads of keys.
    pub fn heads(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let sum = |list: &[Vec<u16>]| list.iter().map(Vec::capacity).sum::<usize>();
        2 * (sum(&self.keys) + sum(&self.values) + self.inputs.capacity())
    }

    /// Makes room for `count` positions of heads of `head` numbers.
    pub(crate) fn reserve(&mut self, count: usize, head: usize) {
        let size = count.div_ceil(LANES) * LANES * padded(head);
        for list in self.keys.iter_mut().chain(&mut self.values) {
            if list.len() < size {
                list.resize(size, 0);
            }
        }
    }
}
