//! Files that are cut, broken or made to do harm: each is an error, and takes neither time nor memory.

use crate::{
    Engine, EngineError, Limits, gguf::header_builder::HeaderBuilder, inference::random_model::RandomModel,
};

fn open(bytes: Vec<u8>) -> Result<Engine, EngineError> {
    Engine::from_bytes(bytes.leak(), Limits::default())
}

#[track_caller]
fn refused(bytes: Vec<u8>, why: &str) {
    let error = open(bytes).err().expect("it was opened");
    assert!(error.to_string().contains(why), "{error}");
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let whole = RandomModel::new("llama").bytes();
    let cuts = (0..400).chain((400..whole.len()).step_by(40_009));
    for cut in cuts {
        assert!(open(whole[..cut].to_vec()).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_header_with_any_byte_changed_is_read_or_refused() {
    let whole = RandomModel::new("llama").bytes();
    // After the header come the weights, for which all bytes are valid.
    let header = whole.windows(5).rposition(|bytes| bytes == b"blk.2").unwrap() + 60;
    let mut opened = 0;
    for at in (0..header).step_by(13) {
        for value in [0, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            match open(changed) {
                Ok(_) => opened += 1,
                Err(EngineError::Failed(what)) => panic!("byte {at} as {value}: {what}"),
                Err(_) => {}
            }
        }
    }
    assert!(opened > 0);
}

#[test]
fn what_is_no_model_is_refused_by_name() {
    refused(Vec::new(), "it is not a GGUF file");
    refused(b"GGML and nothing else that is known".to_vec(), "it is not a GGUF file");
    refused(b"GGUF\x09\0\0\0".to_vec(), "a GGUF file of version 9; versions 2 and 3 can be read");
    let error = open(RandomModel::new("mamba").bytes()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the model's architecture is mamba; the built-in engine knows llama, qwen2, qwen3, gemma3, phi3, lfm2"
    );
}

#[test]
fn a_type_of_tensors_that_cannot_be_run_is_named() {
    for (kind, name) in [(21, "IQ3_S"), (39, "MXFP4"), (77, "77")] {
        let file = HeaderBuilder::default().text("general.architecture", "llama").tensor(&[256], kind);
        refused(file.bytes(), &format!("tensors of type {name}, which blk.0.weight has"));
    }
}

/// A header of these entries, each a key, a type and what follows.
fn header(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (key, kind, value) in entries {
        bytes.extend((key.len() as u64).to_le_bytes());
        bytes.extend(key.as_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(*value);
    }
    bytes
}

#[test]
fn numbers_that_promise_more_than_the_file_holds_are_refused() {
    let huge = u64::MAX.to_le_bytes();
    let list = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    refused(header(&[("a", 8, &huge)]), "it ends in the middle");
    for kind in [0, 7] {
        refused(header(&[("a", 9, &list(kind, u64::MAX))]), "it ends in the middle");
    }
    for kind in [4, 6, 8] {
        refused(header(&[("a", 9, &list(kind, u64::MAX))]), "more elements than bytes");
    }
    refused(header(&[("a", 9, &list(4, 1 << 50))]), "it ends in the middle");
    refused(header(&[("a", 9, &list(9, 1))]), "a type that models do not use");
    refused([header(&[("a", 9, &list(9, 1))]), vec![0; 64]].concat(), "a type that models do not use");
    refused(header(&[("a", 77, &[])]), "a type that does not exist");
    // A list may take much more memory than bytes of the file.
    let many = [header(&[("a", 9, &list(0, 20 << 20))]), vec![0; 20 << 20]].concat();
    refused(many, "larger than any model needs");
    refused(header(&[("general.alignment", 4, &0_u32.to_le_bytes())]), "its alignment makes no sense");
}
