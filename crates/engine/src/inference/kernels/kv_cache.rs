//! Keys and values of one layer, for the tokens that were read.
//!
//! They are kept in half precision, sixteen positions to a tile, in the order in which `attention` reads them. Going back
//! to an earlier position costs nothing, because later ones are overwritten.

use super::math::{LANES, to_halves};

/// The keys and values of one layer. It does not count positions: only those that were written may be read.
#[derive(Clone, Default)]
pub(crate) struct KvCache {
    /// By head. Within a tile the numbers of a key follow one another, each for all sixteen positions.
    pub(super) keys: Vec<Vec<u16>>,
    /// By head. Within a tile sixteen numbers of a value follow one another, position by position.
    pub(super) values: Vec<Vec<u16>>,
    /// The inputs of a convolution, position by position, in half precision.
    pub inputs: Vec<u16>,
}

/// Rounds the size of a head up to whole groups of [`LANES`].
pub(super) fn padded(head_size: usize) -> usize {
    head_size.next_multiple_of(LANES)
}

impl KvCache {
    pub(crate) fn new(heads: usize) -> Self {
        Self { keys: vec![Vec::new(); heads], values: vec![Vec::new(); heads], inputs: Vec::new() }
    }

    /// The number of heads of keys.
    pub(crate) fn heads(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let sum = |list: &[Vec<u16>]| list.iter().map(Vec::capacity).sum::<usize>();
        2 * (sum(&self.keys) + sum(&self.values) + self.inputs.capacity())
    }

    /// Writes the keys and values of some positions, the first of which is `position`. Later positions are invalid then.
    pub(crate) fn append(&mut self, keys: &[f32], values: &[f32], position: usize, head_size: usize) {
        let (heads, padded_size) = (self.heads(), padded(head_size));
        let count = keys.len() / (heads * head_size);
        self.reserve(position + count, head_size);
        let (keys, values) = (to_halves(keys), to_halves(values));
        for row in 0..count {
            let (tile, lane) = ((position + row) / LANES, (position + row) % LANES);
            for head in 0..heads {
                let from = (row * heads + head) * head_size;
                let tile = tile * LANES * padded_size..(tile + 1) * LANES * padded_size;
                let (to_keys, to_values) = (&mut self.keys[head][tile.clone()], &mut self.values[head][tile]);
                for number in 0..head_size {
                    to_keys[number * LANES + lane] = keys[from + number];
                }
                for (chunk, values) in values[from..from + head_size].chunks(LANES).enumerate() {
                    to_values[(chunk * LANES + lane) * LANES..][..values.len()].copy_from_slice(values);
                }
            }
        }
    }

    /// Makes room for `count` positions.
    fn reserve(&mut self, count: usize, head_size: usize) {
        let size = count.div_ceil(LANES) * LANES * padded(head_size);
        for list in self.keys.iter_mut().chain(&mut self.values) {
            if list.len() < size {
                list.resize(size, 0);
            }
        }
    }
}
