//! Matrix products, the one place where the time goes.
//!
//! Two ways: 32-bit floats by the `matrixmultiply` crate, and on a machine with AVX-512 BF16 an own kernel that
//! rounds both sides to 16 bits and sums in 32. That is twice as fast (Zen 4, one core, 1024 x 160 x 480: 168
//! GFLOP/s; the `gemm` crate's AVX-512 reaches 105) and training does not suffer.

#[cfg(target_arch = "x86_64")]
mod bf16;

use crate::wide::Width;

/// A matrix lying in a slice: element (r, c) is `data[r * row + c * column]`; one of the two steps is 1.
#[derive(Clone, Copy)]
pub struct View<'a> {
    data: &'a [f32],
    row: usize,
    column: usize,
}

impl<'a> View<'a> {
    /// Row after row, `row` numbers apart.
    pub fn rows(data: &'a [f32], row: usize) -> Self {
        Self { data, row, column: 1 }
    }

    /// The same numbers with rows and columns exchanged.
    pub fn turned(self) -> Self {
        Self { data: self.data, row: self.column, column: self.row }
    }

    fn covers(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.row + (columns - 1) * self.column < self.data.len()
    }
}

/// A right side.
#[derive(Clone, Copy)]
pub enum Right<'a> {
    View(View<'a>),
    Packed(&'a Packed),
}

impl<'a> From<View<'a>> for Right<'a> {
    fn from(view: View<'a>) -> Self {
        Self::View(view)
    }
}

/// A right side that was brought in order once, for many products.
#[derive(Default)]
pub struct Packed {
    words: Vec<u32>,
    sides: (usize, usize),
}

/// The precision of the products.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// 32 bits, for checks.
    Exact,
    /// 16-bit factors where the machine is made for them.
    Fast,
}

/// Makes products; owns the space that they need. One per thread.
pub struct Matmul {
    bf16: bool,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Matmul {
    pub fn new(precision: Precision) -> Self {
        Self { bf16: Self::packs(precision), left: Vec::new(), right: Vec::new() }
    }

    /// Returns true if [`Right::Packed`] can be used.
    pub fn packs(precision: Precision) -> bool {
        precision == Precision::Fast && Width::of_this_machine() == Width::Avx512Bf16
    }

    /// Brings a right side of k rows and n columns in order. Only where [`Matmul::packs`].
    pub fn pack(packed: &mut Packed, (k, n): (usize, usize), b: View) {
        assert!(b.covers(k, n) && k % 2 == 0);
        packed.sides = (k, n);
        #[cfg(target_arch = "x86_64")]
        bf16::pack(&mut packed.words, (k, n), b);
    }

    /// `out = a · b`, where `a` has m rows and k columns, `b` k rows and n columns, and a row of `out` begins every
    /// `step` numbers.
    pub fn set<'a>(
        &mut self,
        out: &mut [f32],
        step: usize,
        sides: (usize, usize, usize),
        a: View,
        b: impl Into<Right<'a>>,
    ) {
        self.product(out, step, sides, a, b.into(), false);
    }

    /// `out += a · b`.
    pub fn add<'a>(
        &mut self,
        out: &mut [f32],
        step: usize,
        sides: (usize, usize, usize),
        a: View,
        b: impl Into<Right<'a>>,
    ) {
        self.product(out, step, sides, a, b.into(), true);
    }

    fn product(
        &mut self,
        out: &mut [f32],
        step: usize,
        sides: (usize, usize, usize),
        a: View,
        b: Right,
        add: bool,
    ) {
        let (m, k, n) = sides;
        assert!(a.covers(m, k) && View::rows(out, step).covers(m, n) && n <= step);
        match b {
            Right::View(b) => assert!(b.covers(k, n)),
            Right::Packed(b) => assert!(self.bf16 && b.sides == (k, n)),
        }
        if m == 0 || n == 0 {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self.bf16 && k % 2 == 0 && n % bf16::PANEL == 0 {
            let b = match b {
                Right::Packed(b) => &b.words,
                Right::View(b) => {
                    bf16::pack(&mut self.right, (k, n), b);
                    &self.right
                }
            };
            bf16::product(&mut self.left, out, step, sides, a, b, add);
            return;
        }
        if let Right::View(b) = b {
            exact(out, step, sides, a, b, add);
        }
    }
}

#[allow(unsafe_code)]
fn exact(out: &mut [f32], step: usize, (m, k, n): (usize, usize, usize), a: View, b: View, add: bool) {
    // SAFETY: `product` has checked that each matrix lies in its slice, and `out` is borrowed alone.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.data.as_ptr(),
            a.row as isize,
            a.column as isize,
            b.data.as_ptr(),
            b.row as isize,
            b.column as isize,
            if add { 1.0 } else { 0.0 },
            out.as_mut_ptr(),
            step as isize,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, factor: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * factor) % 1009) as f32 / 1009.0 - 0.5).collect()
    }

    /// All the ways a matrix may lie, against a product by hand.
    #[test]
    fn products_agree_with_the_definition() {
        for precision in [Precision::Exact, Precision::Fast] {
            for (m, k, n) in [(8, 2, 32), (13, 34, 64), (96, 160, 32), (3, 6, 5)] {
                for (turn_a, turn_b) in [(false, false), (true, false), (false, true)] {
                    let (a, b) = (numbers(m * k, 7919), numbers(k * n, 104_729));
                    let a = if turn_a { View::rows(&a, m).turned() } else { View::rows(&a, k) };
                    let b = if turn_b { View::rows(&b, k).turned() } else { View::rows(&b, n) };
                    let mut out = vec![1.0; m * n];
                    Matmul::new(precision).add(&mut out, n, (m, k, n), a, b);
                    for r in 0..m {
                        for c in 0..n {
                            let at = |v: View, r, c| v.data[r * v.row + c * v.column];
                            let sum: f32 = (0..k).map(|i| at(a, r, i) * at(b, i, c)).sum();
                            let off = (out[r * n + c] - 1.0 - sum).abs();
                            assert!(off < 0.02, "{precision:?} {m} {k} {n}: {off}");
                        }
                    }
                }
            }
        }
    }
}
