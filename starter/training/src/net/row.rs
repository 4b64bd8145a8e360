//! Conversations behind one another, as the network reads them while it learns.

use std::ops::Range;

use crate::data::{END, Encoded};

/// A conversation begins at a multiple of this and is filled up to one, as the kernels want it.
pub const GRAIN: usize = 32;

/// Conversations behind one another. Each sees itself alone.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub inputs: Vec<u16>,
    /// The inputs after which something is expected, in order, what that is, and how much it counts.
    pub places: Vec<usize>,
    pub targets: Vec<u16>,
    pub weights: Vec<f32>,
    /// The positions of the conversations.
    pub parts: Vec<Range<usize>>,
    /// Tokens that were not filling.
    pub read: usize,
}

impl Row {
    /// Returns the length of the row with this conversation.
    pub fn length_with(&self, conversation: &Encoded) -> usize {
        self.inputs.len() + (conversation.ids.len() - 1).next_multiple_of(GRAIN)
    }

    /// Bytes that are not the assistant's have the weight `other`.
    pub fn push(&mut self, conversation: &Encoded, other: f32) {
        let begin = self.inputs.len();
        let end = self.length_with(conversation);
        let (ids, said) = (&conversation.ids, &conversation.said);
        self.inputs.extend(&ids[..ids.len() - 1]);
        for (place, (&target, &said)) in ids[1..].iter().zip(&said[1..]).enumerate() {
            let weight = if said { 1.0 } else { other };
            if weight > 0.0 {
                self.places.push(begin + place);
                self.targets.push(target);
                self.weights.push(weight);
            }
        }
        self.read += ids.len() - 1;
        self.inputs.resize(end, END);
        self.parts.push(begin..end);
    }

    /// The number of positions, rounded up as the kernels need it.
    pub(super) fn expected(&self) -> usize {
        self.places.len().next_multiple_of(GRAIN)
    }

    /// Takes what stands at the places out of what every token has (`width` numbers each), and fills up with zeros.
    pub(super) fn gather(&self, numbers: &[f32], width: usize, out: &mut Vec<f32>) {
        out.clear();
        for place in &self.places {
            out.extend_from_slice(&numbers[place * width..][..width]);
        }
        out.resize(self.expected() * width, 0.0);
    }

    /// The other way round; the other tokens get zeros.
    pub(super) fn scatter(&self, numbers: &[f32], width: usize, out: &mut Vec<f32>) {
        out.clear();
        out.resize(self.inputs.len() * width, 0.0);
        for (place, numbers) in self.places.iter().zip(numbers.chunks_exact(width)) {
            out[place * width..][..width].copy_from_slice(numbers);
        }
    }
}
