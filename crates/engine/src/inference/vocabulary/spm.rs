//! SentencePiece: neighbouring pieces are merged in the order of the scores of what they merge to.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
};

use super::TokenType;
use crate::{EngineError, inference::model_file::broken};

/// Represents a space in the names of tokens.
const SPACE: &str = "\u{2581}";

/// The bytes of a token in a text.
pub(super) fn bytes(name: &str, kind: TokenType) -> Vec<u8> {
    match kind {
        TokenType::Control | TokenType::Unknown | TokenType::Unused => Vec::new(),
        TokenType::Byte => byte(name).map_or_else(Vec::new, |byte| vec![byte]),
        TokenType::User | TokenType::Normal => name.replace(SPACE, " ").into_bytes(),
    }
}

/// The byte that `<0x0A>` names.
fn byte(name: &str) -> Option<u8> {
    u8::from_str_radix(name.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

pub(super) struct Spm {
    /// All tokens by their names.
    ids: HashMap<String, u32>,
    scores: Vec<f32>,
    bytes: Vec<Option<u32>>,
    unknown: Option<u32>,
    /// A space is put in front of a text.
    space: bool,
}

impl Spm {
    pub(super) fn new(
        names: &[String],
        kinds: &[TokenType],
        scores: Vec<f32>,
        ids: &HashMap<String, u32>,
        space: bool,
    ) -> Result<Self, EngineError> {
        if scores.len() != names.len() {
            return Err(broken("its vocabulary and its scores differ in length"));
        }
        let mut bytes = vec![None; 256];
        for ((name, kind), id) in names.iter().zip(kinds).zip(0..) {
            if let Some(byte) = byte(name).filter(|_| *kind == TokenType::Byte) {
                bytes[usize::from(byte)] = Some(id);
            }
        }
        let unknown =
            kinds.iter().zip(0..).find_map(|(kind, id)| (*kind == TokenType::Unknown).then_some(id));
        Ok(Self { ids: ids.clone(), scores, bytes, unknown, space })
    }

    /// `first` says that only special tokens precede the text.
    pub(super) fn encode(&self, text: &str, first: bool, found: &mut Vec<u32>) {
        let mut written = String::with_capacity(text.len() + 3);
        if self.space && first {
            written.push_str(SPACE);
        }
        written.push_str(&text.replace(' ', SPACE));
        let mut row = Row::new(&written);
        let mut heap = BinaryHeap::new();
        for left in 0..row.length.len() {
            self.offer(&row, &mut heap, left);
        }
        while let Some(Offer { left, right, length, .. }) = heap.pop() {
            // One of the pieces was merged otherwise since.
            if row.length[left] == 0
                || row.length[right] == 0
                || row.length[left] + row.length[right] != length
            {
                continue;
            }
            row.join(left, right);
            self.offer(&row, &mut heap, left);
            if let Some(before) = row.before(left) {
                self.offer(&row, &mut heap, before);
            }
        }
        for at in 0..row.length.len() {
            if row.length[at] > 0 {
                self.piece(&written[row.start[at]..row.start[at] + row.length[at]], found);
            }
        }
    }

    fn offer(&self, row: &Row, heap: &mut BinaryHeap<Offer>, left: usize) {
        let Some(right) = row.next(left) else { return };
        let length = row.length[left] + row.length[right];
        if let Some(&id) = self.ids.get(&row.text[row.start[left]..row.start[left] + length]) {
            heap.push(Offer { score: self.scores[id as usize], left, right, length });
        }
    }

    /// Appends the token of a piece. A character that is not a token is written as its bytes.
    fn piece(&self, text: &str, found: &mut Vec<u32>) {
        if let Some(&id) = self.ids.get(text) {
            found.push(id);
            return;
        }
        for byte in text.bytes() {
            found.extend(self.bytes[usize::from(byte)].or(self.unknown));
        }
    }
}

struct Offer {
    score: f32,
    left: usize,
    right: usize,
    length: usize,
}

impl Ord for Offer {
    /// The best score is greatest. Of two alike, the one further left is.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| Reverse(self.left).cmp(&Reverse(other.left)))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Offer {}

/// A linked list of pieces of a text, in which neighbours can be merged. A removed piece has no length.
struct Row<'a> {
    text: &'a str,
    start: Vec<usize>,
    length: Vec<usize>,
    next: Vec<usize>,
    before: Vec<usize>,
}

impl<'a> Row<'a> {
    fn new(text: &'a str) -> Self {
        let start: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let length = text.chars().map(char::len_utf8).collect();
        let count = start.len();
        let before = (0..count).map(|at| at.wrapping_sub(1)).collect();
        Self { text, start, length, next: (1..=count).collect(), before }
    }

    fn next(&self, at: usize) -> Option<usize> {
        Some(self.next[at]).filter(|&next| next < self.start.len())
    }

    fn before(&self, at: usize) -> Option<usize> {
        Some(self.before[at]).filter(|&before| before < self.start.len())
    }

    fn join(&mut self, left: usize, right: usize) {
        self.length[left] += self.length[right];
        self.length[right] = 0;
        self.next[left] = self.next[right];
        if let Some(next) = self.next(left) {
            self.before[next] = left;
        }
    }
}
