//! The header of a GGUF file: what a model says about itself before its weights begin.
//!
//! Layout, all little-endian: magic, version `u32`, tensors `u64`, entries `u64`; then entries of key, type
//! and value; then tensors of name, dimensions, type and offset. Source: the GGUF specification, versions 2
//! and 3 (which differ in nothing that is read here).
//!
//! The file may be hostile. Every count is checked against the bytes that could hold it, nothing is
//! allocated by a number that the file gives, and what is kept has a budget.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, BufReader, Read},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Bytes of a header that are read. The largest vocabularies of today take 20 MiB.
pub const HEADER: u64 = 256 << 20;
/// Entries of a header; models have fewer than a hundred.
const ENTRIES: u64 = 1 << 16;
/// Tensors of a file; the largest models have a few thousand.
const TENSORS: u64 = 1 << 20;
/// Bytes of a key or a tensor's name. Source: the specification.
const KEY: u64 = 65_535;
/// Bytes of a text that is kept; longer ones are only passed over. Chat templates take 20 KiB.
const TEXT: u64 = 1 << 20;
/// Elements of a list of numbers that is kept: one for each layer, and no vocabulary.
const LIST: u64 = 2048;
/// Bytes of everything that is kept.
const KEPT: u64 = 8 << 20;
/// Lists within lists.
const DEPTH: u32 = 4;

/// Why a header cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("it is not a GGUF file")]
    NotGguf,
    #[error("it is a GGUF file of version {0}; versions 2 and 3 can be read")]
    Version(u32),
    #[error("it was made for a machine with another byte order")]
    ByteOrder,
    #[error("it ends in the middle of its header")]
    Cut,
    #[error("its header is broken: {0}")]
    Broken(&'static str),
    #[error("its header is larger than any model needs: {0}")]
    TooLarge(&'static str),
    #[error("it cannot be read")]
    Io(#[source] io::Error),
}

/// A value that was kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Whole(i128),
    Real(f64),
    Truth(bool),
    Text(String),
    /// A short list of whole numbers.
    Wholes(Vec<i128>),
    /// Any other list, and a text too long to keep: how many elements or bytes it has.
    Passed(u64),
}

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    pub version: u32,
    values: BTreeMap<String, Value>,
    /// Numbers that the tensors hold, by the tensors' type.
    pub weights: BTreeMap<u32, u64>,
}

impl Header {
    /// Reads the header of a file. Costs as much I/O as the header is long, and no more memory than 16 MiB.
    ///
    /// # Errors
    ///
    /// [`GgufError`]. What is no regular file is refused, and a FIFO is not waited for.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(GgufError::Io)?;
        let meta = file.metadata().map_err(GgufError::Io)?;
        if !meta.is_file() {
            return Err(GgufError::NotGguf);
        }
        Self::read(BufReader::with_capacity(256 * 1024, file as File), meta.len())
    }

    /// Reads a header out of `length` bytes.
    ///
    /// # Errors
    ///
    /// [`GgufError`].
    pub fn read(from: impl Read, length: u64) -> Result<Self, GgufError> {
        let mut bytes = Bytes { from, left: length.min(HEADER), limited: length > HEADER, kept: KEPT };
        match bytes.array() {
            Ok(magic) if &magic == b"GGUF" => {}
            Err(GgufError::Io(error)) => return Err(GgufError::Io(error)),
            _ => return Err(GgufError::NotGguf),
        }
        let version = bytes.u32()?;
        match version {
            2 | 3 => {}
            swapped if swapped.swap_bytes() <= 3 && swapped != 0 => return Err(GgufError::ByteOrder),
            other => return Err(GgufError::Version(other)),
        }
        let (tensors, entries) = (bytes.u64()?, bytes.u64()?);
        if entries > ENTRIES {
            return Err(GgufError::TooLarge("the number of entries"));
        }
        if tensors > TENSORS {
            return Err(GgufError::TooLarge("the number of tensors"));
        }
        let mut header = Self { version, ..Self::default() };
        for _ in 0..entries {
            let key = bytes.key()?;
            let kind = bytes.u32()?;
            let value = bytes.value(kind)?;
            if header.values.insert(key, value).is_some() {
                return Err(GgufError::Broken("a key is there twice"));
            }
        }
        for _ in 0..tensors {
            bytes.tensor(&mut header.weights)?;
        }
        Ok(header)
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// The keys that are there, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub fn whole(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::Whole(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// One number for each of `layers`, where the file gives one for all or a list.
    pub fn per_layer(&self, key: &str, layers: u64) -> Option<Vec<u64>> {
        match self.value(key)? {
            Value::Whole(value) => {
                let value = u64::try_from(*value).ok()?;
                Some(vec![value; usize::try_from(layers.min(LIST)).ok()?])
            }
            Value::Wholes(list) => list.iter().map(|&value| u64::try_from(value).ok()).collect(),
            _ => None,
        }
    }
}

/// The bytes of a header, counted.
struct Bytes<R> {
    from: R,
    left: u64,
    /// The file is longer than what may be read of it.
    limited: bool,
    /// Bytes that may yet be kept.
    kept: u64,
}

