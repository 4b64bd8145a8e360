//! The properties of a model that matter for running it, taken from the header of its file.

use std::path::Path;

use super::{
    gguf::{GgufError, Header, Value},
    quantisation,
    template::TemplateSupport,
};

/// The properties of a model. Those that its file does not state are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInfo {
    pub title: Option<String>,
    /// `general.finetune`, for example `Instruct` or `base`.
    pub(crate) finetune: Option<String>,
    pub architecture: Option<String>,
    /// The number of parameters in all tensors.
    pub parameters: u64,
    pub quantisation: Option<String>,
    /// The longest context that it was trained for, in tokens.
    pub context_window: Option<u64>,
    pub layers: Option<u64>,
    /// The size of the key-value cache for one token, with 16 bits per value. This is an upper bound, because layers
    /// with a sliding window keep less.
    pub cache_bytes_per_token: Option<u64>,
    /// The number of tokens in its vocabulary.
    pub(crate) vocabulary: u64,
    /// The length of the longest vector that is computed for a token: the one between the halves of a layer.
    pub(crate) widest: u64,
    pub tokenizer: Option<String>,
    pub template: Option<TemplateSupport>,
    /// The model computes embeddings and cannot answer.
    pub is_embedding: bool,
    /// The number of bytes that its files lack at their ends.
    pub missing_bytes: u64,
}

impl ModelInfo {
    /// Reads the headers of a model's files. The first file has the properties, and all of them have tensors.
    ///
    /// # Errors
    ///
    /// The [`GgufError`] of the first file that cannot be read.
    pub fn read<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<Self, GgufError> {
        let mut files = files.into_iter();
        let first = files.next().ok_or(GgufError::NotGguf)?;
        let mut info = Self::from_header(&Header::open(first)?);
        for file in files {
            let more = Header::open(file)?;
            info.parameters = info.parameters.saturating_add(parameter_count(&more));
            info.missing_bytes = info.missing_bytes.saturating_add(more.missing_bytes());
        }
        Ok(info)
    }

    pub fn from_header(header: &Header) -> Self {
        let text = |key: &str| header.string(key).map(str::to_owned);
        let architecture = text("general.architecture");
        let own = |key: &str| format!("{}.{key}", architecture.as_deref().unwrap_or_default());
        let layers = header.unsigned(&own("block_count"));
        let named = header.unsigned("general.file_type").and_then(quantisation::from_file_type);
        Self {
            title: text("general.name"),
            finetune: text("general.finetune"),
            parameters: parameter_count(header),
            quantisation: named
                .or_else(|| quantisation::from_tensor_types(&header.elements))
                .map(str::to_owned),
            context_window: header.unsigned(&own("context_length")),
            layers,
            vocabulary: match header.value("tokenizer.ggml.tokens") {
                Some(Value::Skipped(count)) => *count,
                _ => 0,
            },
            widest: widest(header, &own, layers),
            cache_bytes_per_token: layers.and_then(|layers| cache_bytes_per_token(header, &own, layers)),
            tokenizer: match (header.string("tokenizer.ggml.model"), header.string("tokenizer.ggml.pre")) {
                (Some(model), Some(pre)) => Some(format!("{model} ({pre})")),
                (Some(model), None) => Some(model.to_owned()),
                (None, _) => None,
            },
            template: TemplateSupport::in_header(header),
            is_embedding: header.value(&own("pooling_type")).is_some()
                && header.unsigned(&own("pooling_type")) != Some(0),
            missing_bytes: header.missing_bytes(),
            architecture,
        }
    }
}

fn parameter_count(header: &Header) -> u64 {
    header.elements.values().fold(0, |sum, &count| sum.saturating_add(count))
}

/// Returns the size of the largest feed-forward network, or 0 if the file does not tell.
fn widest(header: &Header, own: &dyn Fn(&str) -> String, layers: Option<u64>) -> u64 {
    let of_layers = layers.and_then(|layers| header.per_layer(&own("feed_forward_length"), layers));
    of_layers.and_then(|lengths| lengths.into_iter().max()).unwrap_or(0)
}

