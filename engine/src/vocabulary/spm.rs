//! SentencePiece: neighbours are joined where what they become has the best score.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
};

use super::Kind;
use crate::{EngineError, model_file::broken};

/// Stands for a space.
const SPACE: &str = "\u{2581}";

/// What a token stands for.
pub fn bytes(name: &str, kind: Kind) -> Vec<u8> {
    match kind {
        Kind::Control | Kind::Unknown | Kind::Unused => Vec::new(),
        Kind::Byte => byte(name).map_or_else(Vec::new, |byte| vec![byte]),
        Kind::User | Kind::Normal => name.replace(SPACE, " ").into_bytes(),
    }
}

/// The byte that `<0x0A>` names.
fn byte(name: &str) -> Option<u8> {
    u8::from_str_radix(name.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

pub struct Spm {
    /// Every token that text can become, by its text with [`SPACE`] in it.
    ids: HashMap<String, u32>,
    scores: Vec<f32>,
    bytes: Vec<Option<u32>>,
    unknown: Option<u32>,
    /// A text starts with a space that is not in it.
    space: bool,
}

impl Spm {
    pub fn new(
        names: &[String],
        kinds: &[Kind],
        scores: Vec<f32>,
        ids: &HashMap<String, u32>,
        space: bool,
    ) -> Result<Self, EngineError> {
        if scores.len() != names.len() {
            return Err(broken("its vocabulary and its scores differ in length"));
        }
        let mut bytes = vec![None; 256];
        for ((name, kind), id) in names.iter().zip(kinds).zip(0..) {
            if let Some(byte) = byte(name).filter(|_| *kind == Kind::Byte) {
                bytes[usize::from(byte)] = Some(id);
            }
        }
        let unknown = kinds.iter().zip(0..).find_map(|(kind, id)| (*kind == Kind::Unknown).then_some(id));
        Ok(Self { ids: ids.clone(), scores, bytes, unknown, space })
    }

    /// `first`: nothing but special tokens stands before this text.
    pub fn encode(&self, text: &str, first: bool, found: &mut Vec<u32>) {
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
            // An earlier merge overtook it.
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

    /// What could not be joined to a token is a character, and stands as its bytes.
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
    /// The best score first, then what stands further left.
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

/// Pieces of a text in a row, of which neighbours can be joined. One that is gone has no length.
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
