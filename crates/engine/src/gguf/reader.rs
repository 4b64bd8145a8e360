//! The parser: counts the bytes and the memory that a header takes, and refuses it before either is exceeded.

use std::{
    collections::btree_map::Entry,
    io::{self, Read},
};

use super::{GgufError, Header, Limits, MAX_HEADER_BYTES, Tensor, TensorType, Value};

/// The most metadata entries of a header. Models have fewer than a hundred.
const MAX_ENTRIES: u64 = 1 << 16;
/// The most tensors of a file. The largest models have a few thousand.
const MAX_TENSORS: u64 = 1 << 16;
/// The longest key or tensor name, in bytes. Source: the specification.
const MAX_NAME_BYTES: u64 = 65_535;
/// The deepest nesting of lists that is skipped. A deeper one is an error.
const MAX_LIST_DEPTH: u32 = 4;
/// The largest tensor type. There are some forty; a higher limit would let a file make a count per type large.
const MAX_TENSOR_KIND: u32 = 1024;

/// Memory of a map entry besides its text, in bytes.
const ENTRY_BYTES: u64 = 64;
/// Memory of a list element, in bytes. A growing list may hold twice its elements.
const ELEMENT_BYTES: u64 = 32;
const STRING_ELEMENT_BYTES: u64 = 48;

/// The numbers of value types in the file.
mod kind {
    pub(super) const U8: u32 = 0;
    pub(super) const I8: u32 = 1;
    pub(super) const U16: u32 = 2;
    pub(super) const I16: u32 = 3;
    pub(super) const U32: u32 = 4;
    pub(super) const I32: u32 = 5;
    pub(super) const F32: u32 = 6;
    pub(super) const BOOL: u32 = 7;
    pub(super) const STRING: u32 = 8;
    pub(super) const LIST: u32 = 9;
    pub(super) const U64: u32 = 10;
    pub(super) const I64: u32 = 11;
    pub(super) const F64: u32 = 12;
}

/// Reads a header value by value.
pub(super) struct Reader<R> {
    from: R,
    limits: Limits,
    /// The length of the file.
    length: u64,
    /// Bytes of the header that were read.
    read: u64,
    /// Bytes that may yet be read.
    left: u64,
    /// The file is longer than [`MAX_HEADER_BYTES`], so running out of `left` does not mean that it is cut off.
    longer: bool,
    /// Bytes of memory that may yet be spent.
    memory: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(from: R, length: u64, limits: Limits) -> Self {
        Self {
            from,
            limits,
            length,
            read: 0,
            left: length.min(MAX_HEADER_BYTES),
            longer: length > MAX_HEADER_BYTES,
            memory: limits.memory,
        }
    }

    /// Reads the whole header.
    pub(super) fn header<E: From<GgufError>>(
        mut self,
        on_tensor: &mut dyn FnMut(Tensor) -> Result<(), E>,
    ) -> Result<Header, E> {
        let version = self.version()?;
        let (tensors, entries) = (self.u64()?, self.u64()?);
        if entries > MAX_ENTRIES {
            return Err(GgufError::TooLarge("the number of entries").into());
        }
        if tensors > MAX_TENSORS {
            return Err(GgufError::TooLarge("the number of tensors").into());
        }
        let mut header = Header { version, file_length: self.length, ..Header::default() };
        for _ in 0..entries {
            let key = self.key()?;
            let kind = self.u32()?;
            let value = self.value(kind)?;
            match header.values.entry(key) {
                Entry::Vacant(entry) => entry.insert(value),
                Entry::Occupied(_) => return Err(GgufError::Broken("a key is there twice").into()),
            };
        }
        for _ in 0..tensors {
            let tensor = self.tensor()?;
            let elements = header.elements.entry(tensor.kind).or_default();
            *elements = elements.checked_add(tensor.elements).ok_or(TOO_MANY_ELEMENTS)?;
            let size = TensorType::from_number(tensor.kind).map_or(0, |kind| kind.size(tensor.elements));
            header.data_length = header.data_length.max(tensor.offset.saturating_add(size));
            on_tensor(tensor)?;
        }
        header.length = self.read;
        Ok(header)
    }

