//! Weights out of a file, in the form in which they are multiplied.

use std::io::{Read, Seek};

use candle_core::{
    Device, Module as _, Storage, Tensor,
    quantized::{GgmlDType, QMatMul, QStorage, QTensor},
};

use crate::engine::{
    EngineError,
    gguf::{Gguf, broken},
    math::{ARCH, dot},
};

/// candle's fast kernels want rows of whole blocks of 256 and 16 rows at a time.
const BLOCK: usize = 256;
const TILE: usize = 16;
/// Vectors below which a small matrix is read row by row.
const FEW: usize = 4;

/// Models of so many numbers or fewer are multiplied on one core, as `f32`: they fit its cache, and to wait for
/// other cores at each of a hundred small steps takes longer, on a busy machine by far (measured with 20 processes
/// on two cores: 3 tokens a second with both, hundreds with one).
pub const SMALL: u64 = 8_000_000;

/// A matrix of `rows` outputs by `columns` inputs.
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    inner: Inner,
    pub bytes: usize,
}

enum Inner {
    /// As the file has it, with so many columns; those that were added are zero.
    Large { weights: QMatMul, padded: usize },
    /// As `f32`, and the same turned around for candle's dense kernels.
    Small { rows: Tensor, turned: Tensor },
}

impl Matrix {
    /// Reads one that must have this shape.
    pub fn read<R: Read + Seek>(
        gguf: &mut Gguf<R>,
        name: &str,
        rows: Option<usize>,
        columns: usize,
    ) -> Result<Self, EngineError> {
        let info = gguf.tensor(name).cloned().ok_or_else(|| broken(&format!("it has no {name}")))?;
        let found = match info.dims[..] {
            [found, across] if across == columns && rows.is_none_or(|rows| rows == found) => found,
            _ => return Err(broken(&format!("{name} has the shape {:?}", info.dims))),
        };
        let small = gguf.parameters() <= SMALL;
        let mut data = gguf.data(&info)?;
        let (mut padded, mut tall) = (columns, found);
        if info.kind == GgmlDType::Q8_0 && !small {
            (padded, tall) = (columns.next_multiple_of(BLOCK), found.next_multiple_of(TILE));
            data = pad(&data, found, columns, padded, tall);
        }
        let storage = QStorage::from_data(data.into(), &Device::Cpu, info.kind)?;
        let tensor = QTensor::new(storage, (tall, padded))?;
        let (inner, bytes) = if small {
            let rows = tensor.dequantize(&Device::Cpu)?;
            let bytes = 4 * rows.elem_count();
            (Inner::Small { turned: rows.t()?, rows }, bytes)
        } else {
            let bytes = tensor.storage_size_in_bytes();
            (Inner::Large { weights: QMatMul::from_qtensor(tensor)?, padded }, bytes)
        };
        Ok(Self { rows: found, columns, inner, bytes })
    }

    /// Multiplies `count` vectors that stand one after the other.
    pub fn apply(&self, vectors: &[f32], count: usize) -> Result<Vec<f32>, EngineError> {
        let (weights, padded) = match &self.inner {
            Inner::Small { rows, .. } if count < FEW => return few(rows, vectors, self.columns),
            Inner::Small { turned, .. } => {
                let input = Tensor::from_slice(vectors, (count, self.columns), &Device::Cpu)?;
                return Ok(input.matmul(turned)?.flatten_all()?.to_vec1()?);
            }
            Inner::Large { weights, padded } => (weights, *padded),
        };
        let input = widen(vectors, self.columns, padded);
        let output = weights.forward(&Tensor::from_vec(input, (count, padded), &Device::Cpu)?)?;
        let tall = output.dim(1)?;
        let output = output.flatten_all()?.to_vec1::<f32>()?;
        Ok(if tall == self.rows { output } else { narrow(&output, tall, self.rows) })
    }

    /// Rows of the matrix, one after the other.
    pub fn lookup(&self, rows: &[u32]) -> Result<Vec<f32>, EngineError> {
        let ids = Tensor::new(rows, &Device::Cpu)?;
        let (weights, padded) = match &self.inner {
            Inner::Small { rows, .. } => {
                return Ok(rows.index_select(&ids, 0)?.flatten_all()?.to_vec1()?);
            }
            Inner::Large { weights, padded } => (weights, *padded),
        };
        let found = weights.embedding(&ids)?.flatten_all()?.to_vec1::<f32>()?;
        Ok(if padded == self.columns { found } else { narrow(&found, padded, self.columns) })
    }
}

/// Multiplies few vectors by a small matrix: one row at a time, so that nothing is copied and no core is woken.
fn few(rows: &Tensor, vectors: &[f32], columns: usize) -> Result<Vec<f32>, EngineError> {
    let (storage, _) = rows.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { unreachable!("there is no other device") };
    let rows = storage.as_slice::<f32>()?;
    let mut out = Vec::with_capacity(vectors.len() / columns * (rows.len() / columns));
    ARCH.dispatch(
        #[inline(always)]
        || {
            for vector in vectors.chunks_exact(columns) {
                out.extend(rows.chunks_exact(columns).map(|row| dot(row, vector)));
            }
        },
    );
    Ok(out)
}

/// Adds zeros to rows of `Q8_0`: blocks of 32 numbers in 34 bytes.
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

fn widen(vectors: &[f32], columns: usize, padded: usize) -> Vec<f32> {
    if columns == padded {
        return vectors.to_vec();
    }
    let mut wide = vec![0.0; vectors.len() / columns * padded];
    for (to, from) in wide.chunks_exact_mut(padded).zip(vectors.chunks_exact(columns)) {
        to[..columns].copy_from_slice(from);
    }
    wide
}

fn narrow(vectors: &[f32], padded: usize, columns: usize) -> Vec<f32> {
    vectors.chunks_exact(padded).flat_map(|vector| &vector[..columns]).copied().collect()
}

/// Reads a vector that must have this length.
pub fn vector<R: Read + Seek>(
    gguf: &mut Gguf<R>,
    name: &str,
    length: usize,
) -> Result<Vec<f32>, EngineError> {
    optional(gguf, name, length)?.ok_or_else(|| broken(&format!("it has no {name}")))
}

/// Reads a vector that may be missing.
pub fn optional<R: Read + Seek>(
    gguf: &mut Gguf<R>,
    name: &str,
    length: usize,
) -> Result<Option<Vec<f32>>, EngineError> {
    let Some(info) = gguf.tensor(name).cloned() else { return Ok(None) };
    let numbers: usize = info.dims.iter().product();
    if numbers != length {
        return Err(broken(&format!("{name} has the shape {:?}", info.dims)));
    }
    let storage = QStorage::from_data(gguf.data(&info)?.into(), &Device::Cpu, info.kind)?;
    let tensor = QTensor::new(storage, numbers)?;
    Ok(Some(tensor.dequantize(&Device::Cpu)?.to_vec1()?))
}
