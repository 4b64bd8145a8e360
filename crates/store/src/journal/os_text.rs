//! Stores a path or another text of the system as text, or as its bytes if it is not UTF-8.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use serde::{Deserialize, Deserializer, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum OsText {
    Text(String),
    Bytes(Vec<u8>),
}

pub(super) fn serialize<S: Serializer>(text: &impl AsRef<OsStr>, serializer: S) -> Result<S::Ok, S::Error> {
    match text.as_ref().to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_seq(text.as_ref().as_bytes()),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(match OsText::deserialize(deserializer)? {
        OsText::Text(text) => OsString::from(text).into(),
        OsText::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}