    fn version(&mut self) -> Result<u32, GgufError> {
        match self.array() {
            Ok(magic) if &magic == b"GGUF" => {}
            Err(GgufError::Io(error)) => return Err(GgufError::Io(error)),
            _ => return Err(GgufError::NotGguf),
        }
        match self.u32()? {
            version @ (2 | 3) => Ok(version),
            swapped if swapped.swap_bytes() <= 3 && swapped != 0 => Err(GgufError::ByteOrder),
            other => Err(GgufError::Version(other)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        self.advance(N as u64)?;
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(read_error)?;
        Ok(bytes)
    }

    /// Notes that `count` bytes are read next, or refuses if the header has not as many left.
    fn advance(&mut self, count: u64) -> Result<(), GgufError> {
        self.left = self.left.checked_sub(count).ok_or(self.exhausted())?;
        self.read += count;
        Ok(())
    }

    fn exhausted(&self) -> GgufError {
        if self.longer { GgufError::TooLarge("it has over 256 MiB") } else { GgufError::Truncated }
    }

    /// Takes `bytes` from the memory budget.
    fn allocate(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.memory =
            self.memory.checked_sub(bytes).ok_or(GgufError::TooLarge("the texts and lists in it"))?;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<(), GgufError> {
        self.advance(count)?;
        let skipped = io::copy(&mut self.from.by_ref().take(count), &mut io::sink()).map_err(read_error)?;
        if skipped == count { Ok(()) } else { Err(GgufError::Truncated) }
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads `length` bytes as text. Bytes that are not UTF-8 are replaced.
    fn text(&mut self, length: u64) -> Result<String, GgufError> {
        self.advance(length)?;
        self.allocate(length)?;
        let mut bytes = Vec::new();
        self.from.by_ref().take(length).read_to_end(&mut bytes).map_err(read_error)?;
        if bytes.len() as u64 != length {
            return Err(GgufError::Truncated);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(error) => {
                // Each byte that is replaced becomes three.
                self.allocate(length.saturating_mul(2))?;
                Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
        }
    }

    fn key(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        if length > MAX_NAME_BYTES {
            return Err(GgufError::Broken("a key is longer than 65535 bytes"));
        }
        self.allocate(ENTRY_BYTES)?;
        self.text(length)
    }

    fn value(&mut self, kind: u32) -> Result<Value, GgufError> {
        match kind {
            kind::STRING => {
                let length = self.u64()?;
                if length <= self.limits.string_bytes {
                    return self.text(length).map(Value::String);
                }
                self.skip(length)?;
                Ok(Value::Skipped(length))
            }
            kind::LIST => self.list(),
            kind::F32 => Ok(Value::Float(f32::from_le_bytes(self.array()?).into())),
            kind::F64 => Ok(Value::Float(f64::from_le_bytes(self.array()?))),
            kind::BOOL => Ok(Value::Bool(self.boolean()?)),
            kind if is_integer(kind) => Ok(Value::Integer(self.integer(kind)?)),
            _ => Err(GgufError::Broken("a value has a type that does not exist")),
        }
    }

    fn boolean(&mut self) -> Result<bool, GgufError> {
        Ok(self.array::<1>()? != [0])
    }

    fn integer(&mut self, kind: u32) -> Result<i128, GgufError> {
        Ok(match kind {
            kind::U8 => u8::from_le_bytes(self.array()?).into(),
            kind::I8 => i8::from_le_bytes(self.array()?).into(),
            kind::U16 => u16::from_le_bytes(self.array()?).into(),
            kind::I16 => i16::from_le_bytes(self.array()?).into(),
            kind::U32 => u32::from_le_bytes(self.array()?).into(),
            kind::I32 => i32::from_le_bytes(self.array()?).into(),
            kind::U64 => u64::from_le_bytes(self.array()?).into(),
            _ => i64::from_le_bytes(self.array()?).into(),
        })
    }

    fn list(&mut self) -> Result<Value, GgufError> {
        let (kind, count) = (self.u32()?, self.u64()?);
        let kept = is_integer(kind) || self.limits.all_lists;
        if !kept || count > self.limits.list_length {
            self.skip_list(kind, count, MAX_LIST_DEPTH)?;
            return Ok(Value::Skipped(count));
        }
        let size = match kind {
            kind::STRING => 8,
            kind::F64 | kind::LIST => {
                return Err(GgufError::Broken("a list has a type that models do not use"));
            }
            kind => element_size(kind)?,
        };
        let bytes = count.checked_mul(size).ok_or(MORE_ELEMENTS_THAN_BYTES)?;
        if bytes > self.left {
            return Err(self.exhausted());
        }
        let element_bytes = if kind == kind::STRING { STRING_ELEMENT_BYTES } else { ELEMENT_BYTES };
        self.allocate(count.saturating_mul(element_bytes))?;
        Ok(match kind {
            kind::F32 => {
                let float = |_| Ok::<_, GgufError>(f32::from_le_bytes(self.array()?));
                Value::Floats((0..count).map(float).collect::<Result<_, _>>()?)
            }
            kind::BOOL => Value::Bools((0..count).map(|_| self.boolean()).collect::<Result<_, _>>()?),
            kind::STRING => {
                let string = |_| {
                    let length = self.u64()?;
                    self.text(length)
                };
                Value::Strings((0..count).map(string).collect::<Result<_, GgufError>>()?)
            }
            kind => Value::Integers((0..count).map(|_| self.integer(kind)).collect::<Result<_, _>>()?),
        })
    }

    /// Reads over the elements of a list.
    fn skip_list(&mut self, kind: u32, count: u64, depth: u32) -> Result<(), GgufError> {
        match kind {
            kind::STRING => {
                for _ in 0..count {
                    let length = self.u64()?;
                    self.skip(length)?;
                }
                Ok(())
            }
            kind::LIST if depth > 0 => {
                for _ in 0..count {
                    let (kind, count) = (self.u32()?, self.u64()?);
                    self.skip_list(kind, count, depth - 1)?;
                }
                Ok(())
            }
            kind::LIST => Err(GgufError::Broken("lists within lists within lists")),
            kind => {
                let size = element_size(kind)?;
                self.skip(count.checked_mul(size).ok_or(MORE_ELEMENTS_THAN_BYTES)?)
            }
        }
    }

    fn tensor(&mut self) -> Result<Tensor, GgufError> {
        let length = self.u64()?;
        if length > MAX_NAME_BYTES {
            return Err(GgufError::Broken("the name of a tensor is longer than 65535 bytes"));
        }
        let memory = self.memory;
        let name = self.text(length)?;
        // Whoever keeps the name answers for its memory.
        self.memory = memory;
        let count = self.u32()?;
        if count > 8 {
            return Err(GgufError::Broken("a tensor has more than eight dimensions"));
        }
        let mut dimensions = Vec::new();
        for _ in 0..count {
            dimensions.push(self.u64()?);
        }
        let elements = dimensions.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
        let elements = elements.ok_or(TOO_MANY_ELEMENTS)?;
        let kind = self.u32()?;
        if kind > MAX_TENSOR_KIND {
            return Err(GgufError::Broken("a tensor has a type that does not exist"));
        }
        Ok(Tensor { name, dimensions, elements, kind, offset: self.u64()? })
    }
}

const TOO_MANY_ELEMENTS: GgufError = GgufError::Broken("a tensor has more numbers than can be counted");
const MORE_ELEMENTS_THAN_BYTES: GgufError = GgufError::Broken("a list has more elements than bytes");

fn is_integer(kind: u32) -> bool {
    matches!(kind, kind::U8..=kind::I32 | kind::U64 | kind::I64)
}

/// Bytes of one element of a list of numbers or booleans.
fn element_size(kind: u32) -> Result<u64, GgufError> {
    match kind {
        kind::U8 | kind::I8 | kind::BOOL => Ok(1),
        kind::U16 | kind::I16 => Ok(2),
        kind::U32 | kind::I32 | kind::F32 => Ok(4),
        kind::U64 | kind::I64 | kind::F64 => Ok(8),
        _ => Err(GgufError::Broken("a list has a type that does not exist")),
    }
}

fn read_error(error: io::Error) -> GgufError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => GgufError::Truncated,
        _ => GgufError::Io(error),
    }
}
