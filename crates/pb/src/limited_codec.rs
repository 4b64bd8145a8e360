//! The codec of all services: protobuf with a limit on the number of elements of one message.
//!
//! An empty element of a repeated field takes two bytes on the wire and about a hundred in memory, so a message of 12 MiB
//! would become several hundred. The elements are therefore counted before the message is decoded.

use std::{collections::HashMap, marker::PhantomData, sync::LazyLock};

use prost::{Message, Name, bytes::Buf as _};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder},
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// The maximum number of elements of all repeated fields of one message, nested ones included.
const MAX_ELEMENTS: usize = 500_000;

/// A message of so many bytes is within the limit: each element takes a byte for its key and one for its length or value.
/// Nearly all messages are, so that they are not counted and a client never reads the descriptors.
const ALWAYS_WITHIN_LIMIT: usize = 2 * MAX_ELEMENTS;

/// The maximum depth of nested messages that are counted. Deeper ones cannot be decoded.
const MAX_DEPTH: usize = 100;

/// Encodes `E` and decodes `D`.
pub struct LimitedCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for LimitedCodec<E, D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// Decodes `D`.
pub struct LimitedDecoder<D>(ProstDecoder<D>);

impl<E, D> Codec for LimitedCodec<E, D>
where
    E: Message + Send + 'static,
    D: Message + Name + Default + Send + 'static,
{
    type Encode = E;
    type Decode = D;
    type Encoder = ProstEncoder<E>;
    type Decoder = LimitedDecoder<D>;

    fn encoder(&mut self) -> ProstEncoder<E> {
        ProstCodec::<E, D>::default().encoder()
    }

    fn decoder(&mut self) -> LimitedDecoder<D> {
        LimitedDecoder(ProstCodec::<E, D>::default().decoder())
    }
}

impl<D: Message + Name + Default> Decoder for LimitedDecoder<D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        // The buffer of a message is one piece of memory.
        let message = buffer.chunk();
        if message.len() > ALWAYS_WITHIN_LIMIT && !SCHEMA.is_within_limit(&D::full_name(), message) {
            return Err(Status::invalid_argument(format!("a message has more than {MAX_ELEMENTS} elements")));
        }
        self.0.decode(buffer)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}

/// The fields of all messages of the services.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(super::DESCRIPTORS).expect("the build has encoded it");
    let mut schema = Schema::default();
    for file in files.file {
        let package = file.package().to_owned();
        schema.add(&package, file.message_type);
    }
    schema
});

/// The fields of messages that are repeated or are messages themselves, by the full name of the message and the number
/// of the field.
#[derive(Default)]
struct Schema(HashMap<String, HashMap<u64, Field>>);

struct Field {
    is_repeated: bool,
    /// The full name of the message that it holds.
    message: Option<String>,
}

impl Schema {
    fn add(&mut self, scope: &str, messages: Vec<DescriptorProto>) {
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            let fields = message.field.iter().filter_map(|field| {
                let number = u64::try_from(field.number()).ok()?;
                Some((number, Field::new(field)?))
            });
            self.0.insert(name.clone(), fields.collect());
            self.add(&name, message.nested_type);
        }
    }

    /// Returns false if the message has more than [`MAX_ELEMENTS`] elements. A message that cannot be decoded is counted
    /// up to the fault.
    fn is_within_limit(&self, message: &str, bytes: &[u8]) -> bool {
        let mut left = MAX_ELEMENTS;
        self.count(message, bytes, MAX_DEPTH, &mut left)
    }

    /// Subtracts the elements of a message from `left`. Returns false if there are more.
    fn count(&self, message: &str, bytes: &[u8], depth: usize, left: &mut usize) -> bool {
        let Some(fields) = self.0.get(message).filter(|_| depth > 0) else { return true };
        WireFields(bytes).all(|(number, value)| {
            let Some(field) = fields.get(&number) else { return true };
            if field.is_repeated {
                let Some(rest) = left.checked_sub(1) else { return false };
                *left = rest;
            }
            field.message.as_ref().is_none_or(|message| self.count(message, value, depth - 1, left))
        })
    }
}

impl Field {
    fn new(field: &FieldDescriptorProto) -> Option<Self> {
        let is_repeated = field.label() == Label::Repeated;
        let is_message = field.r#type() == Type::Message;
        let message = is_message.then(|| field.type_name().trim_start_matches('.').to_owned());
        (is_repeated || is_message).then_some(Self { is_repeated, message })
    }
}

/// Iterates over the fields of an encoded message: their numbers, and the bytes of those that have a length. Ends at the
/// first fault.
struct WireFields<'a>(&'a [u8]);

impl<'a> Iterator for WireFields<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => self.varint().map(|_| [].as_slice()),
            1 => self.take(8),
            2 => self.varint().and_then(|length| self.take(length)),
            5 => self.take(4),
            _ => None,
        };
        Some((key >> 3, value?))
    }
}

impl<'a> WireFields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let length = self.0.iter().take(10).position(|byte| *byte < 0x80)? + 1;
        let (varint, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(varint.iter().rev().fold(0, |value, byte| (value << 7) | u64::from(byte & 0x7f)))
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (value, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roz::{
        ContentPart, ConversationMessage, RegisterTools, SessionRequest, StartSession, ToolSchema,
        session_request::Request,
    };

    fn is_within_limit(request: Request) -> bool {
        let bytes = SessionRequest { request: Some(request) }.encode_to_vec();
        let is_within_limit = SCHEMA.is_within_limit(&SessionRequest::full_name(), &bytes);
        assert!(is_within_limit || bytes.len() > ALWAYS_WITHIN_LIMIT);
        is_within_limit
    }

    #[test]
    fn elements_of_all_depths_are_counted_before_they_are_decoded() {
        let history = |messages: usize, parts: usize| {
            let message =
                ConversationMessage { role: "user".to_owned(), parts: vec![ContentPart::default(); parts] };
            Request::Start(StartSession { history: vec![message; messages], ..StartSession::default() })
        };
        assert!(is_within_limit(history(10, 49_999)));
        assert!(!is_within_limit(history(10, 50_000)));
        let context = |blocks| {
            let project_context = vec![String::new(); blocks];
            Request::Start(StartSession { project_context, ..StartSession::default() })
        };
        assert!(is_within_limit(context(500_000)));
        assert!(!is_within_limit(context(500_001)));
        let list = prost_types::ListValue { values: vec![prost_types::Value::default(); 500_000] };
        let value = prost_types::Value { kind: Some(prost_types::value::Kind::ListValue(list)) };
        let parameters_schema = Some(prost_types::Struct { fields: [("a".to_owned(), value)].into() });
        let tools = vec![ToolSchema { parameters_schema, ..ToolSchema::default() }];
        assert!(!is_within_limit(Request::RegisterTools(RegisterTools {
            tools,
            ..RegisterTools::default()
        })));
    }

    #[test]
    fn damaged_messages_are_left_to_the_decoder() {
        for damaged in [&[0x0a, 0xff][..], &[0x80; 20], &[0x0b], &[0x0a, 0x02, 0x0a], &[0x0f]] {
            assert!(SCHEMA.is_within_limit(&SessionRequest::full_name(), damaged));
        }
        let mut nested = Vec::new();
        for _ in 0..100_000 {
            nested.extend([0x0a, 0xff, 0xff, 0x7f]);
        }
        assert!(SCHEMA.is_within_limit(&SessionRequest::full_name(), &nested));
    }
}
