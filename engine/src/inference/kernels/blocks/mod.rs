//! Multiplies one vector by a large matrix in one of three formats, in the layout of the GGUF file.
//!
//! Generating a token reads all weights once. For these formats the numbers are multiplied without being decoded first,
//! which takes less time than what `quantised` does for all formats. This is for x86 with AVX2 only.

#[cfg(target_arch = "x86_64")]
mod x86;

/// The block format of a quantised matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
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
    pub(super) fn product(self, matrix: &[u8], rows: usize, vector: &[f32]) -> Option<Vec<f32>> {
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
