//! Finds out what a chat template supports, by rendering short conversations with it.

use std::borrow::Cow;

use serde_json::json;

use crate::chat::{Call, CallFunction, Message, Tool, ToolFunction};

/// The features of conversations that a chat template supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// System messages. Where a template refuses or drops them, their text has to go into the first user message.
    pub system_role: bool,
    /// Definitions of tools.
    pub tools: bool,
    /// Tool calls.
    pub calls: bool,
    /// Results of tool calls.
    pub results: bool,
    /// The template wants the arguments of calls as objects, and not as text.
    pub argument_objects: bool,
}

/// Renders messages and tools. The last parameter says whether arguments are objects.
type Render<'a> = dyn Fn(&[Message<'_>], &[Tool<'_>], bool) -> Result<String, String> + 'a;

impl Traits {
    /// Tries out a template.
    ///
    /// # Errors
    ///
    /// The message of a template that refuses a conversation of one message.
    pub fn probe(render: &Render<'_>) -> Result<Self, String> {
        let question = render(&[message("user", "the-question")], &[], false)?;
        if !question.contains("the-question") {
            return Err("it leaves out what the user says".to_owned());
        }
        let system = [message("system", "the-system-text"), message("user", "the-question")];
        let system_role = render(&system, &[], false).is_ok_and(|text| text.contains("the-system-text"));

        let parameters = json!({"type": "object", "properties": {}});
        let function = ToolFunction { name: "the_tool", description: "d", parameters: &parameters };
        let tools = [Tool { r#type: "function", function }];
        let defines = |messages: &[Message<'_>]| {
            render(messages, &tools, false).is_ok_and(|text| text.contains("the_tool"))
        };
        let defines_tools = defines(&system[1..]) || system_role && defines(&system);

        // Unusual white space tells arguments that were passed on as text from an object that was written anew.
        let (text, mark) = ("{\"k\" :  \"the-argument\"}", "the-argument");
        let with_call = |objects| render(&call_and_result(text), &tools, objects).unwrap_or_default();
        let (as_text, as_object) = (with_call(false), with_call(true));
        let argument_objects = !as_text.contains(text) && as_object.contains(mark);
        let rendered = if argument_objects { as_object } else { as_text };
        Ok(Self {
            system_role,
            tools: defines_tools,
            calls: rendered.contains(mark),
            results: rendered.contains("the-result"),
            argument_objects,
        })
    }

    /// Returns true if the template has a form of its own for tools, calls and results.
    pub fn native_tools(self) -> bool {
        self.tools && self.calls && self.results
    }
}

fn message<'a>(role: &'static str, content: &'a str) -> Message<'a> {
    Message {
        role,
        content: Cow::Borrowed(content),
        reasoning_content: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

fn call_and_result(arguments: &str) -> [Message<'_>; 3] {
    const ID: &str = "a1b2c3d4e"; // Mistral's templates want nine letters and digits
    let function = CallFunction { name: "the_tool", arguments: Cow::Borrowed(arguments) };
    let call = Call { id: Cow::Borrowed(ID), r#type: "function", function };
    [
        message("user", "the-question"),
        Message { tool_calls: vec![call], ..message("assistant", "") },
        Message { tool_call_id: Some(Cow::Borrowed(ID)), ..message("tool", "the-result") },
    ]
}
