//! The size of the network, and the position of each of its matrices.
//!
//! All numbers are one slice. A matrix has a row per input and a column per output, so `y = x · w`.

use std::ops::Range;

/// Bytes, and the four marks.
pub const VOCABULARY: usize = 260;
/// The columns of the last matrix: [`VOCABULARY`] filled up to a multiple of 32. Those behind it stay zero.
pub const LOGITS: usize = 288;
/// Numbers in a head. Fixed: small heads are what many copies at once want, and the kernels want 32.
pub const HEAD: usize = 32;
pub const EPSILON: f32 = 1e-5;
pub const ROPE_BASE: f32 = 10_000.0;

/// Each a multiple of 32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub width: usize,
    pub layers: usize,
    pub ffn: usize,
}

/// The positions of a layer's matrices.
#[derive(Clone, Debug)]
pub struct Layer {
    pub norm1: Range<usize>,
    /// Queries, keys and values side by side: width to 3 · width.
    pub qkv: Range<usize>,
    /// width to width.
    pub out: Range<usize>,
    pub norm2: Range<usize>,
    /// Gate and up side by side: width to 2 · ffn.
    pub gate_up: Range<usize>,
    /// ffn to width.
    pub down: Range<usize>,
}

impl Shape {
    pub fn heads(&self) -> usize {
        self.width / HEAD
    }

    /// A row per token.
    pub fn embedding(&self) -> Range<usize> {
        0..VOCABULARY * self.width
    }

    /// # Panics
    /// If there is no such layer.
    pub fn layer(&self, number: usize) -> Layer {
        assert!(number < self.layers);
        let mut at = self.embedding().end + number * self.layer_size();
        let mut next = |size: usize| {
            at += size;
            at - size..at
        };
        let (d, f) = (self.width, self.ffn);
        Layer {
            norm1: next(d),
            qkv: next(3 * d * d),
            out: next(d * d),
            norm2: next(d),
            gate_up: next(2 * d * f),
            down: next(d * f),
        }
    }

    fn layer_size(&self) -> usize {
        2 * self.width + 4 * self.width * self.width + 3 * self.width * self.ffn
    }

    pub fn norm(&self) -> Range<usize> {
        let at = self.embedding().end + self.layers * self.layer_size();
        at..at + self.width
    }

    /// width to [`LOGITS`].
    pub fn head(&self) -> Range<usize> {
        let at = self.norm().end;
        at..at + self.width * LOGITS
    }

    /// All of them.
    pub fn size(&self) -> usize {
        self.head().end
    }

    /// Those that a file needs: without the filling of the last matrix.
    pub fn parameters(&self) -> usize {
        self.size() - self.width * (LOGITS - VOCABULARY)
    }

    /// The matrices inside the layers, as (place, inputs, outputs), side by side ones apart.
    pub fn hidden(&self) -> Vec<(Range<usize>, usize, usize)> {
        let mut all = Vec::new();
        for layer in (0..self.layers).map(|number| self.layer(number)) {
            all.push((layer.qkv, self.width, 3 * self.width));
            all.push((layer.out, self.width, self.width));
            all.push((layer.gate_up, self.width, 2 * self.ffn));
            all.push((layer.down, self.ffn, self.width));
        }
        all
    }

    /// The gains of the norms.
    pub fn norms(&self) -> Vec<Range<usize>> {
        let layers = (0..self.layers).map(|number| self.layer(number));
        layers.flat_map(|layer| [layer.norm1, layer.norm2]).chain([self.norm()]).collect()
    }
}

/// The numbers that training begins with: each matrix keeps the size of what goes through it, and what a layer
/// adds begins small.
pub fn initial(shape: Shape, seed: u64) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    // Box and Muller.
    let mut normal = || {
        let (u, v) = (1.0 - rng.f64(), rng.f64());
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
    };
    let mut numbers = vec![0.0; shape.size()];
    let mut fill = |range: Range<usize>, deviation: f32| {
        for number in &mut numbers[range] {
            *number = normal() * deviation;
        }
    };
    let into = |inputs: usize| (inputs as f32).powf(-0.5);
    fill(shape.embedding(), 0.05);
    for layer in (0..shape.layers).map(|number| shape.layer(number)) {
        fill(layer.qkv, into(shape.width));
        fill(layer.out, 0.3 * into(shape.width));
        fill(layer.gate_up, into(shape.width));
        fill(layer.down, 0.3 * into(shape.ffn));
    }
    fill(shape.head(), 0.5 * into(shape.width));
    for row in numbers[shape.head()].chunks_exact_mut(LOGITS) {
        row[VOCABULARY..].fill(0.0);
    }
    for norm in shape.norms() {
        numbers[norm].fill(1.0);
    }
    numbers
}
