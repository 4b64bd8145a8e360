//! Reads the header of a GGUF file: metadata such as the architecture and the vocabulary, and where each tensor lies.
//!
//! Layout, all little-endian: magic, version `u32`, number of tensors `u64`, number of metadata entries `u64`; then the
//! entries, each a key, a type and a value; then for each tensor its name, dimensions, type and offset; then, at the
//! next multiple of the alignment, the tensors' bytes. Source: the GGUF specification, versions 2 and 3, which do not
//! differ in anything that is read here.
//!
//! The file may be hostile. Every count is checked against the bytes that could hold it, and against a memory budget
//! before anything is allocated.

#[cfg(any(test, feature = "test-support"))]
pub mod header_builder;
mod reader;
mod tensor_type;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, BufReader, Read},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

pub use self::tensor_type::TensorType;

/// The longest header that is read, in bytes. The largest vocabularies of today take 20 MiB.
pub const MAX_HEADER_BYTES: u64 = 256 << 20;

/// A reason why a header cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("it is not a GGUF file")]
    NotGguf,
    #[error("it is a GGUF file of version {0}; versions 2 and 3 can be read")]
    Version(u32),
    #[error("it was made for a machine with another byte order")]
    ByteOrder,
    #[error("it ends in the middle of its header")]
    Truncated,
    #[error("its header is broken: {0}")]
    Broken(&'static str),
    #[error("its header is larger than any model needs: {0}")]
    TooLarge(&'static str),
    #[error("it cannot be read")]
    Io(#[source] io::Error),
}

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Integer(i128),
    Float(f64),
    Bool(bool),
    String(String),
    Integers(Vec<i128>),
    Floats(Vec<f32>),
    Bools(Vec<bool>),
    Strings(Vec<String>),
    /// A value that the reader did not keep: the number of its elements, or of its bytes if it is a string.
    Skipped(u64),
}

/// Says which values of a header are kept, and how much memory they may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Memory for all values together, in bytes.
    memory: u64,
    /// The longest string that is kept, in bytes.
    string_bytes: u64,
    /// The longest list that is kept, in elements.
    list_length: u64,
    /// Keep lists of strings, floats and booleans as well. Without it only lists of integers are kept.
    all_lists: bool,
}

impl Limits {
    /// Keeps what describes a model: scalars, strings of up to 1 MiB such as the chat template, and lists with one
    /// integer per layer.
    const FACTS: Self = Self { memory: 8 << 20, string_bytes: 1 << 20, list_length: 2048, all_lists: false };

    /// Keeps every value, as running a model needs it. The largest vocabularies of today (262,144 tokens) take 30 MiB.
    const ALL: Self =
        Self { memory: 256 << 20, string_bytes: u64::MAX, list_length: u64::MAX, all_lists: true };
}

/// A tensor as the header describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub name: String,
    /// As in the file: the length of a row comes first.
    pub dimensions: Vec<u64>,
    /// The number of elements: the product of the dimensions.
    pub elements: u64,
    /// `enum ggml_type`.
    pub kind: u32,
    /// In bytes, from the start of the tensors' data.
    pub offset: u64,
}

/// The metadata of a GGUF file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    pub version: u32,
    values: BTreeMap<String, Value>,
    /// The number of elements of all tensors, by tensor type.
    pub elements: BTreeMap<u32, u64>,
    /// The length of the header in bytes. The tensors' data begin at the next multiple of the alignment.
    pub length: u64,
    /// The length of the file that it was read from, in bytes.
    file_length: u64,
    /// The length of the tensors' data in bytes, as far as their types are known.
    data_length: u64,
}

/// Opens a regular file for reading. Does not block on a FIFO: it is refused like every other special file.
///
/// # Errors
///
/// Errors of opening it, and one of kind [`io::ErrorKind::InvalidInput`] for what is not a regular file.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

impl Header {
    /// Reads what describes a model from the header of a file: long lists and strings are skipped. Costs as much I/O as
    /// the header is long, and no more memory than 16 MiB.
    ///
    /// # Errors
    ///
    /// [`GgufError`]. Whatever is not a regular file is refused, and a FIFO is not waited for.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let file = open_regular_file(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => GgufError::NotGguf,
            _ => GgufError::Io(error),
        })?;
        let length = file.metadata().map_err(GgufError::Io)?.len();
        Self::read(BufReader::with_capacity(256 * 1024, file), length)
    }

    /// Reads the same from a file of `length` bytes that is open already.
    ///
    /// # Errors
    ///
    /// [`GgufError`].
    pub fn read(from: impl Read, length: u64) -> Result<Self, GgufError> {
        reader::Reader::new(from, length, Limits::FACTS).header(&mut |_| Ok(()))
    }

    /// Reads all values of a header, and hands each tensor to `on_tensor`, whose error ends the reading. Takes no more
    /// memory than 256 MiB.
    ///
    /// # Errors
    ///
    /// [`GgufError`], or the error of `on_tensor`.
    pub fn read_all<E: From<GgufError>>(
        from: impl Read,
        length: u64,
        mut on_tensor: impl FnMut(Tensor) -> Result<(), E>,
    ) -> Result<Self, E> {
        reader::Reader::new(from, length, Limits::ALL).header(&mut on_tensor)
    }

    /// Returns where the tensors' data begin in the file, or `None` for an alignment that makes no sense.
    pub fn data_start(&self) -> Option<u64> {
        let alignment = match self.value("general.alignment") {
            Some(_) => self.unsigned("general.alignment").filter(|size| (1..=65_536).contains(size))?,
            None => 32,
        };
        self.length.checked_next_multiple_of(alignment)
    }

    /// Counts the bytes that the file lacks at its end.
    pub fn missing_bytes(&self) -> u64 {
        let start = self.data_start().filter(|_| self.data_length > 0);
        let end = start.map_or(0, |start| start.saturating_add(self.data_length));
        end.saturating_sub(self.file_length)
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Removes a value, so that a vocabulary need not be copied.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.values.remove(key)
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    pub fn string(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// An integer that is not negative.
    pub fn unsigned(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    pub fn float(&self, key: &str) -> Option<f64> {
        match self.value(key)? {
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    pub fn boolean(&self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// One integer for each of `layers`: the file has a list, or one integer for all layers.
    pub fn per_layer(&self, key: &str, layers: u64) -> Option<Vec<u64>> {
        match self.value(key)? {
            Value::Integer(value) => {
                let value = u64::try_from(*value).ok()?;
                Some(vec![value; usize::try_from(layers.min(Limits::FACTS.list_length)).ok()?])
            }
            Value::Integers(list) => list.iter().map(|&value| u64::try_from(value).ok()).collect(),
            _ => None,
        }
    }
}
