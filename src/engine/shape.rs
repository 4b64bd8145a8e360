//! What a header says about the network: how large it is, and in what its architecture differs from the others.

use crate::engine::{
    EngineError,
    gguf::{Gguf, Value, broken},
    weights::SMALL,
};

/// The architectures that this engine runs, as `general.architecture` calls them.
pub const ARCHITECTURES: &[&str] = &["llama", "qwen2", "qwen3", "gemma3", "phi3", "lfm2"];

/// A network, without its weights.
#[derive(Clone, Debug)]
pub struct Shape {
    pub layers: usize,
    /// Numbers that stand for one token between layers.
    pub width: usize,
    pub heads: usize,
    /// Numbers of one head.
    pub head: usize,
    /// Heads of keys and values in each layer; none in a layer that is a convolution.
    pub kv_heads: Vec<usize>,
    pub epsilon: f32,
    pub context: usize,
    pub rope: Rope,
    /// Which set of `rope_factors_` is used: `short` up to the length that the model was first made for.
    pub factors: &'static str,
    /// A second rope for layers that look at a window only.
    pub local: Option<Local>,
    /// What a query is multiplied by.
    pub scale: f32,
    /// What the embedding of a token is multiplied by.
    pub embedding: f32,
    pub activation: Activation,
    /// Positions that a convolution looks at, its own among them.
    pub convolution: usize,
    /// One core does it all; see [`SMALL`].
    pub small: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Silu,
    Gelu,
}

/// How positions are turned into angles.
#[derive(Clone, Debug)]
pub struct Rope {
    /// Numbers of a head that are turned, from its first.
    pub turned: usize,
    pub base: f32,
    /// Angles are divided by this.
    pub stretch: f32,
    /// Pairs are half of `turned` apart, and not neighbours.
    pub halves: bool,
    /// What turned numbers are multiplied by.
    pub magnitude: f32,
}

/// Layers that see a window of the text.
#[derive(Clone, Debug)]
pub struct Local {
    pub rope: Rope,
    /// Positions that such a layer sees, its own among them.
    pub window: usize,
    /// Every layer is one, except each `every`th.
    pub every: usize,
}

impl Shape {
    /// `limit`: tokens that are wanted at most; 0 for as many as the model takes.
    pub fn read<R>(gguf: &Gguf<R>, limit: usize) -> Result<Self, EngineError> {
        let name = gguf.text("general.architecture").ok_or_else(|| broken("it names no architecture"))?;
        if !ARCHITECTURES.contains(&name) {
            return Err(EngineError::Architecture(name.chars().take(64).collect()));
        }
        let missing = |key: &str| broken(&format!("{name}.{key} is missing or makes no sense"));
        let whole = |key: &str| gguf.whole(&format!("{name}.{key}"));
        let sized = |key: &str, most: usize| {
            whole(key).filter(|value| (1..=most).contains(value)).ok_or_else(|| missing(key))
        };
        let real = |key: &str| gguf.real(&format!("{name}.{key}")).filter(|value| value.is_finite());
        if whole("expert_count").is_some_and(|experts| experts > 0) {
            return Err(EngineError::Unsupported("a mixture of experts".to_owned()));
        }
        let layers = sized("block_count", 1024)?;
        let width = sized("embedding_length", 1 << 17)?;
        let heads = sized("attention.head_count", 4096)?;
        let head = match whole("attention.key_length") {
            Some(_) => sized("attention.key_length", 1024)?,
            None => width / heads,
        };
        if head < 2 || whole("attention.value_length").is_some_and(|value| value != head) {
            return Err(missing("attention.value_length"));
        }
        let kv_heads = match gguf.value(&format!("{name}.attention.head_count_kv")) {
            None => vec![heads; layers],
            Some(Value::Whole(count)) => vec![usize::try_from(*count).unwrap_or(0); layers],
            Some(Value::Wholes(counts)) => {
                counts.iter().map(|&count| usize::try_from(count).unwrap_or(0)).collect()
            }
            Some(_) => return Err(missing("attention.head_count_kv")),
        };
        let fits = |&count: &usize| if count == 0 { name == "lfm2" } else { heads.is_multiple_of(count) };
        if kv_heads.len() != layers || !kv_heads.iter().all(fits) {
            return Err(missing("attention.head_count_kv"));
        }
        let turned = whole("rope.dimension_count").unwrap_or(head);
        if turned > head || !turned.is_multiple_of(2) {
            return Err(missing("rope.dimension_count"));
        }
        let stretch = match gguf.text(&format!("{name}.rope.scaling.type")) {
            None | Some("none" | "longrope") => 1.0,
            Some("linear") => real("rope.scaling.factor").filter(|&factor| factor > 0.0).unwrap_or(1.0),
            Some(other) => return Err(EngineError::Unsupported(format!("positions stretched by {other:?}"))),
        };
        let rope = Rope {
            turned,
            base: real("rope.freq_base").filter(|&base| base > 0.0).unwrap_or(10_000.0),
            stretch,
            halves: name != "llama",
            magnitude: if name == "phi3" { real("rope.scaling.attn_factor").unwrap_or(1.0) } else { 1.0 },
        };
        #[expect(clippy::cast_precision_loss, reason = "both are small")]
        let (head_size, width_size, heads_size) = (head as f32, width as f32, heads as f32);
        let gemma = name == "gemma3";
        let local = gemma.then(|| Local {
            rope: Rope { base: real("rope.freq_base_swa").unwrap_or(10_000.0), stretch: 1.0, ..rope.clone() },
            window: whole("attention.sliding_window").unwrap_or(usize::MAX).max(1),
            every: 6,
        });
        // The 27 billion parameter Gemma 3, 62 layers deep, scales by what a head would be if heads filled the width.
        let per_head = if gemma && layers == 62 { width_size / heads_size } else { head_size };
        let context = match (sized("context_length", usize::MAX)?, limit) {
            (context, 0) => context,
            (context, limit) => context.min(limit),
        };
        let original = whole("rope.scaling.original_context_length").unwrap_or(usize::MAX);
        Ok(Self {
            layers,
            width,
            heads,
            head,
            kv_heads,
            epsilon: real("attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
            context,
            rope,
            factors: if context > original { "long" } else { "short" },
            local,
            scale: per_head.sqrt().recip(),
            embedding: if gemma { width_size.sqrt() } else { 1.0 },
            activation: if gemma { Activation::Gelu } else { Activation::Silu },
            convolution: if name == "lfm2" { sized("shortconv.l_cache", 64)? } else { 1 },
            small: gguf.parameters() <= SMALL,
        })
    }

    /// Does this layer see a window only?
    pub fn is_local(&self, layer: usize) -> bool {
        self.local.as_ref().is_some_and(|local| !(layer + 1).is_multiple_of(local.every))
    }
}
