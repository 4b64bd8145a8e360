//! Builds model files with random weights, for tests.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "a test has no better use for an error than to fail"
)]

use std::io::Cursor;

use candle_core::{
    Device, Tensor,
    quantized::{
        GgmlDType, QTensor,
        gguf_file::{self, Value},
    },
};

/// Weights that a file may hold, besides `F32`.
pub const KINDS: &[GgmlDType] = &[
    GgmlDType::F16,
    GgmlDType::BF16,
    GgmlDType::Q8_0,
    GgmlDType::Q4_0,
    GgmlDType::Q5_0,
    GgmlDType::Q4K,
    GgmlDType::Q5K,
    GgmlDType::Q6K,
];

/// A small model. Its tokens are the bytes, one that starts and one that ends a text.
pub struct RandomModel {
    pub name: &'static str,
    pub weights: GgmlDType,
    /// Of the values and of one half of the feed-forward, where they differ: llama.cpp mixes types within a layer.
    pub mixed: Option<GgmlDType>,
    pub layers: u32,
    pub tokens: usize,
    /// Further entries of the header.
    pub numbers: Vec<(&'static str, f32)>,
    random: u64,
}

const WIDTH: usize = 256;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD: usize = 64;
const INNER: usize = 512;

impl RandomModel {
    pub fn new(name: &'static str) -> Self {
        // Seven layers, so that Gemma has one that sees everything and one after it.
        Self {
            name,
            weights: GgmlDType::Q8_0,
            mixed: None,
            layers: if name == "gemma3" { 7 } else { 3 },
            tokens: 258,
            numbers: Vec::new(),
            random: 0,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut random = Random(self.random);
        let mut tensors: Vec<(String, QTensor)> = Vec::new();
        for (name, rows, columns) in self.matrices() {
            let scale = if name == "token_embd.weight" { 1.0 } else { 2.0 / (columns as f32).sqrt() };
            let numbers = random.numbers(rows * columns, scale);
            let weights = match self.mixed {
                _ if name.contains(".conv.") => GgmlDType::F32,
                Some(mixed) if name.contains("attn_v") || name.contains("ffn_up") => mixed,
                _ => self.weights,
            };
            tensors.push((name, quantised(numbers, (rows, columns), weights)));
        }
        for (name, length) in self.vectors() {
            let numbers = random.numbers(length, 0.2).into_iter();
            let numbers =
                if name.ends_with("bias") { numbers.collect() } else { numbers.map(|n| 1.0 + n).collect() };
            let tensor = Tensor::from_vec(numbers, length, &Device::Cpu).unwrap();
            tensors.push((name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap()));
        }
        let entries = self.entries();
        let entries: Vec<_> = entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let mut file = Cursor::new(Vec::new());
        gguf_file::write(&mut file, &entries, &tensors).unwrap();
        file.into_inner()
    }

    fn is_convolution(&self, layer: u32) -> bool {
        self.name == "lfm2" && layer != 1
    }

    fn matrices(&self) -> Vec<(String, usize, usize)> {
        let mut all = vec![("token_embd.weight".to_owned(), self.tokens, WIDTH)];
        if ["llama", "phi3"].contains(&self.name) {
            all.push(("output.weight".to_owned(), self.tokens, WIDTH));
        }
        for layer in 0..self.layers {
            let mut add =
                |name: &str, rows, columns| all.push((format!("blk.{layer}.{name}.weight"), rows, columns));
            if self.is_convolution(layer) {
                add("shortconv.conv", WIDTH, 3);
                add("shortconv.in_proj", 3 * WIDTH, WIDTH);
                add("shortconv.out_proj", WIDTH, WIDTH);
            } else if self.name == "phi3" {
                add("attn_qkv", (HEADS + 2 * KV_HEADS) * HEAD, WIDTH);
            } else {
                add("attn_q", HEADS * HEAD, WIDTH);
                add("attn_k", KV_HEADS * HEAD, WIDTH);
                add("attn_v", KV_HEADS * HEAD, WIDTH);
            }
            if !self.is_convolution(layer) {
                add("attn_output", WIDTH, HEADS * HEAD);
            }
            if self.name == "phi3" {
                add("ffn_up", 2 * INNER, WIDTH);
            } else {
                add("ffn_gate", INNER, WIDTH);
                add("ffn_up", INNER, WIDTH);
            }
            add("ffn_down", WIDTH, INNER);
        }
        all
    }

    fn vectors(&self) -> Vec<(String, usize)> {
        let last = if self.name == "lfm2" { "token_embd_norm.weight" } else { "output_norm.weight" };
        let mut all = vec![(last.to_owned(), WIDTH)];
        for layer in 0..self.layers {
            let mut add = |name: &str, length| all.push((format!("blk.{layer}.{name}"), length));
            add("attn_norm.weight", WIDTH);
            add("ffn_norm.weight", WIDTH);
            if self.name == "qwen2" {
                add("attn_q.bias", HEADS * HEAD);
                add("attn_k.bias", KV_HEADS * HEAD);
                add("attn_v.bias", KV_HEADS * HEAD);
            }
            if ["qwen3", "gemma3", "lfm2"].contains(&self.name) && !self.is_convolution(layer) {
                add("attn_q_norm.weight", HEAD);
                add("attn_k_norm.weight", HEAD);
            }
            if self.name == "gemma3" {
                add("post_attention_norm.weight", WIDTH);
                add("post_ffw_norm.weight", WIDTH);
            }
        }
        all
    }

    fn entries(&self) -> Vec<(String, Value)> {
        let mut tokens: Vec<Value> = (0..=255).map(|byte| Value::String(letter(byte).to_string())).collect();
        tokens.extend(["<|start|>", "<|end|>"].map(|name| Value::String(name.to_owned())));
        let mut kinds = vec![Value::I32(1); 256];
        kinds.extend([Value::I32(3), Value::I32(3)]);
        let name = self.name;
        let text = |text: &str| Value::String(text.to_owned());
        let number = |number: usize| Value::U32(u32::try_from(number).unwrap());
        let kv_heads =
            |layer| if self.is_convolution(layer) { Value::I32(0) } else { Value::I32(KV_HEADS as i32) };
        let mut entries = vec![
            ("general.architecture".to_owned(), text(name)),
            ("tokenizer.ggml.model".to_owned(), text("gpt2")),
            ("tokenizer.ggml.pre".to_owned(), text("gpt-2")),
            ("tokenizer.ggml.tokens".to_owned(), Value::Array(tokens)),
            ("tokenizer.ggml.token_type".to_owned(), Value::Array(kinds)),
            ("tokenizer.ggml.eos_token_id".to_owned(), number(257)),
            (format!("{name}.context_length"), number(2048)),
            (format!("{name}.embedding_length"), number(WIDTH)),
            (format!("{name}.block_count"), Value::U32(self.layers)),
            (format!("{name}.attention.head_count"), number(HEADS)),
            (format!("{name}.attention.key_length"), number(HEAD)),
            (format!("{name}.attention.layer_norm_rms_epsilon"), Value::F32(1e-6)),
        ];
        entries.push((
            format!("{name}.attention.head_count_kv"),
            if name == "lfm2" {
                Value::Array((0..self.layers).map(kv_heads).collect())
            } else {
                number(KV_HEADS)
            },
        ));
        match name {
            "lfm2" => entries.push(("lfm2.shortconv.l_cache".to_owned(), number(3))),
            "gemma3" => entries.push(("gemma3.attention.sliding_window".to_owned(), number(24))),
            "phi3" => entries.push(("phi3.rope.dimension_count".to_owned(), number(48))),
            _ => {}
        }
        entries.extend(self.numbers.iter().map(|&(key, number)| (key.to_owned(), Value::F32(number))));
        entries
    }
}

fn quantised(numbers: Vec<f32>, shape: (usize, usize), weights: GgmlDType) -> QTensor {
    let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap();
    QTensor::quantize(&tensor, weights).unwrap()
}

/// Returns the character that GPT-2 writes for a byte.
pub fn letter(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    match byte {
        byte if printable(byte) => char::from(byte),
        byte => char::from_u32(256 + (0..byte).filter(|&byte| !printable(byte)).count() as u32).unwrap(),
    }
}

struct Random(u64);

impl Random {
    /// Evenly between minus and plus `scale`.
    fn numbers(&mut self, count: usize, scale: f32) -> Vec<f32> {
        let next = |_| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0) * scale
        };
        (0..count).map(next).collect()
    }
}