impl<R: Read> Bytes<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        self.spend(N as u64)?;
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(cut)?;
        Ok(bytes)
    }

    /// Notes that `count` bytes are read next, if there are as many.
    fn spend(&mut self, count: u64) -> Result<(), GgufError> {
        self.left = self.left.checked_sub(count).ok_or(if self.limited {
            GgufError::TooLarge("it has over 256 MiB")
        } else {
            GgufError::Cut
        })?;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<(), GgufError> {
        self.spend(count)?;
        let skipped = io::copy(&mut self.from.by_ref().take(count), &mut io::sink()).map_err(cut)?;
        if skipped == count { Ok(()) } else { Err(GgufError::Cut) }
    }

    fn keep(&mut self, count: u64) -> Result<(), GgufError> {
        self.kept = self.kept.checked_sub(count).ok_or(GgufError::TooLarge("the texts in it"))?;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// `count` bytes as text; what is not UTF-8 in them is replaced.
    fn text(&mut self, count: u64) -> Result<String, GgufError> {
        self.spend(count)?;
        self.keep(count)?;
        let mut bytes = Vec::new();
        self.from.by_ref().take(count).read_to_end(&mut bytes).map_err(cut)?;
        if bytes.len() as u64 != count {
            return Err(GgufError::Cut);
        }
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn key(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        if length > KEY {
            return Err(GgufError::Broken("a key is longer than 65535 bytes"));
        }
        // What a map entry costs besides its text.
        self.keep(64)?;
        self.text(length)
    }

    fn value(&mut self, kind: u32) -> Result<Value, GgufError> {
        match kind {
            8 => {
                let length = self.u64()?;
                if length <= TEXT {
                    return self.text(length).map(Value::Text);
                }
                self.skip(length)?;
                Ok(Value::Passed(length))
            }
            9 => self.list(),
            kind => self.scalar(kind),
        }
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, GgufError> {
        Ok(match kind {
            0 => Value::Whole(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Whole(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Whole(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Whole(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Whole(u32::from_le_bytes(self.array()?).into()),
            5 => Value::Whole(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Real(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Truth(self.array::<1>()? != [0]),
            10 => Value::Whole(u64::from_le_bytes(self.array()?).into()),
            11 => Value::Whole(i64::from_le_bytes(self.array()?).into()),
            12 => Value::Real(f64::from_le_bytes(self.array()?)),
            _ => return Err(GgufError::Broken("a value has a type that does not exist")),
        })
    }

    fn list(&mut self) -> Result<Value, GgufError> {
        let (kind, count) = (self.u32()?, self.u64()?);
        if count <= LIST && matches!(kind, 0..=5 | 10 | 11) {
            self.keep(count * 16)?;
            let mut list = Vec::new();
            for _ in 0..count {
                if let Value::Whole(value) = self.scalar(kind)? {
                    list.push(value);
                }
            }
            return Ok(Value::Wholes(list));
        }
        self.pass(kind, count, DEPTH)?;
        Ok(Value::Passed(count))
    }

    /// Reads over the elements of a list.
    fn pass(&mut self, kind: u32, count: u64, depth: u32) -> Result<(), GgufError> {
        let wide = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => {
                for _ in 0..count {
                    let length = self.u64()?;
                    self.skip(length)?;
                }
                return Ok(());
            }
            9 if depth > 0 => {
                for _ in 0..count {
                    let (kind, count) = (self.u32()?, self.u64()?);
                    self.pass(kind, count, depth - 1)?;
                }
                return Ok(());
            }
            9 => return Err(GgufError::Broken("lists within lists within lists")),
            _ => return Err(GgufError::Broken("a list has a type that does not exist")),
        };
        self.skip(count.checked_mul(wide).ok_or(GgufError::Broken("a list has more elements than bytes"))?)
    }

    fn tensor(&mut self, weights: &mut BTreeMap<u32, u64>) -> Result<(), GgufError> {
        let name = self.u64()?;
        if name > KEY {
            return Err(GgufError::Broken("the name of a tensor is longer than 65535 bytes"));
        }
        self.skip(name)?;
        let dimensions = self.u32()?;
        if dimensions > 8 {
            return Err(GgufError::Broken("a tensor has more than eight dimensions"));
        }
        let too_many = GgufError::Broken("a tensor has more numbers than can be counted");
        let mut count = 1_u64;
        for _ in 0..dimensions {
            count = match count.checked_mul(self.u64()?) {
                Some(count) => count,
                None => return Err(too_many),
            };
        }
        let kind = self.u32()?;
        // A file cannot make the map large: there are some forty types.
        if kind > 1024 {
            return Err(GgufError::Broken("a tensor has a type that does not exist"));
        }
        let sum = weights.entry(kind).or_default();
        *sum = sum.checked_add(count).ok_or(too_many)?;
        self.u64().map(drop)
    }
}

fn cut(error: io::Error) -> GgufError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => GgufError::Cut,
        _ => GgufError::Io(error),
    }
}

#[cfg(test)]
pub(super) mod tests;
