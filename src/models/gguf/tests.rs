//! Headers made by hand: whole, cut anywhere, and hostile.

use super::*;

/// Writes a header, right or wrong.
#[derive(Clone, Default)]
pub struct Maker {
    entries: Vec<u8>,
    count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
}

fn text(into: &mut Vec<u8>, text: &str) {
    into.extend((text.len() as u64).to_le_bytes());
    into.extend(text.as_bytes());
}

impl Maker {
    pub fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        text(&mut self.entries, key);
        self.entries.extend(kind.to_le_bytes());
        self.entries.extend(value);
        self.count += 1;
        self
    }

    pub fn text(self, key: &str, value: &str) -> Self {
        let mut bytes = Vec::new();
        text(&mut bytes, value);
        self.raw(key, 8, &bytes)
    }

    pub fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub fn list(self, key: &str, kind: u32, count: u64, elements: &[u8]) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(count.to_le_bytes());
        bytes.extend(elements);
        self.raw(key, 9, &bytes)
    }

    pub fn tensor(mut self, dimensions: &[u64], kind: u32) -> Self {
        text(&mut self.tensors, "blk.0.weight");
        self.tensors.extend((dimensions.len() as u32).to_le_bytes());
        self.tensors.extend(dimensions.iter().flat_map(|size| size.to_le_bytes()));
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend(0_u64.to_le_bytes());
        self.tensor_count += 1;
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(3, self.tensor_count, self.count)
    }

    fn bytes_with(&self, version: u32, tensors: u64, entries: u64) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes.extend(&self.entries);
        bytes.extend(&self.tensors);
        bytes
    }
}

/// Something of every type.
fn whole() -> Maker {
    let mut tokens = Vec::new();
    for token in ["a", "", "longer token"] {
        text(&mut tokens, token);
    }
    let mut nested = Vec::new();
    for _ in 0..2 {
        nested.extend(4_u32.to_le_bytes());
        nested.extend(1_u64.to_le_bytes());
        nested.extend(7_u32.to_le_bytes());
    }
    Maker::default()
        .text("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .raw("i8", 1, &[0xff])
        .raw("f32", 6, &1.5_f32.to_le_bytes())
        .raw("bool", 7, &[1])
        .raw("u64", 10, &u64::MAX.to_le_bytes())
        .raw("f64", 12, &2.5_f64.to_le_bytes())
        .list("tokenizer.ggml.tokens", 8, 3, &tokens)
        .list("heads", 4, 2, &[3, 0, 0, 0, 4, 0, 0, 0])
        .list("nested", 9, 2, &nested)
        .list("scores", 6, 3000, &[0; 12_000])
        .tensor(&[4, 8], 12)
        .tensor(&[3], 0)
}

fn read(bytes: &[u8]) -> Result<Header, GgufError> {
    Header::read(bytes, bytes.len() as u64)
}

#[test]
fn a_whole_header() {
    for version in [2, 3] {
        let maker = whole();
        let mut bytes = maker.bytes_with(version, 2, maker.count);
        bytes.extend([0; 100]); // the weights
        let header = read(&bytes).unwrap();
        assert_eq!(header.version, version);
        assert_eq!(header.text("general.architecture"), Some("llama"));
        assert_eq!(header.whole("llama.block_count"), Some(2));
        assert_eq!(header.value("i8"), Some(&Value::Whole(-1)));
        assert_eq!(header.whole("i8"), None);
        assert_eq!(header.value("f32"), Some(&Value::Real(1.5)));
        assert_eq!(header.value("bool"), Some(&Value::Truth(true)));
        assert_eq!(header.whole("u64"), Some(u64::MAX));
        assert_eq!(header.value("tokenizer.ggml.tokens"), Some(&Value::Passed(3)));
        assert_eq!(header.per_layer("heads", 2), Some(vec![3, 4]));
        assert_eq!(header.per_layer("llama.block_count", 3), Some(vec![2, 2, 2]));
        assert_eq!(header.value("scores"), Some(&Value::Passed(3000)));
        assert_eq!(header.weights, BTreeMap::from([(12, 32), (0, 3)]));
    }
}

#[test]
fn a_header_that_is_cut_anywhere_is_an_error() {
    let bytes = whole().bytes();
    for end in 0..bytes.len() {
        let error = read(&bytes[..end]).unwrap_err();
        let right =
            if end < 4 { matches!(error, GgufError::NotGguf) } else { matches!(error, GgufError::Cut) };
        assert!(right, "{end}: {error}");
        // A file that shrinks while it is read.
        assert!(Header::read(&bytes[..end], bytes.len() as u64).is_err(), "{end}");
    }
}

#[test]
fn no_flipped_byte_brings_it_down() {
    let bytes = whole().bytes();
    let mut seed = 0x2545_f491_u64;
    for round in 0..20_000 {
        let mut bytes = bytes.clone();
        for _ in 0..=round % 4 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = seed as usize % bytes.len();
            bytes[at] = match seed >> 32 & 3 {
                0 => 0xff,
                1 => 0,
                2 => 0x7f,
                _ => (seed >> 40) as u8,
            };
        }
        // Any answer will do, as long as there is one and it came without much memory.
        if let Ok(header) = read(&bytes) {
            crate::models::ModelInfo::from_header(&header);
        }
    }
}

