//! The hyperparameters of a network, and in what its architecture differs from the others.

use crate::{
    EngineError, Limits,
    gguf::Value,
    inference::model_file::{ModelFile, broken},
};

/// The architectures that this engine runs, as `general.architecture` calls them.
pub const ARCHITECTURES: &[&str] = &["llama", "qwen2", "qwen3", "gemma3", "phi3", "lfm2"];

/// A network without its weights.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub layers: usize,
    /// Numbers that represent one token between layers.
    pub width: usize,
    pub heads: usize,
    /// Numbers of one head.
    pub head_size: usize,
    /// Heads of keys and values, by layer. A layer with none is a convolution.
    pub kv_heads: Vec<usize>,
    pub epsilon: f32,
    pub context: usize,
    pub rope: Rope,
    /// The set of `rope_factors_` that is used: `short` up to the length that the model was first made for, else `long`.
    pub rope_factors: &'static str,
    /// Layers that see only a window of the text, in some models.
    pub local: Option<LocalAttention>,
    /// The factor of each query.
    pub attention_scale: f32,
    /// The factor of the embedding of a token.
    pub embedding_scale: f32,
    pub activation: Activation,
    /// Positions that a convolution looks at, its own included.
    pub convolution: usize,
    /// The model runs on one core; see [`Limits::small_model`].
    pub small: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    Gelu,
}

/// The parameters of the rotary embedding.
#[derive(Clone, Debug)]
pub(crate) struct Rope {
    /// Numbers of a head that are rotated, from its first.
    pub rotated: usize,
    pub base: f32,
    /// The divisor of angles.
    pub linear_scale: f32,
    /// The numbers of a pair are half of `rotated` apart. Otherwise they are neighbours.
    pub halves: bool,
    /// The factor of rotated numbers.
    pub magnitude: f32,
}

/// Layers that see a window of the text.
#[derive(Clone, Debug)]
pub(crate) struct LocalAttention {
    pub rope: Rope,
    /// Positions that such a layer sees, its own included.
    pub window: usize,
    /// Every layer is local, except each `every`th.
    pub every: usize,
}

/// Reads hyperparameters, whose keys begin with the name of the architecture.
struct Parameters<'a, R> {
    file: &'a ModelFile<R>,
    architecture: &'a str,
}

