//! A conversation as the text that a model was trained to go on with: its own chat template, out of its file.

mod guard;
mod jinja;
mod traits;

use std::{borrow::Cow, collections::HashMap};

use minijinja::{Value, context, value::Serde};

pub use self::{
    guard::{Guard, Piece},
    traits::Traits,
};
use self::{jinja::Jinja, traits::System};
use crate::{
    core::{Message, ToolDef},
    provider::{
        ToolRole,
        chat::{
            messages::{self, Dialect},
            openai_types, prompted,
        },
    },
};

/// For models without a template, and where theirs cannot be understood. Source: the form that most models
/// have seen, ChatML.
const PLAIN: &str = "\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{{- '<|im_start|>assistant\\n' -}}";

/// What the metadata of a model file say about its prompts.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// `tokenizer.chat_template`.
    pub template: Option<String>,
    /// Text of the tokens, as templates write them.
    pub bos: String,
    pub eos: String,
    /// Texts of the tokens that steer the model.
    pub control: Vec<String>,
}

/// A model's chat template.
pub struct Template {
    jinja: Jinja,
    bos: String,
    eos: String,
    guard: Guard,
    traits: Traits,
}

/// What is rendered.
#[derive(Clone, Copy)]
pub struct Conversation<'a> {
    pub system: &'a str,
    /// Oldest first.
    pub messages: &'a [Message],
    pub tools: &'a [ToolDef],
    pub tool_role: ToolRole,
}

/// A conversation, ready to be turned into tokens by [`Guard::pieces`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// It ends within `<think>`: what comes first is a thought.
    pub thinking: bool,
}

impl Template {
    /// Compiles the model's template and finds out what it can do. One that does not work is replaced by a
    /// plain one, with a word in the log.
    pub fn new(source: Source) -> Self {
        let guard = Guard::new(source.control);
        let make = |text: &str| {
            let jinja = Jinja::new(text)?;
            let template = Self {
                jinja,
                bos: source.bos.clone(),
                eos: source.eos.clone(),
                guard: guard.clone(),
                traits: Traits::default(),
            };
            let traits = Traits::find(&|messages, tools, objects| template.raw(messages, tools, objects))?;
            Ok::<_, String>(Self { traits, ..template })
        };
        let own = source.template.as_deref().map(make);
        match own {
            Some(Ok(template)) => template,
            own => {
                if let Some(Err(error)) = own {
                    tracing::warn!(error, "the model's chat template cannot be used; a plain one stands in");
                }
                make(PLAIN).expect("it is ours and renders every conversation")
            }
        }
    }

    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Renders a conversation up to where the model goes on. The same conversation gives the same bytes, and
    /// templates that are made so give a longer one the bytes of a shorter one to begin with.
    ///
    /// # Errors
    ///
    /// What the template says of a conversation that it refuses in every form.
    pub fn render(&self, conversation: Conversation<'_>) -> Result<Rendered, String> {
        let first = self.in_form(conversation, self.prompted(conversation.tool_role));
        // Some templates know tools in general and still refuse some conversations with them.
        let text = first.or_else(|error| self.in_form(conversation, true).map_err(|_| error))?;
        let thinking = text.trim_end().ends_with("<think>");
        Ok(Rendered { text, thinking })
    }

    /// Whether tools are told and called in plain text, because the template knows none.
    fn prompted(&self, role: ToolRole) -> bool {
        role != ToolRole::Native && !self.traits.native()
    }

    fn in_form(&self, conversation: Conversation<'_>, prompted: bool) -> Result<String, String> {
        let Conversation { system, messages, tools, tool_role } = conversation;
        let dialect = Dialect {
            tool_role: tool_role != ToolRole::Text && !prompted,
            calls_as_text: prompted,
            system_role: self.traits.system != System::Refused,
            reasoning: true,
            short_ids: true,
        };
        let system = match prompted && !tools.is_empty() {
            true => Cow::Owned(prompted::system_with_tools(system, tools)),
            false => Cow::Borrowed(system),
        };
        let messages = messages::to_wire(&system, messages, dialect);
        self.raw(&messages, if prompted { &[] } else { tools }, self.traits.objects)
    }

    fn raw(
        &self,
        messages: &[openai_types::Message<'_>],
        tools: &[ToolDef],
        objects: bool,
    ) -> Result<String, String> {
        let tools = (!tools.is_empty()).then(|| Value::from(Serde(messages::tools(tools))));
        let context = context! {
            messages => self.guard.mark_all(&values(messages, objects)),
            tools => tools.map(|tools| self.guard.mark_all(&tools)),
            documents => (),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        self.jinja.render(context)
    }
}

/// The messages as templates read them. `objects` says that arguments are not text but what it stands for.
fn values(messages: &[openai_types::Message<'_>], objects: bool) -> Value {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut list = Vec::with_capacity(messages.len());
    for message in messages {
        let mut fields: Vec<(&str, Value)> =
            vec![("role", message.role.into()), ("content", Value::from(&*message.content))];
        if let Some(reasoning) = message.reasoning_content {
            fields.push(("reasoning_content", reasoning.into()));
        }
        if !message.tool_calls.is_empty() {
            let calls = message.tool_calls.iter().map(|call| {
                names.insert(&call.id, call.function.name);
                let text = &*call.function.arguments;
                let parsed = objects.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
                context! {
                    id => &*call.id,
                    type => call.r#type,
                    function => context! {
                        name => call.function.name,
                        arguments => parsed.unwrap_or_else(|| text.into()),
                    },
                }
            });
            fields.push(("tool_calls", calls.collect()));
        }
        if let Some(id) = message.tool_call_id.as_deref() {
            fields.push(("tool_call_id", id.into()));
            fields.extend(names.get(id).map(|name| ("name", Value::from(*name))));
        }
        list.push(Value::from_pairs(fields));
    }
    list.into()
}

#[cfg(test)]
mod tests;
