//! Finds out what a chat template supports, by rendering short conversations with it.

use std::borrow::Cow;

use serde_json::json;

use super::job::{Outcome, TemplateError};
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
    /// True if the template wants an empty list and not `none` in a conversation without tools.
    pub empty_tools: bool,
}

/// A conversation that a template is tried out with.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub messages: &'a [Message<'a>],
    pub tools: Tools<'a>,
    pub argument_objects: bool,
}

/// The tools of a conversation. Most templates take an empty list for none, and some want one.
#[derive(Clone, Copy)]
pub(super) enum Tools<'a> {
    Absent,
    List(&'a [Tool<'a>]),
}

/// Renders each of some conversations.
type Render<'a> = dyn Fn(&[Case<'_>]) -> Result<Vec<Outcome>, TemplateError> + 'a;

impl Traits {
    /// Tries out a template, with all conversations at once.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Refused`] for a template that refuses a conversation of one message, and any other error of
    /// `render` and of its outcomes.
    pub(super) fn probe(render: &Render<'_>) -> Result<Self, TemplateError> {
        let messages = [message("system", "the-system-text"), message("user", "the-question")];
        let parameters = json!({"type": "object", "properties": {}});
        let function = ToolFunction { name: "the_tool", description: "d", parameters: &parameters };
        let tools = [Tool { r#type: "function", function }];
        // Unusual white space tells arguments that were passed on as text from an object that was written anew.
        let (text, mark) = ("{\"k\" :  \"the-argument\"}", "the-argument");
        let call = call_and_result(text);
        let listed = Tools::List(&tools);
        let case = |messages, tools, argument_objects| Case { messages, tools, argument_objects };
        let outcomes = render(&[
            case(&messages[1..], Tools::Absent, false),
            case(&messages, Tools::Absent, false),
            case(&messages[1..], Tools::List(&[]), false),
            case(&messages, Tools::List(&[]), false),
            case(&messages[1..], listed, false),
            case(&messages, listed, false),
            case(&call, listed, false),
            case(&call, listed, true),
        ])?;
        let texts = outcomes.into_iter().map(refusal_apart).collect::<Result<Vec<_>, _>>()?;
        let found: [Result<String, String>; 8] = texts.try_into().expect("one for each case");
        let [without, system_without, empty, system_empty, defined, defined_with_system, as_text, as_object] =
            found;
        let empty_tools = without.is_err() && empty.is_ok();
        let (question, system) = if empty_tools { (empty, system_empty) } else { (without, system_without) };
        if !question.map_err(TemplateError::Refused)?.contains("the-question") {
            return Err(TemplateError::Refused("it leaves out what the user says".to_owned()));
        }
        let has =
            |text: &Result<String, String>, part: &str| text.as_ref().is_ok_and(|text| text.contains(part));
        let system_role = has(&system, "the-system-text");
        let argument_objects = !has(&as_text, text) && has(&as_object, mark);
        let with_call = if argument_objects { as_object } else { as_text };
        Ok(Self {
            system_role,
            tools: has(&defined, "the_tool") || system_role && has(&defined_with_system, "the_tool"),
            calls: has(&with_call, mark),
            results: has(&with_call, "the-result"),
            argument_objects,
            empty_tools,
        })
    }

    /// Returns true if the template has a form of its own for tools, calls and results.
    pub fn native_tools(self) -> bool {
        self.tools && self.calls && self.results
    }
}

/// Keeps the message of a template that refuses a conversation. That is no error while it is tried out.
fn refusal_apart(outcome: Outcome) -> Result<Result<String, String>, TemplateError> {
    match outcome.into_result() {
        Ok(text) => Ok(Ok(text)),
        Err(TemplateError::Refused(message)) => Ok(Err(message)),
        Err(other) => Err(other),
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
