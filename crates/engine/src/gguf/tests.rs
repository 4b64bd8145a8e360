//! Headers made by hand: whole, cut anywhere, and hostile.

use std::collections::BTreeMap;

use super::{
    header_builder::{HeaderBuilder, append_string},
    *,
};

/// Something of every type.
fn whole() -> HeaderBuilder {
    let mut tokens = Vec::new();
    for token in ["a", "", "longer token"] {
        append_string(&mut tokens, token);
    }
    let mut nested = Vec::new();
    for _ in 0..2 {
        nested.extend(4_u32.to_le_bytes());
        nested.extend(1_u64.to_le_bytes());
        nested.extend(7_u32.to_le_bytes());
    }
    HeaderBuilder::default()
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

/// Reads all values.
fn read_all(bytes: &[u8]) -> Result<Header, GgufError> {
    Header::read_all(bytes, bytes.len() as u64, |_| Ok::<_, GgufError>(()))
}

#[test]
fn a_whole_header() {
    for version in [2, 3] {
        let builder = whole();
        let mut bytes = builder.bytes_with(version, 2, builder.count);
        bytes.extend([0; 100]); // the weights
        let header = read(&bytes).unwrap();
        assert_eq!(header.version, version);
        assert_eq!(header.string("general.architecture"), Some("llama"));
        assert_eq!(header.unsigned("llama.block_count"), Some(2));
        assert_eq!(header.value("i8"), Some(&Value::Integer(-1)));
        assert_eq!(header.unsigned("i8"), None);
        assert_eq!(header.value("f32"), Some(&Value::Float(1.5)));
        assert_eq!(header.value("bool"), Some(&Value::Bool(true)));
        assert_eq!(header.unsigned("u64"), Some(u64::MAX));
        assert_eq!(header.value("tokenizer.ggml.tokens"), Some(&Value::Skipped(3)));
        assert_eq!(header.per_layer("heads", 2), Some(vec![3, 4]));
        assert_eq!(header.per_layer("llama.block_count", 3), Some(vec![2, 2, 2]));
        assert_eq!(header.value("scores"), Some(&Value::Skipped(3000)));
        assert_eq!(header.elements, BTreeMap::from([(12, 32), (0, 3)]));
    }
}

#[test]
fn a_header_that_is_cut_anywhere_is_an_error() {
    let bytes = whole().bytes();
    for end in 0..bytes.len() {
        let error = read(&bytes[..end]).unwrap_err();
        let right =
            if end < 4 { matches!(error, GgufError::NotGguf) } else { matches!(error, GgufError::Truncated) };
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
            header.keys().for_each(|key| drop(header.per_layer(key, u64::MAX)));
        }
        drop(read_all(&bytes));
    }
}

