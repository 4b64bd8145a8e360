//! Holds an answer to one call of a tool that only reads, or to one of a few sentences.
//!
//! An answer in which the model begins to call another tool ends there: what such a call would write or change is not for
//! the model to decide.

use kontekst_engine::{Constraint as _, grammar::Grammar};

use crate::{
    Tool,
    byte_rules::ByteRules,
    copy::{CopiedArguments, CopyRules, CopyState},
    sentences::{ABILITIES, DECLINED, TOO_LONG},
};

/// The beginning of an answer that is a call.
pub(crate) const TAG: &str = "<tool_call>";

/// The text around the name and the arguments of a call, as the model was trained to write it.
const BEFORE_NAME: &[u8] = b"\n{\"name\": \"";
const BEFORE_ARGUMENTS: &[u8] = b", \"arguments\": ";
const AFTER_ARGUMENTS: &[u8] = b"}\n</tool_call>";

/// The beginning of a call up to where its arguments begin.
pub(crate) fn opening(name: &str) -> String {
    let name = serde_json::Value::from(name);
    format!("{TAG}\n{{\"name\": {name}, \"arguments\": ")
}

/// The sentences that the model may answer with.
const SENTENCES: [&str; 3] = [ABILITIES, DECLINED, TOO_LONG];

/// Holds a call to the schema of its tool, and its arguments to the request.
pub(crate) struct CallRules {
    /// The tools that only read.
    tools: Vec<ToolRules>,
    copy: CopyRules,
}

/// An answer of the model that is a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub name: &'a str,
    /// A JSON object.
    pub arguments: &'a str,
}

struct ToolRules {
    name: Vec<u8>,
    schema: Grammar,
    copied: CopiedArguments,
}

#[derive(Clone)]
pub(crate) enum CallState {
    /// In [`TAG`], of which this many bytes have come.
    Tag(usize),
    BeforeName(usize),
    Name(Vec<u8>),
    /// After the name of the tool with this index.
    BeforeArguments(usize, usize),
    Arguments(Arguments),
    AfterArguments(usize),
    Complete,
    /// After the name of a tool that the model may not call.
    Refused,
    /// In a sentence.
    Text(Vec<u8>),
}

#[derive(Clone)]
pub(crate) struct Arguments {
    /// The index of the tool.
    tool: usize,
    schema: Grammar,
    copy: CopyState,
}

impl CallRules {
    pub(crate) fn new(tools: &[Tool<'_>], copy: CopyRules) -> Self {
        let rules = |tool: &Tool<'_>| {
            let (name, schema) = (tool.name.as_bytes().to_vec(), Grammar::object(tool.parameters));
            tool.copied().map(|copied| ToolRules { name, schema, copied })
        };
        Self { tools: tools.iter().filter_map(rules).collect(), copy }
    }

    fn arguments(&self, mut arguments: Arguments, byte: u8) -> Option<CallState> {
        if arguments.schema.is_complete() {
            return self.step(CallState::AfterArguments(0), byte);
        }
        if !arguments.schema.advance(&[byte]) {
            return None;
        }
        arguments.copy = self.copy.step(self.tools[arguments.tool].copied, arguments.copy, byte)?;
        Some(CallState::Arguments(arguments))
    }
}

impl ByteRules for CallRules {
    type State = CallState;

    fn start(&self) -> CallState {
        CallState::Tag(0)
    }

    fn step(&self, state: CallState, byte: u8) -> Option<CallState> {
        Some(match state {
            CallState::Tag(read) => match expect(TAG.as_bytes(), read, byte) {
                Expected::More => CallState::Tag(read + 1),
                Expected::Last => CallState::BeforeName(0),
                Expected::Other => sentence(&TAG.as_bytes()[..read], byte)?,
            },
            CallState::BeforeName(read) => match expect(BEFORE_NAME, read, byte) {
                Expected::More => CallState::BeforeName(read + 1),
                Expected::Last => CallState::Name(Vec::new()),
                Expected::Other => return None,
            },
            CallState::Name(name) if byte == b'"' => {
                match self.tools.iter().rposition(|tool| tool.name == name) {
                    Some(tool) => CallState::BeforeArguments(tool, 0),
                    None => CallState::Refused,
                }
            }
            CallState::Name(mut name) => {
                name.push(byte);
                CallState::Name(name)
            }
            CallState::BeforeArguments(tool, read) => match expect(BEFORE_ARGUMENTS, read, byte) {
                Expected::More => CallState::BeforeArguments(tool, read + 1),
                Expected::Last => {
                    let schema = self.tools[tool].schema.clone();
                    CallState::Arguments(Arguments { tool, schema, copy: CopyState::default() })
                }
                Expected::Other => return None,
            },
            CallState::Arguments(arguments) => self.arguments(arguments, byte)?,
            CallState::AfterArguments(read) => match expect(AFTER_ARGUMENTS, read, byte) {
                Expected::More => CallState::AfterArguments(read + 1),
                Expected::Last => CallState::Complete,
                Expected::Other => return None,
            },
            CallState::Complete | CallState::Refused => return None,
            CallState::Text(text) => sentence(&text, byte)?,
        })
    }

