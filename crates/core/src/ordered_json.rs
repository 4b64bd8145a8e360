//! JSON whose objects keep the order in which their members were written, so that the arguments of a call are shown and
//! replayed as the model wrote them. `serde_json::Value` sorts members by name.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// A JSON object with its members in the order of the text. If a name occurs twice, the last value counts, as in
/// [`Value`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderedObject(pub Vec<(String, OrderedJson)>);

/// A JSON value. Objects within it keep their order as well.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OrderedJson {
    Object(OrderedObject),
    Array(Vec<OrderedJson>),
    /// Anything that is neither an object nor an array.
    Scalar(Value),
}

/// Collects members in their order. If a name occurs twice, the last value counts, at the place of the first.
impl FromIterator<(String, OrderedJson)> for OrderedObject {
    fn from_iter<I: IntoIterator<Item = (String, OrderedJson)>>(written: I) -> Self {
        let mut members: BTreeMap<String, (usize, OrderedJson)> = BTreeMap::new();
        for (name, value) in written {
            let next = members.len();
            let position = members.get(&name).map_or(next, |(position, _)| *position);
            members.insert(name, (position, value));
        }
        let mut members: Vec<_> =
            members.into_iter().map(|(name, (position, value))| (position, name, value)).collect();
        members.sort_by_key(|(position, ..)| *position);
        Self(members.into_iter().map(|(_, name, value)| (name, value)).collect())
    }
}

impl From<OrderedJson> for Value {
    fn from(value: OrderedJson) -> Self {
        match value {
            OrderedJson::Object(OrderedObject(members)) => {
                Self::Object(members.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
            OrderedJson::Array(values) => Self::Array(values.into_iter().map(Self::from).collect()),
            OrderedJson::Scalar(value) => value,
        }
    }
}

impl OrderedObject {
    /// Parses the text of an object. Returns `None` for anything else, and for values that are nested more than 128 deep.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the object with these members, or `None` if a name occurs twice.
    pub fn without_repeated_names(members: Vec<(String, OrderedJson)>) -> Option<Self> {
        let count = members.len();
        Some(members.into_iter().collect::<Self>()).filter(|object| object.0.len() == count)
    }
}

/// Writes the object on one line, without white space between its parts.
impl fmt::Display for OrderedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Writes the value on one line, without white space between its parts.
impl fmt::Display for OrderedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for OrderedObject {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for OrderedObject {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor)
    }
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = OrderedObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedObject, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members.into_iter().collect())
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = OrderedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OrderedJson, A::Error> {
        ObjectVisitor.visit_map(map).map(OrderedJson::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OrderedJson, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(OrderedJson::Array(values))
    }

    fn visit_unit<E>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Scalar(value.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_nothing_else_of_the_text_stays() {
        for (text, want) in [
            (
                "{\"z\": 1,\r\n \"a\" : {\"y\":[ {\"c\":null,\"b\":true} ],\"x\":-2.5}}",
                r#"{"z":1,"a":{"y":[{"c":null,"b":true}],"x":-2.5}}"#,
            ),
            (r#"{"b":1,"a":2,"b":{"d":1,"c":2,"d":3}}"#, r#"{"b":{"d":3,"c":2},"a":2}"#),
            ("{\"\\u0061\":\"\\n\\r\\u2028\"}", "{\"a\":\"\\n\\r\u{2028}\"}"),
            (
                r#"{"i":18446744073709551615,"n":-9223372036854775808}"#,
                r#"{"i":18446744073709551615,"n":-9223372036854775808}"#,
            ),
            ("{}", "{}"),
        ] {
            assert_eq!(OrderedObject::parse(text).unwrap().to_string(), want);
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(5_000_000), "]".repeat(5_000_000));
        for text in ["[]", "1", "", "{", "{\"a\":1} x", &deep] {
            assert!(OrderedObject::parse(text).is_none());
        }
    }
}
