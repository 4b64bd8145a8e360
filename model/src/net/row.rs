//! Conversations behind one another, as the network reads them while it learns.

use std::ops::Range;

use crate::data::{END, Encoded};

/// A conversation begins at a multiple of this and is filled up to one, as the kernels want it.
pub const GRAIN: usize = 32;

/// Conversations behind one another. Each sees itself alone.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub inputs: Vec<u16>,
    /// What follows each input.
    pub targets: Vec<u16>,
    /// How much each target counts.
    pub weights: Vec<f32>,
    /// Where the conversations lie.
    pub parts: Vec<Range<usize>>,
    /// Tokens that were not filling.
    pub read: usize,
}

impl Row {
    /// How long the row gets with this conversation.
    pub fn length_with(&self, conversation: &Encoded) -> usize {
        self.inputs.len() + (conversation.ids.len() - 1).next_multiple_of(GRAIN)
    }

    /// What is not the assistant's counts `other`.
    pub fn push(&mut self, conversation: &Encoded, other: f32) {
        let begin = self.inputs.len();
        let end = self.length_with(conversation);
        let (ids, said) = (&conversation.ids, &conversation.said);
        self.inputs.extend(&ids[..ids.len() - 1]);
        self.targets.extend(&ids[1..]);
        self.weights.extend(said[1..].iter().map(|&said| if said { 1.0 } else { other }));
        self.read += ids.len() - 1;
        self.inputs.resize(end, END);
        self.targets.resize(end, END);
        self.weights.resize(end, 0.0);
        self.parts.push(begin..end);
    }
}