#[test]
fn hostile_numbers_are_refused_before_they_cost_anything() {
    let huge = u64::MAX.to_le_bytes();
    let long_text = |length: u64| Maker::default().raw("x", 8, &length.to_le_bytes()).bytes();
    let mut key = b"GGUF\x03\0\0\0".to_vec();
    key.extend([0; 8]);
    key.extend(1_u64.to_le_bytes());
    key.extend(huge);
    let deep = {
        let mut bytes = Vec::new();
        for _ in 0..64 {
            bytes.extend(9_u32.to_le_bytes());
            bytes.extend(1_u64.to_le_bytes());
        }
        Maker::default().list("deep", 9, 1, &bytes).bytes()
    };
    for (bytes, expect) in [
        (b"GGUF".to_vec(), "it ends in the middle of its header"),
        (b"<!DOCTYPE html>".to_vec(), "it is not a GGUF file"),
        (Vec::new(), "it is not a GGUF file"),
        (
            Maker::default().bytes_with(1, 0, 0),
            "it is a GGUF file of version 1; versions 2 and 3 can be read",
        ),
        (Maker::default().bytes_with(3 << 24, 0, 0), "it was made for a machine with another byte order"),
        (
            Maker::default().bytes_with(3, 0, u64::MAX),
            "its header is larger than any model needs: the number of entries",
        ),
        (
            Maker::default().bytes_with(3, u64::MAX, 0),
            "its header is larger than any model needs: the number of tensors",
        ),
        (Maker::default().bytes_with(3, 0, 60_000), "it ends in the middle of its header"),
        (key, "its header is broken: a key is longer than 65535 bytes"),
        (long_text(u64::MAX), "it ends in the middle of its header"),
        (long_text(1 << 19), "it ends in the middle of its header"),
        (Maker::default().list("x", 8, u64::MAX, &[]).bytes(), "it ends in the middle of its header"),
        (
            Maker::default().list("x", 10, u64::MAX, &[]).bytes(),
            "its header is broken: a list has more elements than bytes",
        ),
        (
            Maker::default().list("x", 10, 1 << 61, &[]).bytes(),
            "its header is broken: a list has more elements than bytes",
        ),
        (Maker::default().list("x", 4, 1 << 50, &[]).bytes(), "it ends in the middle of its header"),
        (
            Maker::default().list("x", 13, 1, &[]).bytes(),
            "its header is broken: a list has a type that does not exist",
        ),
        (
            Maker::default().raw("x", 13, &[]).bytes(),
            "its header is broken: a value has a type that does not exist",
        ),
        (deep, "its header is broken: lists within lists within lists"),
        (Maker::default().u32("x", 1).u32("x", 1).bytes(), "its header is broken: a key is there twice"),
        (
            Maker::default().tensor(&[u64::MAX, 2], 0).bytes(),
            "its header is broken: a tensor has more numbers than can be counted",
        ),
        (
            Maker::default().tensor(&[u64::MAX], 0).tensor(&[1], 0).bytes(),
            "its header is broken: a tensor has more numbers than can be counted",
        ),
        (
            Maker::default().tensor(&[1; 9], 0).bytes(),
            "its header is broken: a tensor has more than eight dimensions",
        ),
        (
            Maker::default().tensor(&[1], 5000).bytes(),
            "its header is broken: a tensor has a type that does not exist",
        ),
    ] {
        assert_eq!(read(&bytes).unwrap_err().to_string(), expect);
    }
}

#[test]
fn what_is_kept_has_a_budget() {
    let megabyte = "x".repeat(1 << 20);
    let maker = (0..9).fold(Maker::default(), |maker, at| maker.text(&format!("t{at}"), &megabyte));
    assert!(matches!(read(&maker.bytes()), Err(GgufError::TooLarge("the texts in it"))));
    // A text too long to keep is passed over.
    let header = read(&Maker::default().text("long", &"x".repeat((1 << 20) + 1)).bytes()).unwrap();
    assert_eq!(header.value("long"), Some(&Value::Passed((1 << 20) + 1)));
    // A header beyond the limit, in a file that has it all.
    let endless = Maker::default().raw("x", 8, &(HEADER + 1).to_le_bytes()).bytes();
    let error = Header::read(endless.as_slice().chain(io::repeat(0)), u64::MAX).unwrap_err();
    assert!(matches!(error, GgufError::TooLarge("it has over 256 MiB")), "{error}");
}

#[test]
fn only_regular_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo.gguf");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(Header::open(&fifo), Err(GgufError::NotGguf)));
    assert!(matches!(Header::open(dir.path()), Err(GgufError::NotGguf)));
    assert!(matches!(Header::open(&dir.path().join("no")), Err(GgufError::Io(_))));
}
