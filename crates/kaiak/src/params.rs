//! Reads the parameters of a call field by field, and builds no more than is asked for. Pure.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{Code, RpcError, bad_field};

/// The largest text in one field, in bytes. Source: the seed's 1 MB of one file.
const MAX_TEXT: usize = 1024 * 1024;

/// The named fields of one JSON object. A field that is `null` counts as absent.
pub(super) struct Fields<'a, const N: usize> {
    names: [&'static str; N],
    values: [Option<&'a RawValue>; N],
}

impl<'a, const N: usize> Fields<'a, N> {
    /// Reads an object. Other fields than the named ones are ignored.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidParams`] if it is not an object.
    pub(super) fn read(json: Option<&'a str>, names: [&'static str; N]) -> Result<Self, RpcError> {
        let refused = |why: &str| Code::InvalidParams.with(serde_json::json!({"reason": why}));
        let json = json.filter(|json| json.starts_with('{')).ok_or_else(|| refused("params is an object"))?;
        let values = serde_json::Deserializer::from_str(json)
            .deserialize_map(FieldsVisitor(names))
            .map_err(|_| refused("params is an object that can be read"))?;
        Ok(Self { names, values })
    }

    /// Returns the JSON text of a field.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let at = self.names.iter().position(|known| *known == name)?;
        self.values[at].filter(|raw| raw.get() != "null")
    }

    /// Returns a string, if the field is there.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, RpcError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        if raw.get().len() > MAX_TEXT {
            return Err(bad_field(name, "is longer than 1 MiB"));
        }
        serde_json::from_str(raw.get()).map(Some).map_err(|_| bad_field(name, "is not a string"))
    }

    /// Returns a string that must be there and not be empty.
    pub(super) fn required_text(&self, name: &str) -> Result<String, RpcError> {
        match self.optional_text(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) => Err(bad_field(name, "is empty")),
            None => Err(bad_field(name, "is missing")),
        }
    }

    /// Returns a whole number from `min` to `max`, if the field is there.
    pub(super) fn optional_integer(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, RpcError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let number: Option<u64> = serde_json::from_str(raw.get()).ok();
        match number.filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(bad_field(name, format!("is not a whole number from {min} to {max}"))),
        }
    }

    /// Returns the JSON text of an object, if the field is there.
    pub(super) fn optional_object(&self, name: &str) -> Result<Option<&'a str>, RpcError> {
        match self.raw(name).map(RawValue::get) {
            Some(json) if !json.starts_with('{') => Err(bad_field(name, "is not an object")),
            json => Ok(json),
        }
    }
}

struct FieldsVisitor<const N: usize>([&'static str; N]);

impl<'de, const N: usize> Visitor<'de> for FieldsVisitor<N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [None; N];
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.0.iter().position(|name| *name == key) {
                Some(at) => values[at] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(values)
    }
}

/// Returns the first `max` items of an array, and how many there are in all.
///
/// # Errors
///
/// The text is not a JSON array.
pub(super) fn items(json: &str, max: usize) -> Result<(Vec<&RawValue>, usize), serde_json::Error> {
    serde_json::Deserializer::from_str(json).deserialize_seq(FirstItemsVisitor(max))
}

struct FirstItemsVisitor(usize);

impl<'de> Visitor<'de> for FirstItemsVisitor {
    type Value = (Vec<&'de RawValue>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < self.0 {
            match seq.next_element()? {
                Some(item) => first.push(item),
                None => return Ok((first.clone(), first.len())),
            }
        }
        let mut count = first.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok((first, count))
    }
}
