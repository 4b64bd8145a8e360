//! The file format, version 3: a head of named values, the tensors' names and places, and their bytes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 4] = b"GGUF";
const VERSION: u32 = 3;
const ALIGNMENT: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("not a model that this program made: {path}")]
    Foreign { path: PathBuf },
}

/// A value of the head.
#[derive(Clone, Debug)]
pub enum Value {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<i32>),
}

/// The type of a tensor's numbers. The discriminants are those of the file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    F32 = 0,
    Q8_0 = 8,
    Q4K = 12,
    Q6K = 14,
}

impl Kind {
    /// (numbers, bytes) of a block.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::Q8_0 => (32, 34),
            Self::Q4K => (256, 144),
            Self::Q6K => (256, 210),
        }
    }

    fn of(number: u32) -> Option<Self> {
        [Self::F32, Self::Q8_0, Self::Q4K, Self::Q6K].into_iter().find(|kind| *kind as u32 == number)
    }
}

/// `rows` of `columns` numbers; one row is a vector.
pub struct Tensor<'a> {
    pub name: String,
    pub columns: usize,
    pub rows: usize,
    pub kind: Kind,
    /// Makes the bytes, when they are written.
    pub bytes: Box<dyn FnMut() -> Vec<u8> + 'a>,
}

/// The content of a file: the whole numbers of its header, and its tensors, by name.
pub type Contents = (HashMap<String, u32>, HashMap<String, Found>);

/// Bytes of a tensor in a file.
pub struct Found {
    pub kind: Kind,
    pub numbers: usize,
    pub bytes: Vec<u8>,
}

pub fn write(path: &Path, head: &[(&str, Value)], tensors: Vec<Tensor>) -> Result<(), Error> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((head.len() as u64).to_le_bytes());
    for (name, value) in head {
        text(&mut out, name);
        put(&mut out, value);
    }
    let mut offset = 0;
    for tensor in &tensors {
        text(&mut out, &tensor.name);
        let sides = if tensor.rows == 1 { vec![tensor.columns] } else { vec![tensor.columns, tensor.rows] };
        out.extend((sides.len() as u32).to_le_bytes());
        for side in sides {
            out.extend((side as u64).to_le_bytes());
        }
        out.extend((tensor.kind as u32).to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
        let (numbers, bytes) = tensor.kind.block();
        offset += (tensor.rows * tensor.columns / numbers * bytes).next_multiple_of(ALIGNMENT);
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    let written = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&out)?;
        for mut tensor in tensors {
            let mut bytes = (tensor.bytes)();
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
            file.write_all(&bytes)?;
        }
        file.flush()
    };
    written().map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put(out: &mut Vec<u8>, value: &Value) {
    let list = |out: &mut Vec<u8>, kind: u32, length: usize| {
        out.extend(9_u32.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend((length as u64).to_le_bytes());
    };
    match value {
        Value::U32(number) => {
            out.extend(4_u32.to_le_bytes());
            out.extend(number.to_le_bytes());
        }
        Value::F32(number) => {
            out.extend(6_u32.to_le_bytes());
            out.extend(number.to_le_bytes());
        }
        Value::Bool(yes) => {
            out.extend(7_u32.to_le_bytes());
            out.push(u8::from(*yes));
        }
        Value::Text(words) => {
            out.extend(8_u32.to_le_bytes());
            text(out, words);
        }
        Value::Texts(texts) => {
            list(out, 8, texts.len());
            texts.iter().for_each(|words| text(out, words));
        }
        Value::Numbers(numbers) => {
            list(out, 5, numbers.len());
            numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        }
    }
}

/// Reads what [`write`] writes, and nothing else.
pub fn read(path: &Path) -> Result<Contents, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    parse(&bytes).ok_or_else(|| Error::Foreign { path: path.to_owned() })
}

fn parse(all: &[u8]) -> Option<Contents> {
    let mut rest = Rest(all.strip_prefix(MAGIC)?);
    if rest.u32()? != VERSION {
        return None;
    }
    let (tensors, values) = (rest.size()?, rest.size()?);
    let mut head = HashMap::new();
    for _ in 0..values {
        let name = rest.text()?;
        let kind = rest.u32()?;
        if kind == 9 {
            let (kind, length) = (rest.u32()?, rest.size()?);
            for _ in 0..length {
                rest.skip(kind)?;
            }
        } else if kind == 4 {
            head.insert(name, rest.u32()?);
        } else {
            rest.skip(kind)?;
        }
    }
    let mut places = Vec::new();
    for _ in 0..tensors {
        let name = rest.text()?;
        let mut numbers: usize = 1;
        for _ in 0..rest.u32()? {
            numbers = numbers.checked_mul(rest.size()?)?;
        }
        places.push((name, numbers, Kind::of(rest.u32()?)?, rest.size()?));
    }
    let begin = (all.len() - rest.0.len()).next_multiple_of(ALIGNMENT);
    let mut found = HashMap::new();
    for (name, numbers, kind, offset) in places {
        let (block, size) = kind.block();
        let bytes =
            all.get(begin.checked_add(offset)?..)?.get(..(numbers / block).checked_mul(size)?)?.to_vec();
        found.insert(name, Found { kind, numbers, bytes });
    }
    Some((head, found))
}

/// The part that has not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.take(8)?.try_into().ok()?)).ok()
    }

    fn text(&mut self) -> Option<String> {
        let size = self.size()?;
        String::from_utf8(self.take(size)?.to_vec()).ok()
    }

    /// A value of this kind.
    fn skip(&mut self, kind: u32) -> Option<()> {
        match kind {
            4..=6 => self.take(4).map(drop),
            7 => self.take(1).map(drop),
            8 => self.text().map(drop),
            _ => None,
        }
    }
}
