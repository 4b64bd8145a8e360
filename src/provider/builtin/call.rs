//! The call of a model that knows its tools by heart, held to its form byte by byte.
//!
//! Such a model answers with one call or with text, and its first bytes say which. So nothing that it reads becomes a
//! call by being repeated: a call in the middle of an answer is text.

use std::collections::HashMap;

use super::{
    bytewise::Rules,
    grammar::Grammar,
    grounds::{At, Grounds},
};
use crate::{core::ToolDef, engine::Constraint as _};

/// What an answer begins with that is a call.
pub const TAG: &str = "<tool_call>";

/// What stands around the name and the arguments, as `prompted` writes a call.
const BEFORE_NAME: &[u8] = b"\n{\"name\": \"";
const BEFORE_ARGUMENTS: &[u8] = b", \"arguments\": ";
const BEHIND: &[u8] = b"}\n</tool_call>";

/// Holds arguments to the schema of their tool, and to the words of the request.
pub struct Call {
    /// By name.
    tools: HashMap<Vec<u8>, Grammar>,
    grounds: Option<Grounds>,
}

#[derive(Clone)]
pub enum State {
    /// So many bytes of [`TAG`] have come.
    Tag(usize),
    BeforeName(usize),
    Name(Vec<u8>),
    BeforeArguments(Grammar, usize),
    Arguments(Grammar, At),
    Behind(usize),
    Done,
    /// Text.
    Said(Vec<u8>),
    /// A tool that is not there, or another form of a call: what it means is for others to say.
    Free,
}

impl Call {
    /// `grounds` is where texts are copied from, by a model that has them from nowhere else.
    pub fn new(tools: &[ToolDef], grounds: Option<Grounds>) -> Self {
        let grammar = |tool: &ToolDef| (tool.name.clone().into_bytes(), Grammar::object(&tool.parameters));
        Self { tools: tools.iter().map(grammar).collect(), grounds }
    }

    /// Text that has come so far, and goes on.
    fn said(&self, said: &[u8], byte: u8) -> Option<State> {
        let said = [said, &[byte]].concat();
        let fine = self.grounds.as_ref().is_none_or(|grounds| grounds.may_say(&said, false));
        fine.then_some(State::Said(said))
    }
}

impl Rules for Call {
    type At = State;

    fn start(&self) -> State {
        State::Tag(0)
    }

    fn step(&self, state: State, byte: u8) -> Option<State> {
        Some(match state {
            State::Tag(read) => match next(TAG.as_bytes(), read, byte) {
                Next::More => State::Tag(read + 1),
                Next::Whole => State::BeforeName(0),
                Next::Other => self.said(&TAG.as_bytes()[..read], byte)?,
            },
            State::BeforeName(read) => match next(BEFORE_NAME, read, byte) {
                Next::More => State::BeforeName(read + 1),
                Next::Whole => State::Name(Vec::new()),
                Next::Other => State::Free,
            },
            State::Name(name) if byte == b'"' => match self.tools.get(&name) {
                Some(grammar) => State::BeforeArguments(grammar.clone(), 0),
                None => State::Free,
            },
            State::Name(mut name) => {
                name.push(byte);
                State::Name(name)
            }
            State::BeforeArguments(grammar, read) => match next(BEFORE_ARGUMENTS, read, byte) {
                Next::More => State::BeforeArguments(grammar, read + 1),
                Next::Whole => State::Arguments(grammar, At::default()),
                Next::Other => State::Free,
            },
            State::Arguments(grammar, _) if grammar.complete() => self.step(State::Behind(0), byte)?,
            State::Arguments(mut grammar, at) => {
                if !grammar.advance(&[byte]) {
                    return None;
                }
                let at = match &self.grounds {
                    Some(grounds) => grounds.step(at, byte)?,
                    None => at,
                };
                State::Arguments(grammar, at)
            }
            State::Behind(read) => match next(BEHIND, read, byte) {
                Next::More => State::Behind(read + 1),
                Next::Whole => State::Done,
                Next::Other => return None,
            },
            State::Done => return None,
            State::Said(said) => self.said(&said, byte)?,
            State::Free => State::Free,
        })
    }

    fn may_end(&self, state: &State) -> bool {
        match state {
            State::Arguments(..) | State::Behind(_) => false,
            State::Said(said) => self.grounds.as_ref().is_none_or(|grounds| grounds.may_say(said, true)),
            _ => true,
        }
    }

    fn doubt(&self, state: &State) -> f32 {
        match state {
            State::Arguments(_, at) => at.doubt(),
            _ => 0.0,
        }
    }

    fn complete(&self, state: &State) -> bool {
        matches!(state, State::Done)
    }
}

enum Next {
    More,
    Whole,
    Other,
}

/// What `byte` is behind the first `read` bytes of `text`.
fn next(text: &[u8], read: usize, byte: u8) -> Next {
    match text.get(read) {
        Some(expected) if *expected == byte && read + 1 == text.len() => Next::Whole,
        Some(expected) if *expected == byte => Next::More,
        _ => Next::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::bytewise::Bytewise, *};

    fn call() -> Bytewise<Call> {
        let parameters = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}}});
        Bytewise::new(Call::new(
            &[ToolDef { name: "read_file".to_owned(), description: "d".to_owned(), parameters }],
            None,
        ))
    }

    fn read(text: &str) -> (usize, bool, bool) {
        read_by(call(), text)
    }

    /// How many bytes of `text` are allowed, and whether the answer may end there, and whether it has.
    fn read_by(mut call: Bytewise<Call>, text: &str) -> (usize, bool, bool) {
        let read = text.bytes().take_while(|&byte| {
            let allowed = call.allows(&[byte]);
            call.push(&[byte]);
            allowed
        });
        let read = read.count();
        (read, call.may_end(), call.complete())
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
        let grounds = || Grounds::new("one\nonce more\n\nwhat is on line 2?");
        for (text, expected) in [
            ("The second line is: once more", (29, true, false)),
            ("The second line is: once", (24, false, false)),
            ("The second line is: one", (22, false, false)),
            ("<o", (2, true, false)),
        ] {
            assert_eq!(read_by(Bytewise::new(Call::new(&[], grounds())), text), expected, "{text}");
        }
    }
}