    fn may_end(&self, state: &CallState) -> bool {
        match state {
            CallState::Text(text) => SENTENCES.iter().any(|sentence| sentence.as_bytes() == text),
            CallState::Complete | CallState::Refused => true,
            _ => false,
        }
    }

    fn is_complete(&self, state: &CallState) -> bool {
        matches!(state, CallState::Complete | CallState::Refused)
    }
}

/// Reads a call that these rules allowed. Returns `None` for any other answer.
pub(crate) fn call(answer: &str) -> Option<Call<'_>> {
    let rest = answer.strip_prefix(TAG)?.strip_prefix(str::from_utf8(BEFORE_NAME).ok()?)?;
    let rest = rest.strip_suffix(str::from_utf8(AFTER_ARGUMENTS).ok()?)?;
    let (name, rest) = rest.split_once('"')?;
    let arguments = rest.strip_prefix(str::from_utf8(BEFORE_ARGUMENTS).ok()?)?;
    Some(Call { name, arguments })
}

/// The state after `byte` in a sentence that has begun with `text`.
fn sentence(text: &[u8], byte: u8) -> Option<CallState> {
    let text = [text, &[byte]].concat();
    let known = SENTENCES.iter().any(|sentence| sentence.as_bytes().starts_with(&text));
    known.then_some(CallState::Text(text))
}

enum Expected {
    More,
    /// The text is complete with this byte.
    Last,
    /// Another byte was expected.
    Other,
}

/// Compares `byte` with what follows the first `read` bytes of `text`.
fn expect(text: &[u8], read: usize, byte: u8) -> Expected {
    match text.get(read) {
        Some(expected) if *expected == byte && read + 1 == text.len() => Expected::Last,
        Some(expected) if *expected == byte => Expected::More,
        _ => Expected::Other,
    }
}

#[cfg(test)]
mod tests {
    use kontekst_engine::Constraint as _;
    use serde_json::json;

    use super::*;
    use crate::byte_rules::RuleConstraint;

    fn rules() -> RuleConstraint<CallRules> {
        let parameters = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "start_line": {"type": "integer"}}});
        let tool = |name| Tool { name, parameters: &parameters, own: false };
        let copy = CopyRules::new("read a}.txt from line 3");
        RuleConstraint::new(CallRules::new(&[tool("read_file"), tool("write_file")], copy))
    }

    /// Returns how much of `text` is allowed, whether the answer may end there, and whether it is complete.
    fn read(text: &str) -> (&str, bool, bool) {
        let mut rules = rules();
        let read = text.bytes().take_while(|&byte| {
            let allowed = rules.allows(&[byte]);
            rules.push(&[byte]);
            allowed
        });
        let read = read.count();
        (&text[..read], rules.may_end(), rules.is_complete())
    }

    #[test]
    fn a_call_is_whole_and_fits_its_tool_and_the_request() {
        let good = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a}.txt\", \"start_line\": 3}}\n</tool_call>";
        assert_eq!(read(good), (good, true, true));
        let arguments = "{\"path\": \"a}.txt\", \"start_line\": 3}";
        assert_eq!(call(good), Some(Call { name: "read_file", arguments }));
        let begun = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": ";
        for (arguments, allowed) in [
            ("{}", "{"),
            ("{\"content\"", "{\""),
            ("{\"path\": 3", "{\"path\": "),
            ("{\"path\": \"txt", "{\"path\": \""),
            ("{\"path\": \"a}.txt\"},", "{\"path\": \"a}.txt\"}"),
        ] {
            let text = format!("{begun}{arguments}");
            assert_eq!(read(&text), (&*format!("{begun}{allowed}"), false, false));
            assert_eq!(call(&text), None);
        }
    }

    #[test]
    fn a_call_of_any_other_tool_ends_at_its_name() {
        for name in ["write_file", "edit_file", "other"] {
            let begun = format!("<tool_call>\n{{\"name\": \"{name}\"");
            assert_eq!(read(&format!("{begun}, \"arguments\"")), (&*begun, true, true));
            assert_eq!(call(&begun), None);
        }
    }

    #[test]
    fn a_text_is_a_known_sentence() {
        assert_eq!(read(DECLINED), (DECLINED, true, false));
        for (text, allowed) in [
            ("There are 3 lines.", "The"),
            ("The first line is: a", "The "),
            ("<tool_box>", "<tool_"),
            ("<tool_call>{", "<tool_call>"),
        ] {
            assert_eq!(read(text), (allowed, false, false));
        }
    }
}
