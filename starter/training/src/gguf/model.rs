//! The built-in model as a file that llama.cpp and candle read: matrices in eight bits, norms in 32.

use std::ops::Range;
use std::path::Path;

use super::blocks;
use super::file::{self, Error, Found, Kind, Tensor, Value};
use crate::decode::LONGEST;
use crate::net::{EPSILON, HEAD, LOGITS, ROPE_BASE, Shape, VOCABULARY};

/// The template that turns a conversation into the model's text.
const TEMPLATE: &str = include_str!("../../template.jinja");
const MARKS: [&str; 4] = ["<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"];

/// A matrix in the file: its name, where its columns lie among the numbers, and its sides.
struct Part {
    name: String,
    place: Range<usize>,
    /// From row to row in `place`, and the first column.
    step: usize,
    first: usize,
    inputs: usize,
    outputs: usize,
}

/// # Errors
/// [`Error::Write`].
pub fn write(path: &Path, shape: Shape, numbers: &[f32]) -> Result<(), Error> {
    let mut tensors = vec![Tensor {
        name: "token_embd.weight".to_owned(),
        columns: shape.width,
        rows: VOCABULARY,
        kind: Kind::Q8_0,
        bytes: Box::new(move || blocks::pack(&numbers[shape.embedding()])),
    }];
    for part in parts(shape) {
        tensors.push(Tensor {
            name: part.name.clone(),
            columns: part.inputs,
            rows: part.outputs,
            kind: Kind::Q8_0,
            // A row per output there, a row per input here.
            bytes: Box::new(move || {
                let all = &numbers[part.place.clone()];
                let outputs = part.first..part.first + part.outputs;
                blocks::pack(
                    &outputs
                        .flat_map(|o| (0..part.inputs).map(move |i| all[i * part.step + o]))
                        .collect::<Vec<_>>(),
                )
            }),
        });
    }
    for (name, place) in norms(shape) {
        tensors.push(Tensor {
            name,
            columns: shape.width,
            rows: 1,
            kind: Kind::F32,
            bytes: Box::new(move || {
                numbers[place.clone()].iter().flat_map(|number| number.to_le_bytes()).collect()
            }),
        });
    }
    file::write(path, &head(shape), tensors)
}

/// A model from its file: the numbers as the eight bits have them.
///
/// # Errors
/// [`Error::Read`], and [`Error::Foreign`] for one that [`write`] has not made.
pub fn read(path: &Path) -> Result<(Shape, Vec<f32>), Error> {
    let (head, tensors) = file::read(path)?;
    let numbers = || {
        let side = |name: &str| head.get(name).map(|&side| side as usize).filter(|&side| side <= 4096);
        let shape = Shape {
            width: side("llama.embedding_length")?,
            layers: side("llama.block_count")?,
            ffn: side("llama.feed_forward_length")?,
        };
        let mut numbers = vec![0.0; shape.size()];
        let get =
            |name: &str, size: usize| tensors.get(name).filter(|found| found.numbers == size).map(unpacked);
        numbers[shape.embedding()].copy_from_slice(&get("token_embd.weight", VOCABULARY * shape.width)?);
        for part in parts(shape) {
            let found = get(&part.name, part.inputs * part.outputs)?;
            let all = &mut numbers[part.place.clone()];
            for (o, row) in found.chunks_exact(part.inputs).enumerate() {
                for (i, &number) in row.iter().enumerate() {
                    all[i * part.step + part.first + o] = number;
                }
            }
        }
        for (name, place) in norms(shape) {
            numbers[place].copy_from_slice(&get(&name, shape.width)?);
        }
        Some((shape, numbers))
    };
    numbers().ok_or_else(|| Error::Foreign { path: path.to_owned() })
}

fn unpacked(found: &Found) -> Vec<f32> {
    match found.kind {
        Kind::F32 => found
            .bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes(four.try_into().expect("4 bytes")))
            .collect(),
        Kind::Q8_0 => blocks::unpack(&found.bytes),
        Kind::Q4K | Kind::Q6K => Vec::new(),
    }
}

fn parts(shape: Shape) -> Vec<Part> {
    let (d, ffn) = (shape.width, shape.ffn);
    let mut parts = Vec::new();
    for number in 0..shape.layers {
        let layer = shape.layer(number);
        for (name, place, step, first, inputs, outputs) in [
            ("attn_q", &layer.qkv, 3 * d, 0, d, d),
            ("attn_k", &layer.qkv, 3 * d, d, d, d),
            ("attn_v", &layer.qkv, 3 * d, 2 * d, d, d),
            ("attn_output", &layer.out, d, 0, d, d),
            ("ffn_gate", &layer.gate_up, 2 * ffn, 0, d, ffn),
            ("ffn_up", &layer.gate_up, 2 * ffn, ffn, d, ffn),
            ("ffn_down", &layer.down, d, 0, ffn, d),
        ] {
            let name = format!("blk.{number}.{name}.weight");
            parts.push(Part { name, place: place.clone(), step, first, inputs, outputs });
        }
    }
    let head = Part {
        name: "output.weight".to_owned(),
        place: shape.head(),
        step: LOGITS,
        first: 0,
        inputs: d,
        outputs: VOCABULARY,
    };
    parts.push(head);
    parts
}

