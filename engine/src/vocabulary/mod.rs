//! Text to tokens and back, by what a GGUF file says about its vocabulary.
//!
//! Two families: byte-level BPE (`gpt2`) and SentencePiece with scores (`llama`, which Gemma uses too). They follow
//! llama.cpp token by token, because models are made for what it does.

mod bpe;
mod split;
mod spm;
mod utf8;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap};

use aho_corasick::{AhoCorasick, MatchKind};

pub use self::utf8::Utf8Decoder;
use self::{bpe::Bpe, spm::Spm};
use crate::{
    EngineError,
    gguf::Value,
    model_file::{ModelFile, broken},
};

/// Tokens that end an answer, besides those that the header names. Source: llama.cpp's list.
const ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "<｜end▁of▁sentence｜>",
    "</s>",
    "<|end_of_turn|>",
];

/// The vocabulary of a model.
pub struct Vocabulary {
    /// What each token stands for in the text; nothing for a control token.
    bytes: Vec<Vec<u8>>,
    /// What each token is called in the file.
    names: Vec<String>,
    kinds: Vec<Kind>,
    ids: HashMap<String, u32>,
    words: Words,
    /// Everything that is found in a text before it is cut into words.
    special: Special,
    /// What users may not write by accident, but templates do: without the control tokens.
    plain: Special,
    bos: Option<u32>,
    eos: Option<u32>,
    adds_bos: bool,
    ends: Vec<u32>,
}

enum Words {
    Bpe(Bpe),
    Spm(Spm),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Normal,
    Unknown,
    Control,
    User,
    Unused,
    Byte,
}

/// Tokens that are found in a text as they are.
struct Special {
    find: Option<AhoCorasick>,
    ids: Vec<u32>,
    /// The white space after one of them belongs to it.
    swallows: bool,
}

impl Vocabulary {
    /// Takes the vocabulary out of a header.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unsupported`] for another family or another way to cut text into words;
    /// [`EngineError::Broken`] for lists that do not fit together.
    pub(super) fn take<R: std::io::Read + std::io::Seek>(
        file: &mut ModelFile<R>,
    ) -> Result<Self, EngineError> {
        let family = file.string("tokenizer.ggml.model").unwrap_or_default().to_owned();
        let Some(Value::Strings(names)) = file.take("tokenizer.ggml.tokens") else {
            return Err(broken("it has no vocabulary"));
        };
        let limit = u32::try_from(names.len()).map_err(|_| broken("its vocabulary is too large"))?;
        if limit == 0 {
            return Err(broken("its vocabulary is empty"));
        }
        let kinds = kinds(file.take("tokenizer.ggml.token_type"), &names)?;
        let ids: HashMap<String, u32> = names.iter().cloned().zip(0..).collect();
        let id = |key: &str| file.size(key).and_then(|id| u32::try_from(id).ok()).filter(|&id| id < limit);
        let (bos, eos) = (id("tokenizer.ggml.bos_token_id"), id("tokenizer.ggml.eos_token_id"));
        let mut ends: Vec<u32> = ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"]
            .iter()
            .filter_map(|key| id(key))
            .chain(eos)
            .collect();
        let special = |text: &&str| ids.get(*text).copied();
        ends.extend(
            ENDS.iter()
                .filter_map(special)
                .filter(|&id| matches!(kinds[id as usize], Kind::Control | Kind::User) || Some(id) == eos),
        );
        ends.sort_unstable();
        ends.dedup();
        let pre = file.string("tokenizer.ggml.pre").unwrap_or("default").to_owned();
        let name = file.string("general.name").unwrap_or_default().to_lowercase();
        let swallows = name.contains("phi-3") || name.contains("phi3");
        let space = file.boolean("tokenizer.ggml.add_space_prefix").unwrap_or(true);
        let adds_bos = file.boolean("tokenizer.ggml.add_bos_token");
        let scores = file.take("tokenizer.ggml.scores");
        let merges = file.take("tokenizer.ggml.merges");
        let (words, bytes, bos_by_family) = match family.as_str() {
            "gpt2" => {
                let bytes = names.iter().zip(&kinds).map(|(name, kind)| bpe::bytes(name, *kind)).collect();
                let bpe = Bpe::new(&pre, &ids, merges)?;
                let bos = bpe.adds_bos;
                (Words::Bpe(bpe), bytes, bos)
            }
            "llama" => {
                let Some(Value::Floats(scores)) = scores else {
                    return Err(broken("its vocabulary has no scores"));
                };
                let bytes = names.iter().zip(&kinds).map(|(name, kind)| spm::bytes(name, *kind)).collect();
                (Words::Spm(Spm::new(&names, &kinds, scores, &ids, space)?), bytes, true)
            }
            other => return Err(EngineError::Unsupported(format!("a vocabulary of the family {other:?}"))),
        };
        let with = |wanted: &[Kind]| Special::new(&names, &kinds, wanted, swallows);
        Ok(Self {
            special: with(&[Kind::Control, Kind::User, Kind::Unknown])?,
            plain: with(&[Kind::User])?,
            adds_bos: adds_bos.unwrap_or(bos_by_family) && bos.is_some(),
            bytes,
            names,
            kinds,
            ids,
            words,
            bos,
            eos,
            ends,
        })
    }

