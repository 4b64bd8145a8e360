//! One vector times a large matrix in blocks of few bits, as it stands in a GGUF file.
//!
//! Writing a token reads all weights once, so it takes as long as the memory does. candle lays `Q4_K` and `Q8_0` out
//! anew for many vectors at once, and that layout has a third more bytes and a sixteenth more; here the file's own is
//! read, and no vector is copied into a tensor. For x86 with AVX2 only: elsewhere candle reads the file's layout as well.

#[cfg(target_arch = "x86_64")]
mod x86;

/// What a matrix is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// 256 numbers of 4 bits, with 8 scales and 8 offsets of 6 bits: 144 bytes.
    Q4K,
    /// 256 numbers of 6 bits, with 16 scales of 8 bits: 210 bytes.
    Q6K,
    /// 32 numbers of 8 bits and their scale: 34 bytes.
    Q8_0,
}

impl Blocks {
    /// The `rows` of `matrix`, which are as long as `vector`, times that, on all cores. `None` on a CPU without AVX2.
    ///
    /// # Panics
    ///
    /// Where the vector is not of whole spans of 256 numbers, or the matrix of less than these rows.
    pub fn product(self, matrix: &[u8], rows: usize, vector: &[f32]) -> Option<Vec<f32>> {
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
