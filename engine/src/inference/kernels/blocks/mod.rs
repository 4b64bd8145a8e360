//! Multiplies one vector by a large quantised matrix, in the layout of the GGUF file.
//!
//! Generating a token reads all weights once, so memory bandwidth limits it. candle rearranges `Q4_K` and `Q8_0` for many
//! vectors at once, which takes a third more bytes for the one and a sixteenth more for the other. Here the layout of the
//! file is read, and no vector is copied into a tensor. This is for x86 with AVX2 only; elsewhere candle reads the
//! layout of the file as well.

#[cfg(target_arch = "x86_64")]
mod x86;

/// The block format of a quantised matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// 256 numbers of 4 bits, with 8 scales and 8 offsets of 6 bits: 144 bytes.
    Q4K,
    /// 256 numbers of 6 bits, with 16 scales of 8 bits: 210 bytes.
    Q6K,
    /// 32 numbers of 8 bits and their scale: 34 bytes.
    Q8_0,
}

impl Blocks {
    /// Multiplies the first `rows` rows of `matrix`, which are as long as `vector`, by `vector` on all cores. Returns
    /// `None` on a CPU without AVX2.
    ///
    /// # Panics
    ///
    /// If the length of the vector is not a multiple of 256, or the matrix has fewer rows.
    pub(crate) fn product(self, matrix: &[u8], rows: usize, vector: &[f32]) -> Option<Vec<f32>> {
        #[cfg(target_arch = "x86_64")]
        let product = x86::product(self, matrix, rows, vector);
        #[cfg(not(target_arch = "x86_64"))]
        let product = {
            let _ = (matrix, rows, vector);
            None
        };
        product
    }
}