impl Shape {
    pub(crate) fn read<R>(file: &ModelFile<R>, limits: &Limits) -> Result<Self, EngineError> {
        let architecture =
            file.string("general.architecture").ok_or_else(|| broken("it names no architecture"))?;
        if !ARCHITECTURES.contains(&architecture) {
            return Err(EngineError::Architecture(architecture.chars().take(64).collect()));
        }
        let parameters = Parameters { file, architecture };
        if parameters.size("expert_count").is_some_and(|experts| experts > 0) {
            return Err(EngineError::Unsupported("a mixture of experts".to_owned()));
        }
        let layers = parameters.required("block_count", 1024)?;
        let width = parameters.required("embedding_length", 1 << 17)?;
        let heads = parameters.required("attention.head_count", 4096)?;
        let head_size = parameters.head_size(width, heads)?;
        let rope = parameters.rope(head_size)?;
        let gemma = architecture == "gemma3";
        let context = match (parameters.required("context_length", usize::MAX)?, limits.context_size as usize)
        {
            (context, 0) => context,
            (context, limit) => context.min(limit),
        };
        let original = parameters.size("rope.scaling.original_context_length").unwrap_or(usize::MAX);
        #[expect(clippy::cast_precision_loss, reason = "all are small")]
        let (width_f32, heads_f32, head_f32) = (width as f32, heads as f32, head_size as f32);
        // The largest Gemma 3, 62 layers deep, scales by the size that heads would have if they filled the width.
        let scaled_by = if gemma && layers == 62 { width_f32 / heads_f32 } else { head_f32 };
        Ok(Self {
            layers,
            width,
            heads,
            head_size,
            kv_heads: parameters.kv_heads(layers, heads)?,
            epsilon: parameters.float("attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
            context,
            rope_factors: if context > original { "long" } else { "short" },
            local: gemma.then(|| parameters.local_attention(&rope)),
            rope,
            attention_scale: scaled_by.sqrt().recip(),
            embedding_scale: if gemma { width_f32.sqrt() } else { 1.0 },
            activation: if gemma { Activation::Gelu } else { Activation::Silu },
            convolution: if architecture == "lfm2" {
                parameters.required("shortconv.l_cache", 64)?
            } else {
                1
            },
            small: file.parameters() <= limits.small_model,
        })
    }

    /// Returns true if this layer sees only a window.
    pub(crate) fn is_local(&self, layer: usize) -> bool {
        self.local.as_ref().is_some_and(|local| !(layer + 1).is_multiple_of(local.every))
    }
}

impl<R> Parameters<'_, R> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn size(&self, key: &str) -> Option<usize> {
        self.file.size(&self.key(key))
    }

    fn float(&self, key: &str) -> Option<f32> {
        self.file.float(&self.key(key)).filter(|value| value.is_finite())
    }

    /// A size that must be there, from 1 to `max`.
    fn required(&self, key: &str, max: usize) -> Result<usize, EngineError> {
        self.size(key).filter(|value| (1..=max).contains(value)).ok_or_else(|| self.bad(key))
    }

    fn bad(&self, key: &str) -> EngineError {
        broken(&format!("{} is missing or makes no sense", self.key(key)))
    }

    fn head_size(&self, width: usize, heads: usize) -> Result<usize, EngineError> {
        let head_size = match self.size("attention.key_length") {
            Some(_) => self.required("attention.key_length", 1024)?,
            None => width / heads,
        };
        let same_for_values = self.size("attention.value_length").is_none_or(|value| value == head_size);
        if head_size >= 2 && same_for_values {
            Ok(head_size)
        } else {
            Err(self.bad("attention.value_length"))
        }
    }

    fn kv_heads(&self, layers: usize, heads: usize) -> Result<Vec<usize>, EngineError> {
        const KEY: &str = "attention.head_count_kv";
        let kv_heads = match self.file.value(&self.key(KEY)) {
            None => vec![heads; layers],
            Some(Value::Integer(count)) => vec![usize::try_from(*count).unwrap_or(0); layers],
            Some(Value::Integers(counts)) => {
                counts.iter().map(|&count| usize::try_from(count).unwrap_or(0)).collect()
            }
            Some(_) => return Err(self.bad(KEY)),
        };
        let has_convolutions = self.architecture == "lfm2";
        let fits = |&count: &usize| if count == 0 { has_convolutions } else { heads.is_multiple_of(count) };
        if kv_heads.len() == layers && kv_heads.iter().all(fits) { Ok(kv_heads) } else { Err(self.bad(KEY)) }
    }

    fn rope(&self, head_size: usize) -> Result<Rope, EngineError> {
        let rotated = self.size("rope.dimension_count").unwrap_or(head_size);
        if rotated > head_size || !rotated.is_multiple_of(2) {
            return Err(self.bad("rope.dimension_count"));
        }
        let linear_scale = match self.file.string(&self.key("rope.scaling.type")) {
            None | Some("none" | "longrope") => 1.0,
            Some("linear") => self.float("rope.scaling.factor").filter(|&factor| factor > 0.0).unwrap_or(1.0),
            Some(other) => return Err(EngineError::Unsupported(format!("positions stretched by {other:?}"))),
        };
        let magnitude =
            if self.architecture == "phi3" { self.float("rope.scaling.attn_factor") } else { None };
        Ok(Rope {
            rotated,
            base: self.float("rope.freq_base").filter(|&base| base > 0.0).unwrap_or(10_000.0),
            linear_scale,
            halves: self.architecture != "llama",
            magnitude: magnitude.unwrap_or(1.0),
        })
    }

    fn local_attention(&self, rope: &Rope) -> LocalAttention {
        LocalAttention {
            rope: Rope {
                base: self.float("rope.freq_base_swa").unwrap_or(10_000.0),
                linear_scale: 1.0,
                ..rope.clone()
            },
            window: self.size("attention.sliding_window").unwrap_or(usize::MAX).max(1),
            every: 6,
        }
    }
}
