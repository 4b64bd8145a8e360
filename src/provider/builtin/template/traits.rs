//! What a chat template can do, found out by letting it render short conversations.

use std::borrow::Cow;

use serde_json::json;

use crate::{
    core::ToolDef,
    provider::chat::openai_types::{Call, CallFunction, Message},
};

/// What of a conversation reaches the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub system: System,
    /// Definitions of tools.
    pub tools: bool,
    /// Calls, in a form of the model's own.
    pub calls: bool,
    /// What tools gave, likewise.
    pub results: bool,
    /// Arguments are wanted as objects; otherwise as the text they came in.
    pub objects: bool,
    /// What was said before the last message of the user.
    pub history: bool,
}

/// What becomes of a system text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum System {
    #[default]
    Shown,
    /// The template refuses or drops it: it has to stand in the first message of the user.
    Refused,
    /// The model was made to do without it.
    LeftOut,
}

/// Renders messages and tools; the last says that arguments are objects.
type Render<'a> = dyn Fn(&[Message<'_>], &[ToolDef], bool) -> Result<String, String> + 'a;

impl Traits {
    /// Tries out a template.
    ///
    /// # Errors
    ///
    /// What it says when it refuses a conversation of one message.
    pub fn find(render: &Render<'_>) -> Result<Self, String> {
        let simple = render(&[said("user", "the-question")], &[], false)?;
        if !simple.contains("the-question") {
            return Err("it leaves out what the user says".to_owned());
        }
        let system = [said("system", "the-system-text"), said("user", "the-question")];
        let with_system = render(&system, &[], false);
        let shown = with_system.as_ref().is_ok_and(|text| text.contains("the-system-text"));

        let tools = [ToolDef {
            name: "the_tool".to_owned(),
            description: "d".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        }];
        let told = |messages: &[Message<'_>]| {
            render(messages, &tools, false).is_ok_and(|text| text.contains("the_tool"))
        };
        let told = told(&system[1..]) || shown && told(&system);

        // White space as nobody writes it tells a text that is passed on from an object that is written anew.
        let (text, mark) = ("{\"k\" :  \"the-argument\"}", "the-argument");
        let called = |objects| render(&called(text), &tools, objects).unwrap_or_default();
        let (as_text, as_object) = (called(false), called(true));
        let objects = !as_text.contains(text) && as_object.contains(mark);
        let rendered = if objects { as_object } else { as_text };
        let (calls, results) = (rendered.contains(mark), rendered.contains("the-result"));

        let dialogue = [
            said("user", "the-question"),
            said("assistant", "the-answer"),
            said("user", "the-next-question"),
        ];
        // What cannot be rendered is not left out on purpose.
        let history = render(&dialogue, &[], false).map_or(true, |text| text.contains("the-question"));
        let by_heart = calls && results && !told;
        let system = match with_system {
            _ if shown => System::Shown,
            Ok(_) if by_heart => System::LeftOut,
            _ => System::Refused,
        };
        Ok(Self { system, tools: told, calls, results, objects, history })
    }

    /// The model calls tools and reads their results without being told how: its template tells it, or it
    /// has learned its tools by heart.
    pub fn native(self) -> bool {
        self.calls && self.results
    }

    pub fn shows_system(self) -> bool {
        self.system != System::LeftOut
    }

    /// The template shows calls and their results and no definitions: the model knows its tools.
    pub fn by_heart(self) -> bool {
        self.native() && !self.tools
    }
}

fn said<'a>(role: &'static str, content: &'a str) -> Message<'a> {
    Message {
        role,
        content: Cow::Borrowed(content),
        reasoning_content: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

fn called(arguments: &str) -> [Message<'_>; 3] {
    const ID: &str = "a1b2c3d4e"; // Mistral's templates want nine letters and digits
    let function = CallFunction { name: "the_tool", arguments: Cow::Borrowed(arguments) };
    let call = Call { id: Cow::Borrowed(ID), r#type: "function", function };
    [
        said("user", "the-question"),
        Message { tool_calls: vec![call], ..said("assistant", "") },
        Message { tool_call_id: Some(Cow::Borrowed(ID)), ..said("tool", "the-result") },
    ]
}
