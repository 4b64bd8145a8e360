//! Writes a tiny model for tests. A table gives the next token for each token, and the last token of the prompt selects
//! what the model does.
//!
//! It answers `It works.`. A word in the last message of the user changes that: `!tool` reads README.md, `!think` reasons
//! first, `!broken` makes a call without the required argument, `!long` never stops. After a tool result it answers.

use std::{collections::BTreeMap, path::Path};

/// The chat template: ChatML with tools, and at the end the token that selects what the model does.
pub(super) const TEMPLATE: &str = "\
{%- set ns = namespace(go='<|text|>') -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if loop.first -%}{%- for tool in tools -%}{{- tool.function.name + ' ' -}}{%- endfor -%}{%- endif -%}
{%- if message.role == 'user' -%}
{%- set ns.go = '<|text|>' -%}
{%- for word in ['tool', 'think', 'broken', 'long'] -%}
{%- if '!' + word in message.content -%}{%- set ns.go = '<|' + word + '|>' -%}{%- endif -%}
{%- endfor -%}
{%- elif message.role == 'tool' -%}{%- set ns.go = '<|text|>' -%}
{%- elif message.role == 'assistant' -%}{{- ns.go -}}{%- endif -%}
{%- if message.reasoning_content -%}{{- '<think>' + message.reasoning_content + '</think>' -}}{%- endif -%}
{{- message.content -}}
{%- for call in message.tool_calls -%}
{{- '<tool_call>\\n{\"name\": \"' + call.function.name + '\", \"arguments\": ' + call.function.arguments + '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{{- '<|im_start|>assistant\\n' + ns.go -}}";

const CONTROL: [&str; 7] =
    ["<|im_start|>", "<|im_end|>", "<|text|>", "<|tool|>", "<|think|>", "<|broken|>", "<|long|>"];
const CALL: &str =
    "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"README.md\"}}\n</tool_call>";
const BROKEN: &str = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {}}\n</tool_call>";
const PIECES: [&str; 9] =
    [CALL, BROKEN, "It", " works", ".", "<think>", "Let me see.", "</think>", " and on"];

/// Pairs of a token and the token after it.
const TRANSITIONS: [(&str, &str); 13] = [
    ("<|text|>", "It"),
    ("It", " works"),
    (" works", "."),
    (".", "<|im_end|>"),
    ("<|tool|>", CALL),
    (CALL, "<|im_end|>"),
    ("<|think|>", "<think>"),
    ("<think>", "Let me see."),
    ("Let me see.", "</think>"),
    ("</think>", "It"),
    ("<|broken|>", BROKEN),
    (BROKEN, "<|im_end|>"),
    ("<|long|>", " and on"),
];

/// The bytes of the transitions between single bytes, which lead to `"x"` under a grammar.
const BYTES: &[u8] = b"{\"x\"";

/// Writes the model. The engine runs it only if `architecture` is `llama`.
pub(super) fn write(path: &Path, architecture: &str) {
    write_with_template(path, architecture, TEMPLATE);
}

/// Writes the model with another chat template.
pub(super) fn write_with_template(path: &Path, architecture: &str, template: &str) {
    let mut file = GgufFile::default();
    let tokens = tokens();
    let size = u32::try_from(tokens.len()).unwrap();
    let own = |key: &str| format!("{architecture}.{key}");
    file.text("general.architecture", architecture);
    file.text("general.name", "tiny");
    for (key, value) in [
        ("context_length", 16384),
        ("embedding_length", size),
        ("block_count", 1),
        ("feed_forward_length", 32),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 32),
        ("attention.value_length", 32),
        ("rope.dimension_count", 32),
        ("vocab_size", size),
    ] {
        file.number(&own(key), value);
    }
    file.real(&own("attention.layer_norm_rms_epsilon"), 1e-6);
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    file.texts("tokenizer.ggml.tokens", &tokens);
    file.numbers("tokenizer.ggml.token_type", &kinds(tokens.len()));
    file.texts("tokenizer.ggml.merges", &[]);
    file.number("tokenizer.ggml.eos_token_id", id(&tokens, "<|im_end|>"));
    file.text("tokenizer.chat_template", template);

    let (size, wide) = (tokens.len(), 64);
    let zeros = |rows: usize, columns: usize| vec![0.0; rows * columns];
    // Every token embedding is a unit vector, the layer adds zeros, and the output matrix is the transition table.
    let one = |at: usize| if at / size == at % size { 1.0 } else { 0.0 };
    file.tensor("token_embd.weight", &[size, size], (0..size * size).map(one).collect());
    file.tensor("output_norm.weight", &[size], vec![1.0 / (size as f32).sqrt(); size]);
    file.tensor("output.weight", &[size, size], table(&tokens));
    for name in ["attn_norm", "ffn_norm"] {
        file.tensor(&format!("blk.0.{name}.weight"), &[size], vec![1.0; size]);
    }
    for (name, rows, columns) in [
        ("attn_q", wide, size),
        ("attn_k", 32, size),
        ("attn_v", 32, size),
        ("attn_output", size, wide),
        ("ffn_gate", 32, size),
        ("ffn_up", 32, size),
        ("ffn_down", size, 32),
    ] {
        file.tensor(&format!("blk.0.{name}.weight"), &[columns, rows], zeros(rows, columns));
    }
    std::fs::write(path, file.bytes()).unwrap();
}