    /// Text to tokens. With `special`, the names of control tokens in the text become those tokens: for what a
    /// template wrote, and for nothing that a user did.
    pub fn encode(&self, text: &str, special: bool) -> Vec<u32> {
        let mut found = Vec::new();
        let set = if special { &self.special } else { &self.plain };
        // Where a text starts, and after a token that stands for itself, SentencePiece puts a space in front.
        let mut after_special = true;
        set.parts(text, |part| match part {
            Part::Token(id) => {
                found.push(id);
                after_special = true;
            }
            Part::Text(text) => {
                match &self.words {
                    Words::Bpe(bpe) => bpe.encode(text, &mut found),
                    Words::Spm(spm) => spm.encode(text, after_special, &mut found),
                }
                after_special = false;
            }
        });
        found
    }

    /// What a template rendered, to tokens: special ones as such, and the token that starts a text in front of
    /// them where the model wants one and the template did not write it.
    pub fn prompt(&self, text: &str) -> Vec<u32> {
        let mut tokens = self.encode(text, true);
        if let Some(bos) = self.bos.filter(|&bos| self.adds_bos && tokens.first() != Some(&bos)) {
            tokens.insert(0, bos);
        }
        tokens
    }

    /// Tokens that `text` takes, its special ones read as such.
    pub fn count(&self, text: &str) -> usize {
        self.encode(text, true).len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What a token stands for in a text: nothing for a control token and for one that does not exist. May be a
    /// part of a character.
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// What a token is called: for a control token its name, for others what they stand for.
    pub fn text(&self, id: u32) -> Cow<'_, str> {
        match self.kinds.get(id as usize) {
            Some(Kind::Control | Kind::Unknown) => Cow::Borrowed(&self.names[id as usize]),
            _ => String::from_utf8_lossy(self.bytes(id)),
        }
    }

    /// The token that is called `name` in the file, as `<|im_end|>`.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub fn is_control(&self, id: u32) -> bool {
        matches!(self.kinds.get(id as usize), Some(Kind::Control | Kind::Unknown | Kind::Unused))
    }

    /// Returns true if this token ends an answer.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// The token that starts a text.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends one.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }
}

enum Part<'a> {
    Token(u32),
    Text(&'a str),
}

impl Special {
    fn new(names: &[String], kinds: &[Kind], wanted: &[Kind], swallows: bool) -> Result<Self, EngineError> {
        let chosen = (0_u32..).zip(names.iter().zip(kinds));
        let chosen = chosen.filter(|(_, (name, kind))| wanted.contains(kind) && !name.is_empty());
        let (ids, names): (Vec<u32>, Vec<&String>) = chosen.map(|(id, (name, _))| (id, name)).unzip();
        let find = (!ids.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(names))
            .transpose()
            .map_err(|error| broken(&error.to_string()))?;
        Ok(Self { find, ids, swallows })
    }

    fn parts<'a>(&self, text: &'a str, mut each: impl FnMut(Part<'a>)) {
        let mut rest = 0;
        for found in self.find.iter().flat_map(|find| find.find_iter(text)) {
            if found.start() > rest {
                each(Part::Text(&text[rest..found.start()]));
            }
            each(Part::Token(self.ids[found.pattern().as_usize()]));
            let after = &text[found.end()..];
            let swallowed = if self.swallows { after.len() - after.trim_start().len() } else { 0 };
            rest = found.end() + swallowed;
        }
        if rest < text.len() {
            each(Part::Text(&text[rest..]));
        }
    }
}

/// Source: `enum llama_token_type`.
fn kinds(value: Option<Value>, names: &[String]) -> Result<Vec<Kind>, EngineError> {
    let Some(Value::Integers(numbers)) = value else { return Ok(vec![Kind::Normal; names.len()]) };
    if numbers.len() != names.len() {
        return Err(broken("its vocabulary and the types of its tokens differ in length"));
    }
    let kind = |number: &i128| match number {
        2 => Kind::Unknown,
        3 => Kind::Control,
        4 => Kind::User,
        5 => Kind::Unused,
        6 => Kind::Byte,
        _ => Kind::Normal,
    };
    Ok(numbers.iter().map(kind).collect())
}
