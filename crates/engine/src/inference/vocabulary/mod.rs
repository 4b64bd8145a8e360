//! Turns text into tokens and back, with the vocabulary in a GGUF file.
//!
//! Two kinds of tokenizers are supported: byte-level BPE (`gpt2`) and SentencePiece with scores (`llama`, which Gemma uses
//! too). They give the same tokens as llama.cpp, because models are made for those.

mod bpe;
mod encoder;
mod special_tokens;
mod split;
mod spm;
mod utf8;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap};

use self::{bpe::Bpe, special_tokens::SpecialTokens, spm::Spm};
pub use self::{encoder::Encoder, utf8::Utf8Decoder};
use crate::{
    EngineError,
    gguf::Value,
    inference::model_file::{ModelFile, broken},
};

/// Tokens that end an answer, besides those that the header names. Source: llama.cpp's list.
const END_TOKENS: &[&str] = &[
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

/// The longest token, in bytes. The longest of today's vocabularies have a few hundred.
const MAX_TOKEN: usize = 4096;

/// The most bytes of all tokens that are found in a text by their names. Building what finds them takes many times as
/// much memory. Gemma 3 has 75 kB of them.
const MAX_SPECIAL: usize = 1 << 20;

/// The vocabulary of a model.
pub struct Vocabulary {
    /// The text of each token. Empty for control tokens.
    bytes: Vec<Vec<u8>>,
    /// The name of each token in the file.
    names: Vec<String>,
    types: Vec<TokenType>,
    ids: HashMap<String, u32>,
    tokenizer: Tokenizer,
    /// All tokens that are found in a text before it is split into words.
    special: SpecialTokens,
    /// The same without control tokens, for text that no template wrote.
    user_defined: SpecialTokens,
    /// White space after special tokens is dropped.
    strips_space: bool,
    bos: Option<u32>,
    eos: Option<u32>,
    adds_bos: bool,
    end_tokens: Vec<u32>,
}

enum Tokenizer {
    Bpe(Bpe),
    Spm(Spm),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TokenType {
    Normal,
    Unknown,
    Control,
    User,
    Unused,
    Byte,
}

impl Vocabulary {
    /// Takes the vocabulary out of a header.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unsupported`] for another tokenizer or another way to split text into words, and
    /// [`EngineError::Broken`] for lists that do not fit together.
    pub(super) fn take<R: std::io::Read + std::io::Seek>(
        file: &mut ModelFile<R>,
    ) -> Result<Self, EngineError> {
        let Some(Value::Strings(names)) = file.take("tokenizer.ggml.tokens") else {
            return Err(broken("it has no vocabulary"));
        };
        let limit = u32::try_from(names.len()).map_err(|_| broken("its vocabulary is too large"))?;
        if limit == 0 {
            return Err(broken("its vocabulary is empty"));
        }
        let types = token_types(file.take("tokenizer.ggml.token_type"), &names)?;
        check_lengths(&names, &types)?;
        let ids: HashMap<String, u32> = names.iter().cloned().zip(0..).collect();
        let id = |key: &str| file.size(key).and_then(|id| u32::try_from(id).ok()).filter(|&id| id < limit);
        let (bos, eos) = (id("tokenizer.ggml.bos_token_id"), id("tokenizer.ggml.eos_token_id"));
        let end_tokens = end_tokens(&id, &ids, &types);
        let name = file.string("general.name").unwrap_or_default().to_lowercase();
        let strips_space = name.contains("phi-3") || name.contains("phi3");
        let adds_bos = file.boolean("tokenizer.ggml.add_bos_token");
        let (tokenizer, bytes) = Tokenizer::take(file, &names, &types, &ids)?;
        let with = |wanted: &[TokenType]| SpecialTokens::new(&names, &types, wanted);
        Ok(Self {
            special: with(&[TokenType::Control, TokenType::User, TokenType::Unknown])?,
            user_defined: with(&[TokenType::User])?,
            strips_space,
            adds_bos: adds_bos.unwrap_or(tokenizer.adds_bos()) && bos.is_some(),
            bytes,
            names,
            types,
            ids,
            tokenizer,
            bos,
            eos,
            end_tokens,
        })
    }

    /// Turns text into tokens. With `special`, the names of control tokens in the text become those tokens. That is for
    /// text of a template only, and never for text of a user or a tool.
    pub fn encode(&self, text: &str, special: bool) -> Vec<u32> {
        let mut encoder = self.encoder();
        encoder.push_parts(text, if special { &self.special } else { &self.user_defined });
        encoder.into_tokens()
    }

    /// Begins a prompt of control tokens and of text between them.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder::new(self)
    }

    /// Turns the text of a template into tokens. The token that begins a text is added if the model wants one and the
    /// template did not write it.
    pub fn prompt(&self, text: &str) -> Vec<u32> {
        self.with_bos(self.encode(text, true))
    }

    fn with_bos(&self, mut tokens: Vec<u32>) -> Vec<u32> {
        if let Some(bos) = self.bos.filter(|&bos| self.adds_bos && tokens.first() != Some(&bos)) {
            tokens.insert(0, bos);
        }
        tokens
    }

    /// Returns true if white space after this special token is dropped. Source: llama.cpp does so for Phi-3.
    fn swallows_space(&self, id: u32) -> bool {
        let name = self.names.get(id as usize).map_or("", String::as_str);
        self.strips_space && !["<unk>", "<s>", "<|endoftext|>"].contains(&name)
    }

    /// Counts the tokens of the text of a template.
    pub fn count(&self, text: &str) -> usize {
        self.encode(text, true).len()
    }

    /// The number of tokens in the vocabulary.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The bytes of a token in a text, which may be a part of a character. Empty for a control token and for a token that
    /// does not exist.
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// The name of a control token, or the text of any other token.
    pub fn text(&self, id: u32) -> Cow<'_, str> {
        match self.types.get(id as usize) {
            Some(TokenType::Control | TokenType::Unknown) => Cow::Borrowed(&self.names[id as usize]),
            _ => String::from_utf8_lossy(self.bytes(id)),
        }
    }

    /// The token with this name in the file, such as `<|im_end|>`.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub fn is_control(&self, id: u32) -> bool {
        matches!(
            self.types.get(id as usize),
            Some(TokenType::Control | TokenType::Unknown | TokenType::Unused)
        )
    }

    /// Returns true if this token ends an answer.
    pub fn is_end(&self, id: u32) -> bool {
        self.end_tokens.contains(&id)
    }

    /// The token that begins a text.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a text.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }
}

