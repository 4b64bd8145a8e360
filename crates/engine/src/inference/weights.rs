//! Weights from a file, in the form in which they are multiplied.

use std::io::{Read, Seek};

use crate::{
    EngineError,
    inference::{
        kernels::{Dense, Format, Input, Products, Quantised},
        model_file::{ModelFile, TensorInfo, broken},
    },
};

/// Models of at most this many parameters are held as `f32` and multiplied on one core. They fit its cache, and a small
/// step is done before another core has begun.
pub(crate) const SMALL_MODEL: u64 = 8_000_000;

/// A matrix of outputs by inputs.
pub(crate) enum Matrix {
    /// As the file has it.
    Large(Quantised),
    Small(Dense),
}

impl Matrix {
    /// Reads a matrix that must have this shape. Any number of rows is accepted if `rows` is `None`.
    pub(crate) fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        small: bool,
        name: &str,
        rows: Option<usize>,
        columns: usize,
    ) -> Result<Self, EngineError> {
        Self::joined(file, small, &[(name, rows)], columns)
    }

    /// Reads several matrices of one type as one, below one another.
    fn joined<R: Read + Seek>(
        file: &mut ModelFile<R>,
        small: bool,
        parts: &[(&str, Option<usize>)],
        columns: usize,
    ) -> Result<Self, EngineError> {
        let (mut infos, mut found) = (Vec::new(), 0);
        for (name, rows) in parts {
            let info = file.tensor(name).cloned().ok_or_else(|| broken(&format!("it has no {name}")))?;
            found += match info.dims[..] {
                [found, across] if across == columns && rows.is_none_or(|rows| rows == found) => found,
                _ => return Err(broken(&format!("{name} has the shape {:?}", info.dims))),
            };
            infos.push(info);
        }
        let format = infos.first().map_or(Format::F32, |info| info.format);
        let mut bytes = vec![0; infos.iter().map(|info| info.bytes).sum()];
        let mut rest = bytes.as_mut_slice();
        for info in &infos {
            let (part, later) = rest.split_at_mut(info.bytes);
            file.read_data(info, part)?;
            rest = later;
        }
        Ok(match small {
            true => Self::Small(Dense::new(&format.numbers(&bytes), found, columns)),
            false => Self::Large(Quantised::new(format, found, columns, bytes)),
        })
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Large(matrix) => matrix.rows,
            Self::Small(matrix) => matrix.rows,
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Large(matrix) => matrix.bytes(),
            Self::Small(matrix) => matrix.bytes(),
        }
    }

    /// Multiplies `count` vectors, given one after the other.
    pub(crate) fn apply(&self, vectors: &[f32], count: usize) -> Vec<f32> {
        self.products(&Input::new(vectors, count)).all()
    }

    fn products(&self, input: &Input<'_>) -> Products {
        match self {
            Self::Large(matrix) => matrix.apply(input),
            Self::Small(matrix) => Products::in_order(matrix.apply(input.vectors), matrix.rows),
        }
    }

    /// Returns some rows of the matrix, one after the other.
    pub(crate) fn lookup(&self, rows: &[u32]) -> Vec<f32> {
        match self {
            Self::Large(matrix) => matrix.lookup(rows),
            Self::Small(matrix) => matrix.lookup(rows),
        }
    }
}

/// Matrices that the same vectors are multiplied by.
///
/// Neighbours of one type are joined to one matrix, so that the cores wait for each other once. The vectors are prepared
/// once for all.
pub(crate) struct Stack(Vec<Matrix>);

impl Stack {
    /// Reads the matrices of these names and rows.
    pub(crate) fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        small: bool,
        parts: &[(&str, Option<usize>)],
        columns: usize,
    ) -> Result<Self, EngineError> {
        let formats: Vec<_> = parts
            .iter()
            .map(|(name, rows)| (file.tensor(name).map(|info| info.format), *name, *rows))
            .collect();
        let alike = formats.chunk_by(|(left, ..), (right, ..)| left == right);
        let read = alike.map(|group| {
            let group: Vec<_> = group.iter().map(|(_, name, rows)| (*name, *rows)).collect();
            Matrix::joined(file, small, &group, columns)
        });
        Ok(Self(read.collect::<Result<_, _>>()?))
    }

    pub(crate) fn rows(&self) -> usize {
        self.matrices().iter().map(Matrix::rows).sum()
    }

    pub(crate) fn matrices(&self) -> &[Matrix] {
        &self.0
    }

    /// Multiplies `count` vectors and splits each product: the first `sizes[0]` numbers go to the first list, and so on.
    /// No part may reach from one of the matrices that were read into another.
    pub(crate) fn apply<const N: usize>(
        &self,
        vectors: &[f32],
        count: usize,
        sizes: [usize; N],
    ) -> [Vec<f32>; N] {
        let mut parts = [const { Vec::new() }; N];
        let (mut part, mut rest) = (0, sizes.as_slice());
        let input = Input::new(vectors, count);
        for matrix in &self.0 {
            let products = matrix.products(&input);
            let mut from = 0;
            while let [size, later @ ..] = rest
                && from + size <= matrix.rows()
            {
                parts[part] = products.of(from..from + size);
                (part, from, rest) = (part + 1, from + size, later);
            }
        }
        parts
    }
}

/// Reads a vector of this length that must be there.
pub(crate) fn vector<R: Read + Seek>(
    file: &mut ModelFile<R>,
    name: &str,
    length: usize,
) -> Result<Vec<f32>, EngineError> {
    optional_vector(file, name, length)?.ok_or_else(|| broken(&format!("it has no {name}")))
}

/// Reads a vector of this length that may be missing.
pub(crate) fn optional_vector<R: Read + Seek>(
    file: &mut ModelFile<R>,
    name: &str,
    length: usize,
) -> Result<Option<Vec<f32>>, EngineError> {
    let Some(info): Option<TensorInfo> = file.tensor(name).cloned() else { return Ok(None) };
    if info.dims.iter().product::<usize>() != length {
        return Err(broken(&format!("{name} has the shape {:?}", info.dims)));
    }
    let mut bytes = vec![0; info.bytes];
    file.read_data(&info, &mut bytes)?;
    Ok(Some(info.format.numbers(&bytes)))
}
