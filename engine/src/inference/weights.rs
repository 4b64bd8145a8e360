//! Weights from a file, in the form in which they are multiplied.

use std::io::{Read, Seek};

use crate::inference::kernels::{Blocks, Dense};
use candle_core::{
    Device, Module as _, Tensor,
    quantized::{GgmlDType, QMatMul, QStorage, QTensor},
};

use crate::{
    EngineError,
    inference::model_file::{ModelFile, broken},
};

/// candle's fast kernels need rows of whole blocks of 256, and 16 rows at a time.
const BLOCK: usize = 256;
const TILE: usize = 16;

/// Models of at most this many parameters are held as `f32` and multiplied on one core. They fit its cache, and a small
/// step is done before another core has begun.
pub(crate) const SMALL_MODEL: u64 = 8_000_000;

/// A matrix of `rows` outputs by `columns` inputs.
pub(crate) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    data: MatrixData,
    pub bytes: usize,
}

enum MatrixData {
    /// As the file has it, with its rows filled up to `padded` columns with zeros.
    Large {
        weights: QMatMul,
        padded: usize,
    },
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
        let (mut data, mut found, mut kind) = (Vec::new(), 0, GgmlDType::F32);
        for (name, rows) in parts {
            let info = file.tensor(name).cloned().ok_or_else(|| broken(&format!("it has no {name}")))?;
            found += match info.dims[..] {
                [found, across] if across == columns && rows.is_none_or(|rows| rows == found) => found,
                _ => return Err(broken(&format!("{name} has the shape {:?}", info.dims))),
            };
            kind = info.kind;
            let more = file.data(&info)?;
            data = if data.is_empty() { more } else { [data, more].concat() };
        }
        let (mut padded, mut tall) = (columns, found);
        if kind == GgmlDType::Q8_0 && !small {
            (padded, tall) = (columns.next_multiple_of(BLOCK), found.next_multiple_of(TILE));
            data = pad(&data, found, columns, padded, tall);
        }
        let storage = QStorage::from_data(data.into(), &Device::Cpu, kind)?;
        let tensor = QTensor::new(storage, (tall, padded))?;
        let (data, bytes) = if small {
            let numbers = tensor.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?;
            let matrix = Dense::new(&numbers, found, columns);
            let bytes = matrix.bytes();
            (MatrixData::Small(matrix), bytes)
        } else {
            let bytes = tensor.storage_size_in_bytes();
            (MatrixData::Large { weights: QMatMul::from_qtensor(tensor)?, padded }, bytes)
        };
        Ok(Self { rows: found, columns, data, bytes })
    }

    /// Multiplies `count` vectors, given one after the other.
    pub(crate) fn apply(&self, vectors: &[f32], count: usize) -> Result<Vec<f32>, EngineError> {
        let (weights, padded) = match &self.data {
            MatrixData::Small(matrix) => return Ok(matrix.apply(vectors)),
            MatrixData::Large { weights, padded } => (weights, *padded),
        };
        let input = pad_vectors(vectors, self.columns, padded);
        if count == 1
            && let QMatMul::QTensor(tensor) = weights
            && let Some(blocks) = block_format(tensor.dtype(), padded)
            && let Some(output) = blocks.product(&tensor.data()?, self.rows, &input)
        {
            return Ok(output);
        }
        let output = weights.forward(&Tensor::from_vec(input, (count, padded), &Device::Cpu)?)?;
        let tall = output.dim(1)?;
        let output = output.flatten_all()?.to_vec1::<f32>()?;
        Ok(if tall == self.rows { output } else { columns(&output, tall, 0, self.rows) })
    }

    /// Returns some rows of the matrix, one after the other.
    pub(crate) fn lookup(&self, rows: &[u32]) -> Result<Vec<f32>, EngineError> {
        let (weights, padded) = match &self.data {
            MatrixData::Small(matrix) => return Ok(matrix.lookup(rows)),
            MatrixData::Large { weights, padded } => (weights, *padded),
        };
        let ids = Tensor::new(rows, &Device::Cpu)?;
        let found = weights.embedding(&ids)?.flatten_all()?.to_vec1::<f32>()?;
        Ok(if padded == self.columns { found } else { columns(&found, padded, 0, self.columns) })
    }
}

