//! Headers of model files that are crafted, changed or cut: each is read or refused, and none ends the program.

use kontekst_engine::gguf::{GgufError, Header, header_builder::HeaderBuilder};
use kontekst_models::ModelInfo;

use crate::hostile_input::{Random, rounds};

/// Reads a header in both ways: for what describes the model, and with all its values.
fn read(bytes: &[u8]) {
    let length = bytes.len() as u64;
    if let Ok(header) = Header::read(bytes, length) {
        let info = ModelInfo::from_header(&header);
        assert!(info.missing_bytes == header.missing_bytes());
    }
    Header::read_all::<GgufError>(bytes, length, |_| Ok(())).ok();
}

/// The header of the model in this repository, with the first of its weights.
fn real() -> Vec<u8> {
    let mut bytes =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/crates/starter/kontekst.gguf")).unwrap();
    let header = Header::read(bytes.as_slice(), bytes.len() as u64).unwrap();
    bytes.truncate(usize::try_from(header.length).unwrap() + 64);
    bytes
}

fn number(random: &mut Random) -> u64 {
    let power = 1_u64 << random.below(64);
    [0, 1, 2, 7, power, power - 1, u64::MAX, u64::MAX / 8 + 1][random.below(8)]
}

fn small(random: &mut Random, below: usize) -> u32 {
    u32::try_from(random.below(below)).unwrap()
}

/// Entries of random types, counts and bytes under the keys that are read.
fn crafted(random: &mut Random) -> Vec<u8> {
    const KEYS: [&str; 9] = [
        "general.architecture",
        "general.alignment",
        "general.file_type",
        "tokenizer.chat_template",
        "tokenizer.ggml.tokens",
        "llama.block_count",
        "llama.attention.head_count",
        "llama.attention.head_count_kv",
        "llama.embedding_length",
    ];
    let mut builder = HeaderBuilder::default();
    if random.below(2) == 0 {
        builder = builder.text("general.architecture", "llama");
    }
    for _ in 0..random.below(6) {
        let key = KEYS[random.below(KEYS.len())];
        let bytes: Vec<u8> = (0..random.below(40)).map(|_| random.byte()).collect();
        builder = match random.below(4) {
            0 => builder.raw(key, small(random, 15), &bytes),
            1 => builder.list(key, small(random, 15), number(random), &bytes),
            2 => builder.raw(key, 10, &number(random).to_le_bytes()),
            _ => builder.u32(key, small(random, 5000)),
        };
    }
    for _ in 0..random.below(3) {
        let dimensions: Vec<u64> = (0..random.below(10)).map(|_| number(random)).collect();
        builder = builder.tensor(&dimensions, small(random, 50));
    }
    match random.below(4) {
        0 => builder.bytes_with(small(random, 5), number(random), number(random)),
        _ => builder.bytes(),
    }
}

#[test]
fn crafted_headers_are_read_or_refused() {
    let mut random = Random::new(3);
    for _ in 0..rounds(2000, 20_000) {
        read(&crafted(&mut random));
    }
}

#[test]
fn changed_and_cut_headers_are_read_or_refused() {
    let (mut random, whole) = (Random::new(4), real());
    for _ in 0..rounds(300, 5000) {
        let mut changed = whole.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(changed.len());
            changed[at] = random.byte();
        }
        read(&changed);
    }
    for _ in 0..rounds(100, 400) {
        read(&whole[..random.below(whole.len())]);
    }
}
