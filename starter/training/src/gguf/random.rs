//! A model of about 300 million random numbers, as large as a small real one: for measuring speed.

use std::path::Path;

use super::file::{self, Error, Kind, Tensor, Value};
use super::model::tokenizer;

const WIDTH: usize = 1024;
const LAYERS: usize = 20;
const FFN: usize = 2816;
const HEADS: usize = 16;
const TOKENS: usize = 32_000;

/// Ends a conversation's messages with nothing: it says noise anyway.
const TEMPLATE: &str = "{%- for message in messages -%}{{- message.content -}}{%- endfor -%}";

/// The type of the numbers in its matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Quantization {
    #[value(name = "q8_0")]
    Q8,
    /// As llama.cpp mixes it: Q4_K, and Q6_K for the output and half of what is sensitive.
    #[value(name = "q4_k_m")]
    Q4,
}

/// Writes it.
///
/// # Errors
/// [`Error::Write`].
pub fn random(path: &Path, quantization: Quantization, seed: u64) -> Result<(), Error> {
    let (main, fine, file_type) = match quantization {
        Quantization::Q8 => (Kind::Q8_0, Kind::Q8_0, 7),
        Quantization::Q4 => (Kind::Q4K, Kind::Q6K, 15),
    };
    let matrix = |name: String, columns: usize, rows: usize, kind: Kind| {
        let mut rng = fastrand::Rng::with_seed(
            seed ^ name.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte)),
        );
        let bytes = move || blocks(kind, rows * columns, columns, &mut rng);
        Tensor { name, columns, rows, kind, bytes: Box::new(bytes) }
    };
    let norm = |name: String| {
        let bytes = || 1_f32.to_le_bytes().repeat(WIDTH);
        Tensor { name, columns: WIDTH, rows: 1, kind: Kind::F32, bytes: Box::new(bytes) }
    };
    let mut tensors = vec![matrix("token_embd.weight".to_owned(), WIDTH, TOKENS, main)];
    for layer in 0..LAYERS {
        let sensitive = if layer % 2 == 0 { fine } else { main };
        let name = |of: &str| format!("blk.{layer}.{of}.weight");
        for (of, columns, rows, kind) in [
            ("attn_q", WIDTH, WIDTH, main),
            ("attn_k", WIDTH, WIDTH, main),
            ("attn_v", WIDTH, WIDTH, sensitive),
            ("attn_output", WIDTH, WIDTH, main),
            ("ffn_gate", WIDTH, FFN, main),
            ("ffn_up", WIDTH, FFN, main),
            ("ffn_down", FFN, WIDTH, sensitive),
        ] {
            tensors.push(matrix(name(of), columns, rows, kind));
        }
        tensors.extend([norm(name("attn_norm")), norm(name("ffn_norm"))]);
    }
    tensors.push(norm("output_norm.weight".to_owned()));
    tensors.push(matrix("output.weight".to_owned(), WIDTH, TOKENS, fine));

    let number = |number: usize| Value::U32(u32::try_from(number).expect("a small network"));
    let mut head = vec![
        ("general.architecture", Value::Text("llama".to_owned())),
        ("general.name", Value::Text("random".to_owned())),
        ("general.file_type", Value::U32(file_type)),
        ("general.quantization_version", Value::U32(2)),
        ("llama.context_length", Value::U32(4096)),
        ("llama.embedding_length", number(WIDTH)),
        ("llama.block_count", number(LAYERS)),
        ("llama.feed_forward_length", number(FFN)),
        ("llama.attention.head_count", number(HEADS)),
        ("llama.attention.head_count_kv", number(HEADS)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.rope.dimension_count", number(WIDTH / HEADS)),
        ("llama.rope.freq_base", Value::F32(10_000.0)),
        ("llama.vocab_size", number(TOKENS)),
        ("tokenizer.chat_template", Value::Text(TEMPLATE.to_owned())),
    ];
    head.extend(tokenizer(TOKENS));
    file::write(path, &head, tensors)
}

/// Blocks whose numbers are about as large as those of a trained matrix with so many inputs.
fn blocks(kind: Kind, numbers: usize, inputs: usize, rng: &mut fastrand::Rng) -> Vec<u8> {
    let (block, size) = kind.block();
    let deviation = (inputs as f32).powf(-0.5);
    let mut bytes = vec![0; numbers / block * size];
    rng.fill(&mut bytes);
    for block in bytes.chunks_exact_mut(size) {
        let part = |parts: f32| half::f16::from_f32(deviation / parts).to_le_bytes();
        match kind {
            Kind::F32 => {}
            // From -128 to 127 evenly.
            Kind::Q8_0 => block[..2].copy_from_slice(&part(74.0)),
            // scale (0..64) · number (0..16) minus scale (0..64) · 7.5 on average.
            Kind::Q4K => {
                block[..2].copy_from_slice(&part(170.0));
                block[2..4].copy_from_slice(&part(170.0 / 7.5));
            }
            // scale (kept to -8..8) · number (-32..32).
            Kind::Q6K => {
                for scale in &mut block[192..208] {
                    *scale = (scale.cast_signed() / 16).cast_unsigned();
                }
                block[208..].copy_from_slice(&part(85.0));
            }
        }
    }
    bytes
}