/// Matrices that the same vectors are multiplied by.
///
/// Neighbours of one type are joined to one matrix, so that the vectors are prepared once and the cores wait for each
/// other once.
pub(crate) struct Stack(Vec<Matrix>);

impl Stack {
    /// Reads the matrices of these names and rows.
    pub(crate) fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        small: bool,
        parts: &[(&str, Option<usize>)],
        columns: usize,
    ) -> Result<Self, EngineError> {
        let kinds: Vec<_> = parts
            .iter()
            .map(|(name, rows)| (file.tensor(name).map(|info| info.kind), *name, *rows))
            .collect();
        let alike = kinds.chunk_by(|(left, ..), (right, ..)| left == right);
        let read = alike.map(|group| {
            let group: Vec<_> = group.iter().map(|(_, name, rows)| (*name, *rows)).collect();
            Matrix::joined(file, small, &group, columns)
        });
        Ok(Self(read.collect::<Result<_, _>>()?))
    }

    pub(crate) fn rows(&self) -> usize {
        self.matrices().iter().map(|matrix| matrix.rows).sum()
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
    ) -> Result<[Vec<f32>; N], EngineError> {
        let mut parts = [const { Vec::new() }; N];
        let (mut part, mut rest) = (0, sizes.as_slice());
        for matrix in &self.0 {
            let joined = matrix.apply(vectors, count)?;
            let mut from = 0;
            while let [size, later @ ..] = rest
                && from + size <= matrix.rows
            {
                parts[part] = columns(&joined, matrix.rows, from, *size);
                (part, from, rest) = (part + 1, from + size, later);
            }
        }
        Ok(parts)
    }
}

/// The block format, if a single vector is multiplied by the matrix as the file has it.
fn block_format(kind: GgmlDType, columns: usize) -> Option<Blocks> {
    match kind {
        _ if columns == 0 || !columns.is_multiple_of(BLOCK) => None,
        GgmlDType::Q4K => Some(Blocks::Q4K),
        GgmlDType::Q6K => Some(Blocks::Q6K),
        GgmlDType::Q8_0 => Some(Blocks::Q8_0),
        _ => None,
    }
}

/// Fills up rows and columns of `Q8_0` with zeros: blocks of 32 numbers in 34 bytes.
fn pad(data: &[u8], rows: usize, columns: usize, padded: usize, tall: usize) -> Vec<u8> {
    let size = |columns: usize| columns / 32 * 34;
    let mut wide = vec![0; tall * size(padded)];
    if rows > 0 && columns > 0 {
        for (to, from) in wide.chunks_exact_mut(size(padded)).zip(data.chunks_exact(size(columns))) {
            to[..from.len()].copy_from_slice(from);
        }
    }
    wide
}

/// Fills up vectors with zeros.
fn pad_vectors(vectors: &[f32], columns: usize, padded: usize) -> Vec<f32> {
    if columns == padded {
        return vectors.to_vec();
    }
    let mut wide = vec![0.0; vectors.len() / columns * padded];
    for (to, from) in wide.chunks_exact_mut(padded).zip(vectors.chunks_exact(columns)) {
        to[..columns].copy_from_slice(from);
    }
    wide
}

/// Takes `size` numbers from `from` on out of each vector of `length` numbers.
fn columns(vectors: &[f32], length: usize, from: usize, size: usize) -> Vec<f32> {
    let mut found = Vec::with_capacity(vectors.len() / length * size);
    for vector in vectors.chunks_exact(length) {
        found.extend_from_slice(&vector[from..from + size]);
    }
    found
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
    let Some(info) = file.tensor(name).cloned() else { return Ok(None) };
    let numbers: usize = info.dims.iter().product();
    if numbers != length {
        return Err(broken(&format!("{name} has the shape {:?}", info.dims)));
    }
    let storage = QStorage::from_data(file.data(&info)?.into(), &Device::Cpu, info.kind)?;
    let tensor = QTensor::new(storage, numbers)?;
    Ok(Some(tensor.dequantize(&Device::Cpu)?.to_vec1()?))
}