fn norms(shape: Shape) -> Vec<(String, Range<usize>)> {
    let mut norms = Vec::new();
    for number in 0..shape.layers {
        let layer = shape.layer(number);
        norms.push((format!("blk.{number}.attn_norm.weight"), layer.norm1));
        norms.push((format!("blk.{number}.ffn_norm.weight"), layer.norm2));
    }
    norms.push(("output_norm.weight".to_owned(), shape.norm()));
    norms
}

fn head(shape: Shape) -> Vec<(&'static str, Value)> {
    let number = |number: usize| Value::U32(u32::try_from(number).expect("a small network"));
    let mut head = vec![
        ("general.architecture", Value::Text("llama".to_owned())),
        ("general.name", Value::Text("kontekst".to_owned())),
        ("general.license", Value::Text("MIT OR Apache-2.0".to_owned())),
        ("general.file_type", Value::U32(7)),
        ("general.quantization_version", Value::U32(2)),
        ("llama.context_length", number(LONGEST)),
        ("llama.embedding_length", number(shape.width)),
        ("llama.block_count", number(shape.layers)),
        ("llama.feed_forward_length", number(shape.ffn)),
        ("llama.attention.head_count", number(shape.heads())),
        ("llama.attention.head_count_kv", number(shape.heads())),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(EPSILON)),
        ("llama.rope.dimension_count", number(HEAD)),
        ("llama.rope.freq_base", Value::F32(ROPE_BASE)),
        ("llama.vocab_size", number(VOCABULARY)),
        ("tokenizer.chat_template", Value::Text(TEMPLATE.trim_end().to_owned())),
    ];
    head.extend(tokenizer(VOCABULARY));
    head
}

/// Bytes under GPT-2's letters for them, the marks, and unused words up to `size`; no merges.
pub fn tokenizer(size: usize) -> Vec<(&'static str, Value)> {
    let mut tokens: Vec<String> = (0..=255).map(|byte| letter(byte).to_string()).collect();
    let mut kinds = vec![1; tokens.len()];
    tokens.extend(MARKS.map(str::to_owned));
    kinds.resize(tokens.len(), 3);
    tokens.extend((tokens.len()..size).map(|number| format!("<|unused{number}|>")));
    kinds.resize(tokens.len(), 5);
    vec![
        ("tokenizer.ggml.model", Value::Text("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Value::Text("gpt-2".to_owned())),
        ("tokenizer.ggml.tokens", Value::Texts(tokens)),
        ("tokenizer.ggml.token_type", Value::Numbers(kinds)),
        ("tokenizer.ggml.merges", Value::Texts(Vec::new())),
        ("tokenizer.ggml.eos_token_id", Value::U32(u32::from(crate::data::END))),
        ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
        ("tokenizer.ggml.add_eos_token", Value::Bool(false)),
    ]
}

/// GPT-2 writes bytes that are no letters as the ones from U+0100 on.
fn letter(byte: u8) -> char {
    let plain = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    if plain(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&byte| !plain(byte)).count();
    char::from_u32(256 + before as u32).expect("a letter of Latin Extended-A")
}

#[cfg(test)]
mod tests {
    use super::{letter, read, write};
    use crate::net::{Shape, initial};

    #[test]
    fn a_model_comes_back_rounded_to_eight_bits() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.gguf");
        let shape = Shape { width: 64, layers: 2, ffn: 96 };
        let numbers = initial(shape, 4);
        write(&path, shape, &numbers).unwrap();
        let (same, again) = read(&path).unwrap();
        assert_eq!(same, shape);
        let worst = numbers.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst > 0.0 && worst < 0.01, "{worst}");

        let bytes = std::fs::read(&path).unwrap();
        for end in [0, 3, 100, bytes.len() / 2, bytes.len() - 64] {
            std::fs::write(&path, &bytes[..end]).unwrap();
            assert!(read(&path).is_err());
        }
    }

    #[test]
    fn letters_are_gpt2s() {
        assert_eq!([b'A', b' ', b'\n', 0, 255, 173].map(letter), ['A', 'Ġ', 'Ċ', 'Ā', 'ÿ', 'Ń']);
    }
}
