//! A GGUF file as the engine needs it: all of its header, and the bytes of its tensors.
//!
//! Layout, all little-endian: magic, version `u32`, tensors `u64`, entries `u64`; then entries of key, type and
//! value; then tensors of name, dimensions, type and offset; then, at the next multiple of the alignment, the
//! tensors' bytes. Source: the GGUF specification, versions 2 and 3.
//!
//! Every count is checked against the bytes that could hold it and against a budget before memory is spent on
//! it: an element costs at least one byte of the file and at most 24 of memory.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use candle_core::quantized::GgmlDType;
use rustix::fs::OFlags;

use crate::engine::EngineError;

/// Bytes of memory that a header may take. The largest vocabularies of today (262,144 tokens) take 30 MiB.
const BUDGET: u64 = 256 << 20;
/// Entries of a header; models have fewer than a hundred.
const ENTRIES: u64 = 1 << 16;
/// Tensors of a file; the largest models have a few thousand.
const TENSORS: u64 = 1 << 16;
/// Bytes of one tensor's name. Source: the specification says 64.
const NAME: u64 = 256;

/// A value of the header.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Whole(i64),
    Real(f64),
    Truth(bool),
    Text(String),
    Wholes(Vec<i64>),
    Reals(Vec<f32>),
    Truths(Vec<bool>),
    Texts(Vec<String>),
}

/// Where one tensor is and what it holds.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Rows first: `[rows, columns]` of a matrix; a row is contiguous.
    pub dims: Vec<usize>,
    pub kind: GgmlDType,
    /// Bytes from the start of the file.
    start: u64,
    pub bytes: usize,
}

/// A header that was read, and the file to read tensors from.
pub struct Gguf<R> {
    from: R,
    values: HashMap<String, Value>,
    tensors: HashMap<String, TensorInfo>,
}

/// Opens what is a regular file; a FIFO is not waited for.
pub fn regular_file(path: &Path) -> Result<File, EngineError> {
    let open = || {
        let file =
            OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(file)
    };
    open().map_err(|source| EngineError::Open { path: path.to_owned(), source })
}

impl<R: Read + Seek> Gguf<R> {
    /// Reads the header. Costs as much I/O as the header is long, and no more memory than 256 MiB.
    pub fn read(mut from: R) -> Result<Self, EngineError> {
        let length = from.seek(SeekFrom::End(0)).map_err(unreadable)?;
        from.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut bytes = Bytes { from, left: length, budget: BUDGET };
        if bytes.array().ok() != Some(*b"GGUF") {
            return Err(broken("it is not a GGUF file"));
        }
        let version = bytes.u32()?;
        if !(2..=3).contains(&version) {
            return Err(broken(&format!("its version is {version}; 2 and 3 can be read")));
        }
        let (tensors, entries) = (bytes.u64()?, bytes.u64()?);
        if tensors > TENSORS || entries > ENTRIES {
            return Err(broken("it has more entries than any model needs"));
        }
        let mut values = HashMap::new();
        for _ in 0..entries {
            let key = bytes.text()?;
            let kind = bytes.u32()?;
            let value = bytes.value(kind)?;
            values.insert(key, value);
        }
        let mut infos = HashMap::new();
        for _ in 0..tensors {
            let (name, info) = bytes.tensor()?;
            if infos.insert(name, info).is_some() {
                return Err(broken("a tensor is there twice"));
            }
        }
        let alignment = match values.get("general.alignment") {
            Some(Value::Whole(value @ 1..=65_536)) => value.unsigned_abs(),
            Some(_) => return Err(broken("its alignment makes no sense")),
            None => 32,
        };
        let data = (length - bytes.left).next_multiple_of(alignment);
        for (name, info) in &mut infos {
            let end = info.start.checked_add(data).and_then(|start| {
                info.start = start;
                start.checked_add(info.bytes as u64)
            });
            if end.is_none_or(|end| end > length) {
                return Err(broken(&format!("it ends before the tensor {name} does")));
            }
        }
        Ok(Self { from: bytes.from, values, tensors: infos })
    }

    /// The bytes of one tensor.
    pub fn data(&mut self, info: &TensorInfo) -> Result<Vec<u8>, EngineError> {
        self.from.seek(SeekFrom::Start(info.start)).map_err(unreadable)?;
        let mut bytes = vec![0; info.bytes];
        self.from.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }
}

