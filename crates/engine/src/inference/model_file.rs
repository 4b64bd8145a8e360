//! A GGUF file as the engine needs it: all values of its header, and the bytes of its tensors.

use std::{
    collections::HashMap,
    io::{self, Read, Seek, SeekFrom},
};

use crate::{
    EngineError,
    gguf::{GgufError, Header, Tensor, TensorType, Value},
    inference::kernels::Format,
};

/// The longest name of a tensor, in bytes. Source: the specification says 64.
const MAX_NAME_BYTES: usize = 256;

/// The position, shape and type of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    /// Rows first: `[rows, columns]` of a matrix. A row is contiguous.
    pub dims: Vec<usize>,
    pub format: Format,
    /// In bytes, from the start of the file.
    start: u64,
    pub bytes: usize,
}

/// A header that was read, and the file to read tensors from.
pub(crate) struct ModelFile<R> {
    from: R,
    header: Header,
    tensors: HashMap<String, TensorInfo>,
}

impl<R: Read + Seek> ModelFile<R> {
    /// Reads the header. Costs as much I/O as the header is long, and no more memory than 256 MiB.
    pub(crate) fn read(mut from: R) -> Result<Self, EngineError> {
        let length = from.seek(SeekFrom::End(0)).map_err(GgufError::Io)?;
        from.seek(SeekFrom::Start(0)).map_err(GgufError::Io)?;
        let mut tensors = HashMap::new();
        let header = Header::read_all(&mut from, length, |tensor| {
            let (name, info) = tensor_info(tensor)?;
            match tensors.insert(name, info) {
                None => Ok(()),
                Some(_) => Err(broken("a tensor is there twice")),
            }
        })?;
        let data = header.data_start().ok_or_else(|| broken("its alignment makes no sense"))?;
        for (name, info) in &mut tensors {
            let end = info.start.checked_add(data).and_then(|start| {
                info.start = start;
                start.checked_add(info.bytes as u64)
            });
            if end.is_none_or(|end| end > length) {
                return Err(broken(&format!("it ends before the tensor {name} does")));
            }
        }
        Ok(Self { from, header, tensors })
    }

    /// Reads the bytes of a tensor into `to`, which is as long.
    pub(crate) fn read_data(&mut self, info: &TensorInfo, to: &mut [u8]) -> Result<(), EngineError> {
        self.from.seek(SeekFrom::Start(info.start)).map_err(GgufError::Io)?;
        self.from.read_exact(to).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => broken("it is cut off"),
            _ => GgufError::Io(error).into(),
        })
    }
}

impl<R> ModelFile<R> {
    pub(crate) fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// The number of elements of all tensors.
    pub(crate) fn parameters(&self) -> u64 {
        let count = |info: &TensorInfo| info.dims.iter().map(|&dim| dim as u64).product::<u64>();
        self.tensors.values().map(count).sum()
    }

    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.header.value(key)
    }

    /// Removes a value, so that a vocabulary need not be copied.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.header.take(key)
    }

    pub(crate) fn string(&self, key: &str) -> Option<&str> {
        self.header.string(key)
    }

    pub(crate) fn size(&self, key: &str) -> Option<usize> {
        self.header.unsigned(key).and_then(|value| usize::try_from(value).ok())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "what a model file holds as f32 or f64 is used as f32"
    )]
    pub(crate) fn float(&self, key: &str) -> Option<f32> {
        self.header.float(key).map(|value| value as f32)
    }

    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        self.header.boolean(key)
    }
}

/// Checks that a tensor has a type that the engine reads, and a shape that fits the type.
fn tensor_info(tensor: Tensor) -> Result<(String, TensorInfo), EngineError> {
    let Tensor { name, dimensions, elements, kind, offset } = tensor;
    if name.len() > MAX_NAME_BYTES {
        return Err(broken("the name of a tensor is too long"));
    }
    if !(1..=4).contains(&dimensions.len()) {
        return Err(broken(&format!("the tensor {name} has {} dimensions", dimensions.len())));
    }
    let format = Format::from_number(kind).ok_or_else(|| {
        EngineError::Unsupported(format!("tensors of type {}, which {name} has", type_name(kind)))
    })?;
    let dims: Vec<usize> =
        dimensions.iter().rev().map(|&size| usize::try_from(size).unwrap_or(usize::MAX)).collect();
    let row = dims.last().copied().unwrap_or_default();
    let elements = usize::try_from(elements).ok();
    let (block, block_bytes) = format.block();
    let bytes = elements.and_then(|elements| (elements / block).checked_mul(block_bytes));
    match bytes {
        Some(bytes) if bytes > 0 && row.is_multiple_of(block) => {
            Ok((name, TensorInfo { dims, format, start: offset, bytes }))
        }
        _ => Err(broken(&format!("the tensor {name} has a shape that its type does not allow"))),
    }
}

/// The name of a type, or its number if it has none here.
fn type_name(number: u32) -> String {
    TensorType::from_number(number).map_or_else(|| number.to_string(), |kind| kind.name.to_owned())
}

pub(crate) fn broken(what: &str) -> EngineError {
    EngineError::Broken(what.to_owned())
}
