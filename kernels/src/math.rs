//! Arithmetic on rows of numbers, compiled for several generations of CPUs and chosen when the program runs.

use std::sync::{LazyLock, Mutex, PoisonError};

use candle_core::utils::barrier_pool;
use half::{
    f16,
    slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _},
};
use pulp::{Arch, Simd, WithSimd};

/// Added and taken away again, it rounds to a whole number.
pub const ROUND: f32 = 12_582_912.0;

/// Numbers that are worked on together: one register of AVX-512, two of AVX2, four of NEON.
pub const LANES: usize = 16;
pub type Lanes = [f32; LANES];

/// Groups that are added to at a time: as many sums as the registers of AVX2 hold.
pub const TOGETHER: usize = 6;

static ARCH: LazyLock<Arch> = LazyLock::new(Arch::new);

/// Runs `work`, which is marked `#[inline(always)]`, compiled for the widest instructions that this CPU has.
pub fn widest<R>(work: impl FnMut() -> R) -> R {
    ARCH.dispatch(Widest(work))
}

/// pulp takes closures as well, but calls them by value: through a function of the compiler's own that is not always
/// inlined, and what is not inlined is compiled for any CPU.
struct Widest<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Widest<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Runs `work` for each piece of `out` of `size` numbers, on all cores. The number says which piece it is.
pub fn in_parallel(out: &mut [f32], size: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let pool = barrier_pool();
    let pieces = Mutex::new(out.chunks_mut(size).enumerate());
    pool.execute(|_| {
        loop {
            let next = pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, piece)) = next else { return };
            work(number, piece);
        }
    });
}

/// What is worked on in groups of [`LANES`] numbers. `run` and all that it calls are marked `#[inline(always)]`.
pub trait Work {
    type Output;

    /// Works with a group in `W` registers.
    fn run<S: Simd, const W: usize>(self, simd: S) -> Self::Output;
}

/// Runs `work` in the widest registers that this CPU has.
pub fn in_registers<T: Work>(work: T) -> T::Output {
    struct Dispatch<T>(T);
    impl<T: Work> WithSimd for Dispatch<T> {
        type Output = T::Output;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> T::Output {
            in_those(simd, self.0)
        }
    }
    ARCH.dispatch(Dispatch(work))
}

/// Runs `work` in registers of this kind.
#[inline(always)]
pub fn in_those<S: Simd, T: Work>(simd: S, work: T) -> T::Output {
    match S::F32_LANES {
        16 => work.run::<S, 1>(simd),
        8 => work.run::<S, 2>(simd),
        4 => work.run::<S, 4>(simd),
        _ => work.run::<S, 16>(simd),
    }
}

/// A group in its registers.
#[inline(always)]
pub fn registers<S: Simd, const W: usize>(numbers: &Lanes) -> &[S::f32s; W] {
    S::as_simd_f32s(numbers).0.try_into().expect("a group fills its registers")
}

/// `vector` scaled to a mean square of one, times `weights`.
pub fn normalise(vectors: &mut [f32], weights: &[f32], epsilon: f32) {
    widest(
        #[inline(always)]
        || {
            for vector in vectors.chunks_exact_mut(weights.len()) {
                #[expect(clippy::cast_precision_loss, reason = "a width is small")]
                let mean = dot(vector, vector) / weights.len() as f32;
                let scale = (mean + epsilon).sqrt().recip();
                for (number, weight) in vector.iter_mut().zip(weights) {
                    *number *= scale * weight;
                }
            }
        },
    );
}

pub fn add(to: &mut [f32], from: &[f32]) {
    widest(
        #[inline(always)]
        || {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        },
    );
}

/// Adds `bias` to each vector of its length.
pub fn add_to_each(vectors: &mut [f32], bias: &[f32]) {
    for vector in vectors.chunks_exact_mut(bias.len()) {
        add(vector, bias);
    }
}

/// `gate` becomes `silu(gate) * up`.
pub fn silu_times(gate: &mut [f32], up: &[f32]) {
    widest(
        #[inline(always)]
        || {
            for (gate, up) in gate.iter_mut().zip(up) {
                *gate = *gate / (1.0 + exp(-*gate)) * up;
            }
        },
    );
}

/// `gate` becomes `gelu(gate) * up`, by the approximation with tanh that Gemma uses.
pub fn gelu_times(gate: &mut [f32], up: &[f32]) {
    widest(
        #[inline(always)]
        || {
            for (gate, up) in gate.iter_mut().zip(up) {
                let inner = 0.797_884_6 * *gate * (1.0 + 0.044_715 * *gate * *gate);
                // tanh(x) = 1 - 2 / (1 + exp(2x))
                *gate = 0.5 * *gate * (2.0 - 2.0 / (1.0 + exp(2.0 * inner))) * up;
            }
        },
    );
}

/// The sum of products, in [`LANES`] partial sums.
#[inline(always)]
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (lefts, rights) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest: f32 = lefts.remainder().iter().zip(rights.remainder()).map(|(left, right)| left * right).sum();
    for (left, right) in lefts.zip(rights) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// `e` to the power of `x`, within two units in the last place; zero and infinity where that is out of range.
/// Written without a table or a branch, so that it becomes vector instructions.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.3, 88.7);
    let power = x * std::f32::consts::LOG2_E + ROUND;
    let whole = power - ROUND;
    // ln 2 in two parts, so that the rest keeps its digits.
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5] {
        sum = sum * rest + factor;
    }
    let fraction = sum * rest * rest + rest + 1.0;
    let shifted = power.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    fraction * f32::from_bits(shifted)
}

/// The largest number of half precision.
const LARGEST: f32 = 65_504.0;

/// As half precision, with the largest number that it has where `number` is larger.
pub fn half(number: f32) -> u16 {
    f16::from_f32(number.clamp(-LARGEST, LARGEST)).to_bits()
}

/// Each as [`half()`].
pub fn halves(numbers: &[f32]) -> Vec<u16> {
    let clamped: Vec<f32> = numbers.iter().map(|number| number.clamp(-LARGEST, LARGEST)).collect();
    let mut halves = vec![0u16; clamped.len()];
    halves.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&clamped);
    halves
}

/// What half-precision numbers stand for: exactly, for all that are finite. Inlined, so that it becomes vector
/// instructions of its caller's kind.
#[inline(always)]
pub fn widen(halves: &[u16], to: &mut [f32]) {
    /// Makes up for the difference between the two formats' exponents.
    const SCALE: f32 = f32::from_bits((127 + 112) << 23);
    for (bits, to) in halves.iter().zip(to) {
        let bits = u32::from(*bits);
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * SCALE;
        *to = f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16);
    }
}
