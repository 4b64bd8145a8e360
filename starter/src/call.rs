//! Holds an answer to one tool call of the right form, or to text.
//!
//! The first bytes of an answer say which of the two it is. A call in the middle of an answer is text, so nothing that
//! the model reads and repeats becomes a call.

use kontekst_engine::{Constraint as _, grammar::Grammar};

use crate::{
    Tool,
    byte_rules::ByteRules,
    copy::{ArgumentKinds, CopyRules, CopyState},
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

/// Holds a call to the schema of its tool, and its arguments to the request.
pub(crate) struct CallRules {
    tools: Vec<ToolRules>,
    copy: Option<CopyRules>,
}

struct ToolRules {
    name: Vec<u8>,
    schema: Grammar,
    arguments: ArgumentKinds,
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
    /// In an answer that is text.
    Text(Vec<u8>),
    /// In a call of an unknown tool, or in another form of a call. Whoever reads the answer decides what it means.
    Free,
}

#[derive(Clone)]
pub(crate) struct Arguments {
    /// The index of the tool.
    tool: usize,
    schema: Grammar,
    copy: CopyState,
}

impl CallRules {
    /// With `copy`, arguments are held to the request.
    pub(crate) fn new(tools: &[Tool<'_>], copy: Option<CopyRules>) -> Self {
        let tools = tools.iter().map(|tool| ToolRules {
            name: tool.name.as_bytes().to_vec(),
            schema: Grammar::object(tool.parameters),
            arguments: tool.copy.iter().map(|(name, kind)| (name.as_bytes().to_vec(), *kind)).collect(),
        });
        Self { tools: tools.collect(), copy }
    }

    fn text(&self, text: &[u8], byte: u8) -> Option<CallState> {
        let text = [text, &[byte]].concat();
        let allowed = self.copy.as_ref().is_none_or(|copy| copy.may_answer(&text, false));
        allowed.then_some(CallState::Text(text))
    }

    fn arguments(&self, mut arguments: Arguments, byte: u8) -> Option<CallState> {
        if arguments.schema.is_complete() {
            return self.step(CallState::AfterArguments(0), byte);
        }
        if !arguments.schema.advance(&[byte]) {
            return None;
        }
        if let Some(copy) = &self.copy {
            arguments.copy = copy.step(&self.tools[arguments.tool].arguments, arguments.copy, byte)?;
        }
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
                Expected::Other => self.text(&TAG.as_bytes()[..read], byte)?,
            },
            CallState::BeforeName(read) => match expect(BEFORE_NAME, read, byte) {
                Expected::More => CallState::BeforeName(read + 1),
                Expected::Last => CallState::Name(Vec::new()),
                Expected::Other => CallState::Free,
            },
            CallState::Name(name) if byte == b'"' => {
                match self.tools.iter().rposition(|tool| tool.name == name) {
                    Some(tool) => CallState::BeforeArguments(tool, 0),
                    None => CallState::Free,
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
                Expected::Other => CallState::Free,
            },
            CallState::Arguments(arguments) => self.arguments(arguments, byte)?,
            CallState::AfterArguments(read) => match expect(AFTER_ARGUMENTS, read, byte) {
                Expected::More => CallState::AfterArguments(read + 1),
                Expected::Last => CallState::Complete,
                Expected::Other => return None,
            },
            CallState::Complete => return None,
            CallState::Text(text) => self.text(&text, byte)?,
            CallState::Free => CallState::Free,
        })
    }

    fn may_end(&self, state: &CallState) -> bool {
        match state {
            CallState::Arguments(..) | CallState::AfterArguments(_) => false,
            CallState::Text(text) => self.copy.as_ref().is_none_or(|copy| copy.may_answer(text, true)),
            _ => true,
        }
    }

    fn is_complete(&self, state: &CallState) -> bool {
        matches!(state, CallState::Complete)
    }

    fn penalty(&self, state: &CallState) -> f32 {
        match state {
            CallState::Arguments(arguments) => arguments.copy.penalty(),
            _ => 0.0,
        }
    }
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

    fn call() -> RuleConstraint<CallRules> {
        let parameters = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}}});
        let tool = Tool { name: "read_file", parameters: &parameters, copy: Vec::new() };
        RuleConstraint::new(CallRules::new(&[tool], None))
    }

    fn read(text: &str) -> (usize, bool, bool) {
        read_by(call(), text)
    }

    /// Returns how many bytes of `text` are allowed, whether the answer may end there, and whether it is complete.
    fn read_by(mut call: RuleConstraint<CallRules>, text: &str) -> (usize, bool, bool) {
        let read = text.bytes().take_while(|&byte| {
            let allowed = call.allows(&[byte]);
            call.push(&[byte]);
            allowed
        });
        let read = read.count();
        (read, call.may_end(), call.is_complete())
    }

    #[test]
    fn a_call_is_whole_and_fits_its_tool() {
        let good = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a}\\\"\", \"line\": 3}}\n</tool_call>";
        assert_eq!(read(good), (good.len(), true, true));
        assert_eq!(read(&format!("{good}\n")), (good.len(), true, true));
        let begun = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": ";
        for (arguments, allowed) in [
            ("{}", "{"),
            ("{\"content\"", "{\""),
            ("{\"path\": 3", "{\"path\": "),
            ("{\"path\": \"a\"},", "{\"path\": \"a\"}"),
        ] {
            assert_eq!(
                read(&format!("{begun}{arguments}")),
                (begun.len() + allowed.len(), false, false),
                "{arguments}"
            );
        }
    }

    #[test]
    fn what_is_no_call_of_a_known_tool_is_free() {
        for text in [
            "Here is a file.",
            "",
            "<tool",
            "<tool_box> {\"path\": 3",
            "x <tool_call>\n{\"name\": \"read_file\", \"arguments\": [1,,",
            "<tool_call>\n{\"name\": \"other\", \"arguments\": [1,,",
            "<tool_call>{\"name\":\"read_file\",\"arguments\":[1,,",
        ] {
            assert_eq!(read(text), (text.len(), true, false), "{text}");
        }
    }

    #[test]
    fn a_line_of_the_request_is_given_as_it_is() {
        let copy = || CopyRules::new("one\nonce more\n\nwhat is on line 2?");
        for (text, expected) in [
            ("The second line is: once more", (29, true, false)),
            ("The second line is: once", (24, false, false)),
            ("The second line is: one", (22, false, false)),
            ("<o", (2, true, false)),
        ] {
            assert_eq!(read_by(RuleConstraint::new(CallRules::new(&[], copy())), text), expected, "{text}");
        }
    }
}