/// Returns two bytes for each value of a key and a value vector, for each KV head in each layer.
fn cache_bytes_per_token(header: &Header, own: &dyn Fn(&str) -> String, layers: u64) -> Option<u64> {
    let heads = header.per_layer(&own("attention.head_count"), layers)?;
    let of_their_own =
        header.per_layer(&own("attention.head_count_kv"), layers).unwrap_or_else(|| heads.clone());
    let most_heads = heads.iter().copied().max().filter(|&heads| heads > 0)?;
    let width = header.unsigned(&own("embedding_length")).map(|length| length / most_heads);
    let key = header.unsigned(&own("attention.key_length")).or(width)?;
    let value = header.unsigned(&own("attention.value_length")).or(width)?;
    let heads = of_their_own.iter().try_fold(0_u64, |sum, &heads| sum.checked_add(heads))?;
    heads.checked_mul(key.checked_add(value)?)?.checked_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontekst_engine::gguf::header_builder::HeaderBuilder;

    fn info(builder: &HeaderBuilder) -> ModelInfo {
        let bytes = builder.bytes();
        ModelInfo::from_header(&Header::read(bytes.as_slice(), bytes.len() as u64).unwrap())
    }

    /// Returns the header of Llama 3 8B.
    fn llama() -> HeaderBuilder {
        HeaderBuilder::default()
            .text("general.architecture", "llama")
            .text("general.name", "Llama 3 8B")
            .u32("general.file_type", 15)
            .u32("llama.context_length", 8192)
            .u32("llama.embedding_length", 4096)
            .u32("llama.block_count", 32)
            .u32("llama.attention.head_count", 32)
            .u32("llama.attention.head_count_kv", 8)
            .u32("llama.feed_forward_length", 14_336)
            .list("tokenizer.ggml.tokens", 8, 2, b"\x01\0\0\0\0\0\0\0a\x01\0\0\0\0\0\0\0b")
            .text("tokenizer.ggml.model", "gpt2")
            .text("tokenizer.ggml.pre", "llama-bpe")
            .tensor(&[4096, 14_336], 12)
    }

    #[test]
    fn a_model_as_its_file_describes_it() {
        let info = info(&llama());
        assert_eq!(info.quantisation.as_deref(), Some("Q4_K_M"));
        assert_eq!((info.context_window, info.layers), (Some(8192), Some(32)));
        assert_eq!(
            info.cache_bytes_per_token,
            Some(131_072),
            "128 KiB for each token is what llama.cpp reports for it"
        );
        assert_eq!(info.tokenizer.as_deref(), Some("gpt2 (llama-bpe)"));
        assert_eq!((info.template, info.parameters), (None, 58_720_256));
        assert_eq!((info.vocabulary, info.widest), (2, 14_336));
    }

    #[test]
    fn heads_that_differ_by_layer_and_keys_that_differ_from_values() {
        let heads = [4_u32, 0, 2].map(u32::to_le_bytes).concat();
        let builder = HeaderBuilder::default()
            .text("general.architecture", "mix")
            .u32("mix.block_count", 3)
            .u32("mix.attention.head_count", 8)
            .list("mix.attention.head_count_kv", 4, 3, &heads)
            .u32("mix.attention.key_length", 192)
            .u32("mix.attention.value_length", 128);
        assert_eq!(info(&builder).cache_bytes_per_token, Some(6 * (192 + 128) * 2));
    }

    #[test]
    fn what_the_file_leaves_out_is_unknown_and_nothing_overflows() {
        assert_eq!(info(&HeaderBuilder::default()), ModelInfo::default());
        let huge = |key: &str, builder: HeaderBuilder| builder.raw(key, 10, &u64::MAX.to_le_bytes());
        let builder = HeaderBuilder::default().text("general.architecture", "x");
        let keys =
            ["x.block_count", "x.attention.head_count", "x.attention.key_length", "x.embedding_length"];
        let builder = keys.into_iter().fold(builder, |builder, key| huge(key, builder));
        assert_eq!(info(&builder).cache_bytes_per_token, None);
        assert_eq!(
            info(&HeaderBuilder::default().tensor(&[2], 12).tensor(&[1], 0)).quantisation.as_deref(),
            Some("Q4_K")
        );
    }
}
