//! Small vocabularies, and what llama.cpp makes of texts with them.

use std::io::Cursor;

use candle_core::quantized::gguf_file::{self, Value};

use super::{Utf8Decoder, Vocabulary};
use crate::{
    EngineError,
    inference::{
        model_file::ModelFile,
        template::{InThisProcess, Template, TemplateSource},
    },
};

fn texts(texts: &[&str]) -> Value {
    Value::Array(texts.iter().map(|text| Value::String((*text).to_owned())).collect())
}

fn tokens(entries: &[(&str, Value)]) -> Vocabulary {
    take(entries).unwrap()
}

fn take(entries: &[(&str, Value)]) -> Result<Vocabulary, EngineError> {
    let entries: Vec<_> = entries.iter().map(|(key, value)| (*key, value)).collect();
    let mut file = Cursor::new(Vec::new());
    gguf_file::write(&mut file, &entries, &[]).unwrap();
    Vocabulary::take(&mut ModelFile::read(file).unwrap())
}

/// All bytes, then pairs that can be joined, then one token of each special kind.
fn bpe(pre: &str) -> Vocabulary {
    let letters: Vec<String> =
        (0..=255).map(|byte| crate::inference::random_model::letter(byte).to_string()).collect();
    let mut names: Vec<&str> = letters.iter().map(String::as_str).collect();
    names.extend(["he", "ll", "hell", "hello", "Ġhello", "Ġ1", "12", "ĠĠ", "<|end|>", "<tool>"]);
    let mut kinds = vec![Value::I32(1); names.len()];
    kinds[264] = Value::I32(3);
    kinds[265] = Value::I32(4);
    tokens(&[
        ("tokenizer.ggml.model", Value::String("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Value::String(pre.to_owned())),
        ("tokenizer.ggml.tokens", texts(&names)),
        ("tokenizer.ggml.token_type", Value::Array(kinds)),
        ("tokenizer.ggml.merges", texts(&["h e", "l l", "he ll", "hell o", "Ġ hello", "Ġ 1", "1 2", "Ġ Ġ"])),
        ("tokenizer.ggml.eos_token_id", Value::U32(264)),
    ])
}

fn named(tokens: &Vocabulary, text: &str, special: bool) -> Vec<String> {
    tokens.encode(text, special).into_iter().map(|id| tokens.text(id).into_owned()).collect()
}

#[test]
fn neighbours_are_joined_in_the_order_of_the_merges() {
    let tokens = bpe("qwen2");
    assert_eq!(named(&tokens, "hello", false), ["hello"]);
    assert_eq!(named(&tokens, " hello hell", false), [" hello", " ", "hell"]);
    assert_eq!(named(&tokens, "a12", false), ["a", "1", "2"]);
    assert_eq!(named(&tokens, "   x", false), ["  ", " ", "x"]);
    assert_eq!(tokens.encode("é\u{0}", false), [0xc3, 0xa9, 0]);
    // GPT-2 keeps numbers together, and a space in front of them.
    assert_eq!(named(&bpe("gpt-2"), " 12", false), [" 1", "2"]);
    assert_eq!(named(&bpe("gpt-2"), "12", false), ["12"]);
    assert_eq!(named(&bpe("smollm"), " 12", false), [" ", "1", "2"]);
    assert!(bpe("llama-bpe").encode("hello", false) == [259]);
}

#[test]
fn special_tokens_are_found_where_a_template_wrote_them() {
    let tokens = bpe("qwen2");
    assert_eq!(named(&tokens, "he<|end|>he<tool>", true), ["he", "<|end|>", "he", "<tool>"]);
    assert_eq!(tokens.encode("<|end|>", true), [264]);
    // What a user wrote does not end anything.
    assert_eq!(tokens.encode("<|end|>", false).len(), 7);
    assert_eq!(tokens.encode("<tool>", false), [265]);
    assert!(tokens.is_end(264) && tokens.is_control(264) && tokens.bytes(264).is_empty());
    assert!(!tokens.is_end(265) && !tokens.is_control(265) && tokens.bytes(265) == b"<tool>");
    assert_eq!(tokens.id("<tool>"), Some(265));
    assert_eq!(tokens.bytes(9_999), b"");
}

#[test]
fn every_text_comes_back() {
    let text = "hello  12\r\n\tit's 3.14 — naïve 日本語 \u{1f600}\u{0}\u{7f} end \n\n ";
    for pre in ["default", "gpt-2", "qwen2", "llama-bpe", "smollm", "gpt-4o", "tekken"] {
        let tokens = bpe(pre);
        let bytes: Vec<u8> =
            tokens.encode(text, false).into_iter().flat_map(|id| tokens.bytes(id).to_vec()).collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), text, "{pre}");
    }
}

#[test]
fn long_words_take_no_long_time() {
    let tokens = bpe("qwen2");
    let text = "hell".repeat(100_000);
    assert_eq!(tokens.encode(&text, false).len(), 100_000);
    assert_eq!(tokens.encode(&" ".repeat(400_000), false).len(), 200_000);
}