impl<R> Gguf<R> {
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// Numbers in all tensors.
    pub fn parameters(&self) -> u64 {
        let count = |info: &TensorInfo| info.dims.iter().map(|&dim| dim as u64).product::<u64>();
        self.tensors.values().map(count).sum()
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Takes a value out, so that a vocabulary is not held twice.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.values.remove(key)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn whole(&self, key: &str) -> Option<usize> {
        match self.value(key)? {
            Value::Whole(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "what a model file holds as f32 or f64 is used as f32"
    )]
    pub fn real(&self, key: &str) -> Option<f32> {
        match self.value(key)? {
            Value::Real(value) => Some(*value as f32),
            _ => None,
        }
    }

    pub fn truth(&self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Truth(value) => Some(*value),
            _ => None,
        }
    }
}

struct Bytes<R> {
    from: R,
    left: u64,
    /// Bytes of memory that may yet be spent.
    budget: u64,
}

impl<R: Read> Bytes<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], EngineError> {
        self.spend(N as u64, 0)?;
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    /// Notes that `count` bytes are read next and take `memory`, if there are as many of both.
    fn spend(&mut self, count: u64, memory: u64) -> Result<(), EngineError> {
        self.left =
            self.left.checked_sub(count).ok_or_else(|| broken("it ends in the middle of its header"))?;
        let less = self.budget.checked_sub(memory);
        self.budget = less.ok_or_else(|| broken("its header is larger than any model needs"))?;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, EngineError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, EngineError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Text after its length; what is not UTF-8 in it is replaced.
    fn text(&mut self) -> Result<String, EngineError> {
        let length = self.u64()?;
        self.spend(length, length.saturating_mul(3))?;
        let length = usize::try_from(length).map_err(|_| broken("a text is too long"))?;
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn value(&mut self, kind: u32) -> Result<Value, EngineError> {
        self.spend(0, 128)?;
        Ok(match kind {
            0..=5 | 10 | 11 => Value::Whole(self.whole(kind)?),
            6 => Value::Real(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Truth(self.array::<1>()? != [0]),
            8 => Value::Text(self.text()?),
            9 => self.list()?,
            12 => Value::Real(f64::from_le_bytes(self.array()?)),
            _ => return Err(broken("a value has a type that does not exist")),
        })
    }

    #[expect(
        clippy::cast_possible_wrap,
        reason = "a u64 beyond i64 is nonsense here, and a negative number is refused"
    )]
    fn whole(&mut self, kind: u32) -> Result<i64, EngineError> {
        Ok(match kind {
            0 => u8::from_le_bytes(self.array()?).into(),
            1 => i8::from_le_bytes(self.array()?).into(),
            2 => u16::from_le_bytes(self.array()?).into(),
            3 => i16::from_le_bytes(self.array()?).into(),
            4 => u32::from_le_bytes(self.array()?).into(),
            5 => i32::from_le_bytes(self.array()?).into(),
            10 => u64::from_le_bytes(self.array()?) as i64,
            _ => i64::from_le_bytes(self.array()?),
        })
    }

    fn list(&mut self) -> Result<Value, EngineError> {
        let (kind, count) = (self.u32()?, self.u64()?);
        if count > self.left {
            return Err(broken("a list has more elements than the file has bytes"));
        }
        // What an element takes in memory, twice where a growing list may leave as much unused.
        self.spend(0, count.saturating_mul(if kind == 8 { 48 } else { 16 }))?;
        let count = usize::try_from(count).map_err(|_| broken("a list is too long"))?;
        Ok(match kind {
            0..=5 | 10 | 11 => Value::Wholes((0..count).map(|_| self.whole(kind)).collect::<Result<_, _>>()?),
            6 => {
                let real = |_| Ok::<_, EngineError>(f32::from_le_bytes(self.array()?));
                Value::Reals((0..count).map(real).collect::<Result<_, _>>()?)
            }
            7 => {
                let truth = |_| Ok::<_, EngineError>(self.array::<1>()? != [0]);
                Value::Truths((0..count).map(truth).collect::<Result<_, _>>()?)
            }
            8 => Value::Texts((0..count).map(|_| self.text()).collect::<Result<_, _>>()?),
            _ => return Err(broken("a list has a type that models do not use")),
        })
    }

    fn tensor(&mut self) -> Result<(String, TensorInfo), EngineError> {
        self.spend(0, 512)?;
        let name = self.text()?;
        if name.len() as u64 > NAME {
            return Err(broken("the name of a tensor is too long"));
        }
        let count = self.u32()?;
        if !(1..=4).contains(&count) {
            return Err(broken(&format!("the tensor {name} has {count} dimensions")));
        }
        let mut dims = Vec::new();
        for _ in 0..count {
            dims.push(usize::try_from(self.u64()?).unwrap_or(usize::MAX));
        }
        dims.reverse();
        let kind = self.u32()?;
        let kind = kind_of(kind)
            .ok_or_else(|| EngineError::Unsupported(format!("tensors of type {kind}, which {name} has")))?;
        let start = self.u64()?;
        let row = dims.last().copied().unwrap_or_default();
        let numbers = dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim));
        let bytes = numbers.and_then(|numbers| (numbers / kind.block_size()).checked_mul(kind.type_size()));
        match bytes {
            Some(bytes) if bytes > 0 && row.is_multiple_of(kind.block_size()) => {
                Ok((name, TensorInfo { dims, kind, start, bytes }))
            }
            _ => Err(broken(&format!("the tensor {name} has a shape that its type does not allow"))),
        }
    }
}

/// Source: `enum ggml_type`.
fn kind_of(number: u32) -> Option<GgmlDType> {
    Some(match number {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        _ => return None,
    })
}

pub fn broken(what: &str) -> EngineError {
    EngineError::Broken(what.to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => broken("it is cut off"),
        _ => EngineError::Broken(error.to_string()),
    }
}