#[test]
fn hostile_numbers_are_refused_before_they_cost_anything() {
    let huge = u64::MAX.to_le_bytes();
    let long_text = |length: u64| HeaderBuilder::default().raw("x", 8, &length.to_le_bytes()).bytes();
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
        HeaderBuilder::default().list("deep", 9, 1, &bytes).bytes()
    };
    for (bytes, expect) in [
        (b"GGUF".to_vec(), "it ends in the middle of its header"),
        (b"<!DOCTYPE html>".to_vec(), "it is not a GGUF file"),
        (Vec::new(), "it is not a GGUF file"),
        (
            HeaderBuilder::default().bytes_with(1, 0, 0),
            "it is a GGUF file of version 1; versions 2 and 3 can be read",
        ),
        (
            HeaderBuilder::default().bytes_with(3 << 24, 0, 0),
            "it was made for a machine with another byte order",
        ),
        (
            HeaderBuilder::default().bytes_with(3, 0, u64::MAX),
            "its header is larger than any model needs: the number of entries",
        ),
        (
            HeaderBuilder::default().bytes_with(3, u64::MAX, 0),
            "its header is larger than any model needs: the number of tensors",
        ),
        (HeaderBuilder::default().bytes_with(3, 0, 60_000), "it ends in the middle of its header"),
        (key, "its header is broken: a key is longer than 65535 bytes"),
        (long_text(u64::MAX), "it ends in the middle of its header"),
        (long_text(1 << 19), "it ends in the middle of its header"),
        (HeaderBuilder::default().list("x", 8, u64::MAX, &[]).bytes(), "it ends in the middle of its header"),
        (
            HeaderBuilder::default().list("x", 10, u64::MAX, &[]).bytes(),
            "its header is broken: a list has more elements than bytes",
        ),
        (
            HeaderBuilder::default().list("x", 10, 1 << 61, &[]).bytes(),
            "its header is broken: a list has more elements than bytes",
        ),
        (HeaderBuilder::default().list("x", 4, 1 << 50, &[]).bytes(), "it ends in the middle of its header"),
        (
            HeaderBuilder::default().list("x", 13, 1, &[]).bytes(),
            "its header is broken: a list has a type that does not exist",
        ),
        (
            HeaderBuilder::default().raw("x", 13, &[]).bytes(),
            "its header is broken: a value has a type that does not exist",
        ),
        (deep, "its header is broken: lists within lists within lists"),
        (
            HeaderBuilder::default().u32("x", 1).u32("x", 1).bytes(),
            "its header is broken: a key is there twice",
        ),
        (
            HeaderBuilder::default().tensor(&[u64::MAX, 2], 0).bytes(),
            "its header is broken: a tensor has more numbers than can be counted",
        ),
        (
            HeaderBuilder::default().tensor(&[u64::MAX], 0).tensor(&[1], 0).bytes(),
            "its header is broken: a tensor has more numbers than can be counted",
        ),
        (
            HeaderBuilder::default().tensor(&[1; 9], 0).bytes(),
            "its header is broken: a tensor has more than eight dimensions",
        ),
        (
            HeaderBuilder::default().tensor(&[1], 5000).bytes(),
            "its header is broken: a tensor has a type that does not exist",
        ),
    ] {
        assert_eq!(read(&bytes).unwrap_err().to_string(), expect);
    }
}

#[test]
fn what_is_kept_has_a_budget() {
    let megabyte = "x".repeat(1 << 20);
    let builder =
        (0..9).fold(HeaderBuilder::default(), |builder, at| builder.text(&format!("t{at}"), &megabyte));
    assert!(matches!(read(&builder.bytes()), Err(GgufError::TooLarge("the texts and lists in it"))));
    // A text too long to keep is passed over.
    let header = read(&HeaderBuilder::default().text("long", &"x".repeat((1 << 20) + 1)).bytes()).unwrap();
    assert_eq!(header.value("long"), Some(&Value::Skipped((1 << 20) + 1)));
    // A header beyond the limit, in a file that has it all.
    let endless = HeaderBuilder::default().raw("x", 8, &(MAX_HEADER_BYTES + 1).to_le_bytes()).bytes();
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

#[test]
fn a_file_that_is_cut_in_its_data_lacks_bytes() {
    let builder = HeaderBuilder::default().text("general.architecture", "x").tensor(&[256, 10], 23);
    let header = builder.bytes();
    let whole = header.len().next_multiple_of(32) as u64 + 1360;
    for (length, missing) in [(whole, 0), (whole + 9, 0), (whole - 1, 1), (whole - 1360, 1360)] {
        let read = Header::read(header.as_slice(), length).unwrap();
        assert_eq!(read.missing_bytes(), missing, "{length}");
    }
    let bytes = builder.u32("general.alignment", 0).bytes();
    assert_eq!(Header::read(bytes.as_slice(), bytes.len() as u64).unwrap().data_start(), None);
    // Nothing is known of a type that does not exist yet, and of a file without tensors.
    let bytes = HeaderBuilder::default().tensor(&[256, 10], 77).bytes();
    assert_eq!(Header::read(bytes.as_slice(), bytes.len() as u64).unwrap().missing_bytes(), 0);
    let huge = HeaderBuilder::default().tensor(&[u64::MAX], 0).bytes();
    assert!(Header::read(huge.as_slice(), huge.len() as u64).unwrap().missing_bytes() > 1 << 60);
}