#[test]
fn tokens_that_are_longer_than_any_are_refused_at_once() {
    let refused = |count: usize, length: usize, kind: i32| {
        let names: Vec<String> = (0..count).map(|at| format!("{at:04}{}", "x".repeat(length - 4))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let taken = take(&[
            ("tokenizer.ggml.model", Value::String("gpt2".to_owned())),
            ("tokenizer.ggml.tokens", texts(&names)),
            ("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(kind); count])),
        ]);
        taken.err().map_or_else(String::new, |error| error.to_string())
    };
    for kind in [1, 3, 4] {
        let error = refused(300, 200_000, kind);
        assert!(error.ends_with("a token of its vocabulary has 200000 bytes, the limit is 4096"), "{error}");
    }
    for kind in [3, 4] {
        let error = refused(300, 4000, kind);
        assert!(error.ends_with("its special tokens have 1200000 bytes, the limit is 1048576"), "{error}");
        // The largest allowed vocabulary takes little time to build.
        assert_eq!(refused(250, 4000, kind), "");
        assert_eq!(refused(90, 4000, kind), "");
    }
}

fn spm(space: bool) -> Vocabulary {
    let names = [
        "<unk>", "<s>", "</s>", "<0x0A>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁a", "▁ab", "aba",
        "<turn>",
    ];
    let scores = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -9.0, -8.0, -7.0, -3.0, -2.0, -4.0, -1.0, 0.0];
    let kinds = [2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 3];
    tokens(&[
        ("tokenizer.ggml.model", Value::String("llama".to_owned())),
        ("tokenizer.ggml.tokens", texts(&names)),
        ("tokenizer.ggml.scores", Value::Array(scores.map(Value::F32).to_vec())),
        ("tokenizer.ggml.token_type", Value::Array(kinds.map(Value::I32).to_vec())),
        ("tokenizer.ggml.bos_token_id", Value::U32(1)),
        ("tokenizer.ggml.eos_token_id", Value::U32(2)),
        ("tokenizer.ggml.add_space_prefix", Value::Bool(space)),
    ])
}

#[test]
fn the_best_score_is_joined_first() {
    let tokens = spm(true);
    // "▁a" scores better than "ab", and what is left of "ab" is a "b".
    assert_eq!(tokens.encode("ab", false), [11]);
    assert_eq!(spm(false).encode("ab", false), [9]);
    assert_eq!(spm(false).encode("aba", false), [12]);
    assert_eq!(spm(false).encode("a ab", false), [7, 11]);
    assert_eq!(spm(false).encode("\né", false), [3, 4, 5]);
    assert_eq!(spm(false).encode("?", false), [0]);
    assert_eq!(tokens.prompt("<turn>a"), [1, 13, 10]);
    assert_eq!(tokens.prompt("<s>a"), [1, 10]);
    assert_eq!((tokens.bytes(11), tokens.bytes(4), tokens.bytes(13)), (&b" ab"[..], &[0xc3][..], &b""[..]));
}

/// A vocabulary like Phi-3's.
fn phi3(model: &str) -> Vocabulary {
    let special = ["<unk>", "<s>", "</s>", "<|endoftext|>", "<|system|>", "<|end|>", "<|user|>"];
    let normal = ["\u{2581}", "Y", "o", "u", "\u{2581}Y", "\u{2581}Yo", "\u{2581}You"];
    let names: Vec<&str> = special.into_iter().chain(["<0x0A>"]).chain(normal).collect();
    let kinds = [2, 3, 3, 3, 3, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1];
    let scores = (0..names.len()).map(|at| Value::F32(at as f32)).collect();
    tokens(&[
        ("general.name", Value::String(model.to_owned())),
        ("tokenizer.ggml.model", Value::String("llama".to_owned())),
        ("tokenizer.ggml.tokens", texts(&names)),
        ("tokenizer.ggml.scores", Value::Array(scores)),
        ("tokenizer.ggml.token_type", Value::Array(kinds.map(Value::I32).to_vec())),
        ("tokenizer.ggml.bos_token_id", Value::U32(1)),
        ("tokenizer.ggml.eos_token_id", Value::U32(3)),
        ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
    ])
}

#[test]
fn white_space_after_a_special_token_of_phi_3_is_dropped() {
    let tokens = phi3("Phi-3.5 mini");
    let control = ["<s>", "<|endoftext|>", "<|system|>", "<|end|>", "<|user|>"].map(str::to_owned).to_vec();
    let source = TemplateSource { control, ..TemplateSource::default() };
    let template = Template::new(source, &InThisProcess).unwrap();
    for (text, wanted) in [
        ("<|system|>\nYou", &[4, 14][..]),
        ("<|system|>\n \t\r\x0b\x0cYou<|end|>\n<|user|>\n", &[4, 14, 5, 6]),
        ("<s>\nYou", &[1, 8, 7, 9, 10, 11]),
        ("<|endoftext|> You", &[3, 8, 14]),
        // Other white space is text.
        ("<|end|>\u{a0}You", &[5, 8, 0, 0, 9, 10, 11]),
    ] {
        assert_eq!(template.tokenize(&tokens, text), wanted, "{text:?}");
        assert_eq!(tokens.encode(text, true), wanted, "{text:?}");
    }
    // Other models get every character.
    assert_eq!(phi3("Llama").encode("<|system|>\nYou", true), [4, 8, 7, 9, 10, 11]);
    assert_eq!(template.tokenize(&phi3("Llama"), "<|system|>\nYou"), [4, 8, 7, 9, 10, 11]);
}

#[test]
fn characters_come_whole() {
    let mut characters = Utf8Decoder::default();
    let mut said = Vec::new();
    for byte in "aé日😀".bytes() {
        said.push(characters.push(&[byte]));
    }
    assert_eq!(said, ["a", "", "é", "", "", "日", "", "", "", "😀"]);
    assert_eq!(characters.finish(), None);
    // What can become no character is replaced at once, what is missing at the end.
    assert_eq!(characters.push(&[b'x', 0xff, b'y', 0xe6, 0x97]), "x\u{fffd}y");
    assert_eq!(characters.push(b"z"), "\u{fffd}z");
    assert_eq!(characters.push(&[0xf0, 0x9f]), "");
    assert_eq!(characters.finish(), Some('\u{fffd}'));
}