impl Tokenizer {
    /// Takes the tokenizer that a header describes, with the bytes of each token.
    fn take<R>(
        file: &mut ModelFile<R>,
        names: &[String],
        types: &[TokenType],
        ids: &HashMap<String, u32>,
    ) -> Result<(Self, Vec<Vec<u8>>), EngineError> {
        let (scores, merges) = (file.take("tokenizer.ggml.scores"), file.take("tokenizer.ggml.merges"));
        let bytes = |of: fn(&str, TokenType) -> Vec<u8>| {
            names.iter().zip(types).map(|(name, token_type)| of(name, *token_type)).collect()
        };
        match file.string("tokenizer.ggml.model").unwrap_or_default() {
            "gpt2" => {
                let split = file.string("tokenizer.ggml.pre").unwrap_or("default");
                Ok((Self::Bpe(Bpe::new(split, ids, merges)?), bytes(bpe::bytes)))
            }
            "llama" => {
                let Some(Value::Floats(scores)) = scores else {
                    return Err(broken("its vocabulary has no scores"));
                };
                let space = file.boolean("tokenizer.ggml.add_space_prefix").unwrap_or(true);
                Ok((Self::Spm(Spm::new(names, types, scores, ids, space)?), bytes(spm::bytes)))
            }
            other => Err(EngineError::Unsupported(format!("a vocabulary of the family {other:?}"))),
        }
    }

    /// Returns true if prompts begin with the token that begins a text, for files that do not say so themselves.
    fn adds_bos(&self) -> bool {
        match self {
            Self::Bpe(bpe) => bpe.adds_bos,
            Self::Spm(_) => true,
        }
    }
}

/// The tokens that end an answer: those that the header names, and well-known ones. `id` reads a token from the header.
fn end_tokens(id: &dyn Fn(&str) -> Option<u32>, ids: &HashMap<String, u32>, types: &[TokenType]) -> Vec<u32> {
    let eos = id("tokenizer.ggml.eos_token_id");
    let named =
        ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"].iter().filter_map(|key| id(key));
    let known = END_TOKENS.iter().filter_map(|text| ids.get(*text).copied());
    let known = known
        .filter(|&id| matches!(types[id as usize], TokenType::Control | TokenType::User) || Some(id) == eos);
    let mut end_tokens: Vec<u32> = named.chain(eos).chain(known).collect();
    end_tokens.sort_unstable();
    end_tokens.dedup();
    end_tokens
}

/// Refuses tokens that are longer than those of any real model.
fn check_lengths(names: &[String], types: &[TokenType]) -> Result<(), EngineError> {
    let longest = names.iter().map(String::len).max().unwrap_or_default();
    if longest > MAX_TOKEN {
        return Err(broken(&format!(
            "a token of its vocabulary has {longest} bytes, the limit is {MAX_TOKEN}"
        )));
    }
    let is_special = |kind: TokenType| !matches!(kind, TokenType::Normal | TokenType::Byte);
    let special = names.iter().zip(types).filter(|(_, kind)| is_special(**kind));
    let bytes: usize = special.map(|(name, _)| name.len()).sum();
    if bytes > MAX_SPECIAL {
        return Err(broken(&format!("its special tokens have {bytes} bytes, the limit is {MAX_SPECIAL}")));
    }
    Ok(())
}

/// Source: `enum llama_token_type`.
fn token_types(value: Option<Value>, names: &[String]) -> Result<Vec<TokenType>, EngineError> {
    let Some(Value::Integers(numbers)) = value else { return Ok(vec![TokenType::Normal; names.len()]) };
    if numbers.len() != names.len() {
        return Err(broken("its vocabulary and the types of its tokens differ in length"));
    }
    let kind = |number: &i128| match number {
        2 => TokenType::Unknown,
        3 => TokenType::Control,
        4 => TokenType::User,
        5 => TokenType::Unused,
        6 => TokenType::Byte,
        _ => TokenType::Normal,
    };
    Ok(numbers.iter().map(kind).collect())
}