/// Returns GPT-2's characters for the 256 bytes, then the other tokens, then unused ones up to a multiple of 32.
fn tokens() -> Vec<String> {
    let plain = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut extra = 256_u32..;
    let letter = |byte: u8| {
        let code = if plain(byte) { u32::from(byte) } else { extra.next().unwrap() };
        char::from_u32(code).unwrap().to_string()
    };
    let mut tokens: Vec<String> = (0..=255).map(letter).collect();
    tokens.extend(CONTROL.iter().chain(&PIECES).map(|text| (*text).to_owned()));
    while !tokens.len().is_multiple_of(32) {
        tokens.push(format!("<unused{}>", tokens.len()));
    }
    tokens
}

fn kinds(count: usize) -> Vec<i32> {
    let (control, pieces) = (256 + CONTROL.len(), 256 + CONTROL.len() + PIECES.len());
    let kind = |at: usize| match at {
        at if at < 256 => 1,
        at if at < control => 3,
        at if at < pieces => 4,
        _ => 5,
    };
    (0..count).map(kind).collect()
}

fn id(tokens: &[String], text: &str) -> u32 {
    u32::try_from(tokens.iter().position(|token| token == text).unwrap()).unwrap()
}

/// Returns the output matrix: the logit of each token (row) after each token (column).
fn table(tokens: &[String]) -> Vec<f32> {
    let size = tokens.len();
    let mut table = vec![0.0; size * size];
    let mut follows = |before: u32, after: u32| table[after as usize * size + before as usize] = 40.0;
    for (before, after) in TRANSITIONS {
        follows(id(tokens, before), id(tokens, after));
    }
    follows(id(tokens, " and on"), id(tokens, " and on"));
    for pair in BYTES.windows(2) {
        follows(pair[0].into(), pair[1].into());
    }
    table
}

/// A GGUF file, as described in the GGUF specification, version 3.
#[derive(Default)]
struct GgufFile {
    entries: BTreeMap<String, Vec<u8>>,
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

impl GgufFile {
    fn entry(&mut self, key: &str, kind: u32, value: &[u8]) {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(value);
        self.entries.insert(key.to_owned(), bytes);
    }

    fn text(&mut self, key: &str, value: &str) {
        self.entry(key, 8, &text(value));
    }

    fn number(&mut self, key: &str, value: u32) {
        self.entry(key, 4, &value.to_le_bytes());
    }

    fn real(&mut self, key: &str, value: f32) {
        self.entry(key, 6, &value.to_le_bytes());
    }

    fn list(&mut self, key: &str, kind: u32, count: usize, items: impl IntoIterator<Item = Vec<u8>>) {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((count as u64).to_le_bytes());
        bytes.extend(items.into_iter().flatten());
        self.entry(key, 9, &bytes);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        self.list(key, 8, values.len(), values.iter().map(|value| text(value)));
    }

    fn numbers(&mut self, key: &str, values: &[i32]) {
        self.list(key, 5, values.len(), values.iter().map(|value| value.to_le_bytes().to_vec()));
    }

    fn tensor(&mut self, name: &str, dimensions: &[usize], values: Vec<f32>) {
        self.tensors.push((name.to_owned(), dimensions.to_vec(), values));
    }

    fn bytes(&self) -> Vec<u8> {
        const ALIGNMENT: usize = 32;
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            bytes.extend(text(key));
            bytes.extend(value);
        }
        let mut offset = 0_u64;
        for (name, dimensions, values) in &self.tensors {
            bytes.extend(text(name));
            bytes.extend(u32::try_from(dimensions.len()).unwrap().to_le_bytes());
            bytes.extend(dimensions.iter().flat_map(|&dimension| (dimension as u64).to_le_bytes()));
            bytes.extend(0_u32.to_le_bytes()); // F32
            bytes.extend(offset.to_le_bytes());
            offset += (values.len() as u64 * 4).next_multiple_of(ALIGNMENT as u64);
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        for (_, _, values) in &self.tensors {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        bytes
    }
}
