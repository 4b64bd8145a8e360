//! The network's numbers, and its matrices in the order that the products want.

use std::ops::Range;

use super::shape::{LOGITS, Shape};
use crate::matmul::{Matmul, Packed, Precision, Right, View};

/// Names a matrix of the network.
#[derive(Clone, Copy)]
pub enum Matrix {
    Qkv(usize),
    Out(usize),
    GateUp(usize),
    Down(usize),
    Head,
}

/// The numbers of one step, for all threads.
pub struct Weights<'a> {
    pub shape: Shape,
    pub numbers: &'a [f32],
    packs: &'a [(Packed, Packed)],
}

/// Space for the ordered matrices, used again at each step.
#[derive(Default)]
pub struct Packs(Vec<(Packed, Packed)>);

impl<'a> Weights<'a> {
    pub fn new(shape: Shape, numbers: &'a [f32], precision: Precision, packs: &'a mut Packs) -> Self {
        if Matmul::packs(precision) {
            let all = (0..shape.layers).flat_map(|layer| {
                [Matrix::Qkv, Matrix::Out, Matrix::GateUp, Matrix::Down].map(|of| of(layer))
            });
            let all: Vec<Matrix> = all.chain([Matrix::Head]).collect();
            packs.0.resize_with(all.len(), Default::default);
            for (matrix, (forward, back)) in all.into_iter().zip(&mut packs.0) {
                let (range, rows, columns) = matrix.place(shape);
                let view = View::rows(&numbers[range], columns);
                Matmul::pack(forward, (rows, columns), view);
                Matmul::pack(back, (columns, rows), view.turned());
            }
        } else {
            packs.0.clear();
        }
        Self { shape, numbers, packs: &packs.0 }
    }

    pub fn forward(&self, matrix: Matrix) -> Right<'_> {
        match self.packs.get(matrix.index(self.shape)) {
            Some(packed) => Right::Packed(&packed.0),
            None => self.view(matrix).into(),
        }
    }

    /// With rows and columns exchanged.
    pub fn back(&self, matrix: Matrix) -> Right<'_> {
        match self.packs.get(matrix.index(self.shape)) {
            Some(packed) => Right::Packed(&packed.1),
            None => self.view(matrix).turned().into(),
        }
    }

    fn view(&self, matrix: Matrix) -> View<'_> {
        let (range, _, columns) = matrix.place(self.shape);
        View::rows(&self.numbers[range], columns)
    }
}

impl Matrix {
    fn index(self, shape: Shape) -> usize {
        match self {
            Self::Qkv(layer) => 4 * layer,
            Self::Out(layer) => 4 * layer + 1,
            Self::GateUp(layer) => 4 * layer + 2,
            Self::Down(layer) => 4 * layer + 3,
            Self::Head => 4 * shape.layers,
        }
    }

    /// Returns its position, its rows and its columns.
    fn place(self, shape: Shape) -> (Range<usize>, usize, usize) {
        let (d, ffn) = (shape.width, shape.ffn);
        match self {
            Self::Qkv(layer) => (shape.layer(layer).qkv, d, 3 * d),
            Self::Out(layer) => (shape.layer(layer).out, d, d),
            Self::GateUp(layer) => (shape.layer(layer).gate_up, d, 2 * ffn),
            Self::Down(layer) => (shape.layer(layer).down, ffn, d),
            Self::Head => (shape.head(), d, LOGITS),
        }
    }
}
