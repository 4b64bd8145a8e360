//! Arithmetic on slices of numbers, and how it is compiled for several generations of CPUs.

use std::sync::{LazyLock, Mutex, PoisonError};

use half::{
    f16,
    slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _},
};
use pulp::{Simd, WithSimd};
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::simd::ARCH;

/// Adding and subtracting this number rounds to a whole number.
pub(super) const ROUND: f32 = 12_582_912.0;

/// Numbers per group: one register of AVX-512, two of AVX2, four of NEON.
pub(super) const LANES: usize = 16;
pub(super) type Lanes = [f32; LANES];

/// Vectors that are multiplied in one pass: as many sums as the registers of AVX2 hold.
pub(super) const VECTORS_PER_PASS: usize = 6;

/// Runs `work`, which is marked `#[inline(always)]`, compiled for the widest instructions that this CPU has.
pub(super) fn with_widest_simd<R>(work: impl FnMut() -> R) -> R {
    ARCH.dispatch(WidestSimd(work))
}

/// pulp takes closures as well, but calls them through a function that the compiler does not always inline, and what is
/// not inlined is compiled for the oldest CPU.
struct WidestSimd<F>(F);

impl<R, F: FnMut() -> R> WithSimd for WidestSimd<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// A thread for each core, besides those that wait for them.
static THREADS: LazyLock<ThreadPool> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let name = |thread| format!("inference-{thread}");
    let threads = ThreadPoolBuilder::new().num_threads(cores.min(num_cpus::get_physical())).thread_name(name);
    threads.build().expect("threads can be started")
});

/// The number of cores.
pub(super) fn cores() -> usize {
    THREADS.current_num_threads()
}

/// Runs `work` on one of the threads that [`in_parallel`] uses. Several pieces of parallel work need not be handed over
/// one by one then.
pub(crate) fn on_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    THREADS.install(work)
}

/// Runs `work` on all cores, once for each chunk of `out` of `size` elements. It receives the index of the chunk.
///
/// A thread that has not begun when the others are done is not waited for.
pub(super) fn in_parallel<T: Send>(out: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let chunks = Mutex::new(out.chunks_mut(size).enumerate());
    let take_all = || {
        loop {
            let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, chunk)) = next else { return };
            work(index, chunk);
        }
    };
    on_threads(|| {
        rayon_core::scope(|scope| {
            for _ in 1..cores() {
                scope.spawn(|_| take_all());
            }
            take_all();
        });
    });
}

/// A loop over groups of [`LANES`] numbers. `run` and all that it calls must be marked `#[inline(always)]`.
pub(super) trait Kernel {
    type Output;

    /// Runs with each group in `W` registers.
    fn run<S: Simd, const W: usize>(self, simd: S) -> Self::Output;
}

/// Runs a kernel in the widest registers of this CPU.
pub(super) fn dispatch<T: Kernel>(kernel: T) -> T::Output {
    struct Dispatch<T>(T);
    impl<T: Kernel> WithSimd for Dispatch<T> {
        type Output = T::Output;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> T::Output {
            with_simd(simd, self.0)
        }
    }
    ARCH.dispatch(Dispatch(kernel))
}

/// Runs a kernel in registers of the kind `S`.
#[inline(always)]
pub(super) fn with_simd<S: Simd, T: Kernel>(simd: S, kernel: T) -> T::Output {
    match S::F32_LANES {
        16 => kernel.run::<S, 1>(simd),
        8 => kernel.run::<S, 2>(simd),
        4 => kernel.run::<S, 4>(simd),
        _ => kernel.run::<S, 16>(simd),
    }
}

/// Views a group as registers.
#[inline(always)]
pub(super) fn registers<S: Simd, const W: usize>(numbers: &Lanes) -> &[S::f32s; W] {
    S::as_simd_f32s(numbers).0.try_into().expect("a group fills its registers")
}

/// Scales each vector to a mean square of one and multiplies it by `weights`.
pub(crate) fn rms_norm(vectors: &mut [f32], weights: &[f32], epsilon: f32) {
    with_widest_simd(
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

/// Adds `from` to `to`, number by number.
pub(crate) fn add(to: &mut [f32], from: &[f32]) {
    with_widest_simd(
        #[inline(always)]
        || {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        },
    );
}

/// Adds `bias` to each vector.
pub(crate) fn add_bias(vectors: &mut [f32], bias: &[f32]) {
    for vector in vectors.chunks_exact_mut(bias.len()) {
        add(vector, bias);
    }
}

/// Computes `silu(gate) * up` in place of `gate`.
pub(crate) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    with_widest_simd(
        #[inline(always)]
        || {
            for (gate, up) in gate.iter_mut().zip(up) {
                *gate = *gate / (1.0 + exp(-*gate)) * up;
            }
        },
    );
}

/// Computes `gelu(gate) * up` in place of `gate`, with the tanh approximation that Gemma uses.
pub(crate) fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    with_widest_simd(
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

/// Computes a dot product in [`LANES`] partial sums.
#[inline(always)]
pub(super) fn dot(left: &[f32], right: &[f32]) -> f32 {
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

/// Computes `e` to the power of `x`, within two units in the last place. `x` is clamped to what an `f32` can represent.
/// There is no table and no branch, so that it compiles to vector instructions.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.3, 88.7);
    let power = x * std::f32::consts::LOG2_E + ROUND;
    let whole = power - ROUND;
    // ln 2 is subtracted in two parts, so that the rest keeps its digits.
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

/// Converts to half precision. Numbers beyond its range become the largest that it has.
pub(crate) fn to_half(number: f32) -> u16 {
    f16::from_f32(number.clamp(-LARGEST, LARGEST)).to_bits()
}

/// Converts each number as [`to_half`] does.
pub(super) fn to_halves(numbers: &[f32]) -> Vec<u16> {
    let clamped: Vec<f32> = numbers.iter().map(|number| number.clamp(-LARGEST, LARGEST)).collect();
    let mut halves = vec![0u16; clamped.len()];
    halves.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&clamped);
    halves
}

/// Converts from half precision, exactly for all finite numbers. It is inlined so that it compiles to the vector
/// instructions of its caller.
///
/// No step has a subnormal number, also where the number of half precision is one, as the factors of `Q6_K` mostly are: an
/// Intel CPU computes with those in microcode, many times as slowly.
#[inline(always)]
pub(super) fn from_half(bits: u16) -> f32 {
    /// The smallest number of half precision that is not subnormal.
    const SMALLEST: f32 = f32::from_bits((127 - 14) << 23);
    let bits = u32::from(bits);
    // The exponent, corrected for the different biases of the two formats. Of a subnormal number this makes `SMALLEST / 2`
    // plus half of the number; what is computed next is right there, and too large for all others.
    let normal = f32::from_bits(((bits & 0x7fff) << 13) + (112 << 23));
    let subnormal = normal + (normal - SMALLEST);
    let size = if subnormal < normal { subnormal } else { normal };
    f32::from_bits(size.to_bits() | (bits & 0x8000) << 16)
}

/// Converts each number as [`from_half`] does.
#[inline(always)]
pub(super) fn from_halves(halves: &[u16], to: &mut [f32]) {
    for (bits, to) in halves.iter().zip(to) {
        *to = from_half(*bits);
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    #[test]
    fn every_number_of_half_precision_is_converted_exactly() {
        for number in (0..=u16::MAX).map(f16::from_bits).filter(|number| number.is_finite()) {
            assert_eq!(super::from_half(number.to_bits()).to_bits(), number.to_f32().to_bits(), "{number}");
        }
    }
}
