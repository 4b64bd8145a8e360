//! Byte-level BPE: neighbouring tokens are merged in the order in which the merges were learnt.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::LazyLock,
};

use super::{TokenType, split::Split};
use crate::{EngineError, gguf::Value, inference::model_file::broken};

/// The character for each byte in the names of tokens. GPT-2 writes bytes that are not printable Latin-1 as characters
/// from U+0100 on.
static CHARACTERS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next = 256;
    std::array::from_fn(|byte| {
        let printable = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let code = if printable { u32::try_from(byte).expect("a byte") } else { next };
        next += u32::from(!printable);
        char::from_u32(code).expect("far below the surrogates")
    })
});

static BYTES: LazyLock<HashMap<char, u8>> =
    LazyLock::new(|| CHARACTERS.iter().copied().zip(0..=u8::MAX).collect());

/// The bytes of a token in a text.
pub(super) fn bytes(name: &str, kind: TokenType) -> Vec<u8> {
    match kind {
        TokenType::Control | TokenType::Unknown | TokenType::Unused => Vec::new(),
        TokenType::User => name.as_bytes().to_vec(),
        TokenType::Normal | TokenType::Byte => {
            let byte = |character: char| BYTES.get(&character).copied();
            // Some vocabularies have added words, whose characters stand for themselves.
            name.chars().map(byte).collect::<Option<_>>().unwrap_or_else(|| name.as_bytes().to_vec())
        }
    }
}

pub(super) struct Bpe {
    split: Split,
    /// The token of each byte. Some vocabularies lack bytes that UTF-8 never has.
    single: Vec<Option<u32>>,
    /// The rank of a pair of tokens, and the token that they merge to.
    merges: HashMap<(u32, u32), (u32, u32)>,
    /// Words that are one token whatever the merges say, in some vocabularies.
    whole: HashMap<Vec<u8>, u32>,
    pub adds_bos: bool,
}

impl Bpe {
    pub(super) fn new(
        pre: &str,
        ids: &HashMap<String, u32>,
        merges: Option<Value>,
    ) -> Result<Self, EngineError> {
        let split = Split::new(pre)?;
        let single =
            CHARACTERS.iter().map(|&c| ids.get(c.encode_utf8(&mut [0; 4]) as &str).copied()).collect();
        let texts = match merges {
            Some(Value::Strings(texts)) => texts,
            // A vocabulary of bytes only has no merges.
            None | Some(Value::Integers(_)) => Vec::new(),
            Some(_) => return Err(broken("its merges are no texts")),
        };
        let mut merges = HashMap::with_capacity(texts.len());
        let mut joined = String::new();
        for (text, rank) in texts.iter().zip(0..) {
            // The first character may be a space that belongs to the left token.
            let space = text.char_indices().skip(1).find(|(_, c)| *c == ' ');
            let Some((space, _)) = space else { return Err(broken("a merge has no two parts")) };
            let (left, right) = (&text[..space], &text[space + 1..]);
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            if let (Some(&left), Some(&right), Some(&joined)) =
                (ids.get(left), ids.get(right), ids.get(&joined))
            {
                merges.entry((left, right)).or_insert((rank, joined));
            }
        }
        let whole = if split.whole_words {
            ids.iter().map(|(name, &id)| (bytes(name, TokenType::Normal), id)).collect()
        } else {
            HashMap::new()
        };
        let adds_bos = split.adds_bos;
        Ok(Self { split, single, merges, whole, adds_bos })
    }

    pub(super) fn encode(&self, text: &str, found: &mut Vec<u32>) {
        self.split.words(text, &mut |word| self.word(word.as_bytes(), found));
    }

    fn word(&self, word: &[u8], found: &mut Vec<u32>) {
        if let Some(&id) = self.whole.get(word) {
            found.push(id);
            return;
        }
        let parts = word.iter().filter_map(|&byte| self.single[usize::from(byte)]).collect();
        let mut chain = Chain::new(parts);
        let mut heap = BinaryHeap::new();
        let offer = |chain: &Chain, heap: &mut BinaryHeap<_>, left: usize| {
            let Some(right) = chain.next(left) else { return };
            if let Some(&(rank, joined)) = self.merges.get(&(chain.id[left], chain.id[right])) {
                heap.push(Reverse((rank, left, chain.id[left], chain.id[right], joined)));
            }
        };
        for left in 0..chain.id.len() {
            offer(&chain, &mut heap, left);
        }
        while let Some(Reverse((_, left, first, second, joined))) = heap.pop() {
            // The heap still holds merges of tokens that were merged otherwise since.
            let Some(right) = chain.next(left) else { continue };
            if (chain.id[left], chain.id[right]) != (first, second) || chain.gone[left] {
                continue;
            }
            chain.join(left, right, joined);
            offer(&chain, &mut heap, left);
            if let Some(before) = chain.before(left) {
                offer(&chain, &mut heap, before);
            }
        }
        found.extend((0..chain.id.len()).filter(|&at| !chain.gone[at]).map(|at| chain.id[at]));
    }
}

/// A linked list of tokens, in which neighbours can be merged.
struct Chain {
    id: Vec<u32>,
    gone: Vec<bool>,
    next: Vec<usize>,
    before: Vec<usize>,
}

impl Chain {
    fn new(id: Vec<u32>) -> Self {
        let count = id.len();
        let before = (0..count).map(|at| at.wrapping_sub(1)).collect();
        Self { gone: vec![false; count], next: (1..=count).collect(), before, id }
    }

    fn next(&self, at: usize) -> Option<usize> {
        Some(self.next[at]).filter(|&next| next < self.id.len())
    }

    fn before(&self, at: usize) -> Option<usize> {
        Some(self.before[at]).filter(|&before| before < self.id.len())
    }

    /// Replaces `left` by `joined` and removes `right`.
    fn join(&mut self, left: usize, right: usize, joined: u32) {
        self.id[left] = joined;
        self.gone[right] = true;
        self.next[left] = self.next[right];
        if let Some(next) = self.next(left) {
            self.before[next] = left;
        }
    }
}
