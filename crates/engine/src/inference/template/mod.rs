//! Chat templates: render a conversation as the text that the model was trained to continue.
//!
//! A template is Jinja out of the model file, written for Hugging Face's `transformers`.

mod guard;
mod jinja;
mod job;
#[cfg(any(test, feature = "test-support"))]
pub mod samples;
mod traits;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use minijinja::{Value, context, value::Serde};

use self::{
    guard::Guard,
    traits::{Case, Tools},
};
pub use self::{
    guard::Segment,
    job::{InThisProcess, Job, Outcome, Renderer, TemplateError},
    traits::Traits,
};
use crate::{
    Engine, Vocabulary,
    chat::{Message, Tool},
};

/// Is used for models without a template, and where theirs does not work. Source: ChatML, the form that most models
/// have seen.
const CHATML: &str = "\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{{- '<|im_start|>assistant\\n' -}}";

/// The metadata of a model file that concern its prompts.
#[derive(Clone, Debug, Default)]
pub struct TemplateSource {
    /// `tokenizer.chat_template`.
    pub template: Option<String>,
    /// The texts of the tokens that begin and end a text, as templates write them.
    pub bos: String,
    pub eos: String,
    /// The texts of all control tokens.
    pub control: Vec<String>,
}

/// A model's chat template.
pub struct Template {
    source: String,
    bos: String,
    eos: String,
    guard: Guard,
    traits: Traits,
}

/// The text of a prompt, which [`Template::tokenize`] turns into tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// The prompt ends with `<think>`, so the answer begins within a thought.
    pub begins_thought: bool,
}

impl TemplateSource {
    /// Takes the template and the control tokens out of a model.
    pub fn of(engine: &Engine) -> Self {
        let vocabulary = engine.vocabulary();
        let ids = 0..u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
        let text = |id: Option<u32>| id.map_or_else(String::new, |id| vocabulary.text(id).into_owned());
        // Some files do not mark the token that ends an answer as a control token.
        let is_control = |id: &u32| vocabulary.is_control(*id) || vocabulary.is_end(*id);
        let control = ids.filter(is_control).map(|id| vocabulary.text(id).into_owned());
        Self {
            template: engine.info().chat_template.clone(),
            bos: text(vocabulary.bos()),
            eos: text(vocabulary.eos()),
            control: control.filter(|text| vocabulary.id(text).is_some()).collect(),
        }
    }
}

impl Template {
    /// Finds out what a template supports. A template that does not work is replaced by ChatML, with a warning in the
    /// log.
    ///
    /// # Errors
    ///
    /// Any [`TemplateError`] except [`TemplateError::Refused`].
    pub fn new(source: TemplateSource, renderer: &dyn Renderer) -> Result<Self, TemplateError> {
        let TemplateSource { template, bos, eos, control } = source;
        let guard = Guard::new(control);
        let mut found =
            Self { source: template.unwrap_or_default(), bos, eos, guard, traits: Traits::default() };
        if !found.source.is_empty() {
            match found.probe(renderer) {
                Err(TemplateError::Refused(error)) => {
                    tracing::warn!(error, "the model's chat template cannot be used; ChatML is used instead");
                }
                other => return other.map(|traits| Self { traits, ..found }),
            }
        }
        CHATML.clone_into(&mut found.source);
        let traits = found.probe(renderer)?;
        Ok(Self { traits, ..found })
    }

    fn probe(&self, renderer: &dyn Renderer) -> Result<Traits, TemplateError> {
        Traits::probe(&|cases| self.expand(cases, renderer))
    }

    /// The features that the template supports.
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Renders a conversation up to where the model continues. The same conversation gives the same bytes. With
    /// templates that allow it, a longer conversation begins with the bytes of a shorter one.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Refused`] with the message of a template that refuses the conversation, or any other.
    pub fn render(
        &self,
        messages: &[Message<'_>],
        tools: &[Tool<'_>],
        renderer: &dyn Renderer,
    ) -> Result<Rendered, TemplateError> {
        let tools = match (tools, self.traits.empty_tools) {
            ([], false) => Tools::Absent,
            (tools, _) => Tools::List(tools),
        };
        let case = Case { messages, tools, argument_objects: self.traits.argument_objects };
        let mut outcomes = self.expand(&[case], renderer)?;
        let text = outcomes.pop().expect("one for each case").into_result()?;
        let begins_thought = text.trim_end().ends_with("<think>");
        Ok(Rendered { text, begins_thought })
    }

    /// Splits a rendered prompt into control tokens that the template wrote, and text.
    pub fn segments<'a>(&'a self, rendered: &str) -> Vec<Segment<'a>> {
        self.guard.segments(rendered)
    }

    /// Turns a rendered prompt into tokens. Control tokens come from the template and from nothing else: text that only
    /// looks like one stays text.
    pub fn tokenize(&self, vocabulary: &Vocabulary, rendered: &str) -> Vec<u32> {
        let mut encoder = vocabulary.encoder();
        for segment in self.segments(rendered) {
            match segment {
                Segment::Control(name) => {
                    vocabulary.id(name).into_iter().for_each(|id| encoder.push_token(id));
                }
                Segment::Text(text) => encoder.push_text(&text),
            }
        }
        encoder.into_prompt()
    }

    /// Renders each of some conversations.
    fn expand(&self, cases: &[Case<'_>], renderer: &dyn Renderer) -> Result<Vec<Outcome>, TemplateError> {
        let contexts = cases.iter().map(|case| self.context(case)).collect();
        let outcomes = renderer.run(&Job::new(&self.source, contexts))?;
        if outcomes.len() == cases.len() {
            return Ok(outcomes);
        }
        Err(TemplateError::Failed(format!("{} texts for {} conversations", outcomes.len(), cases.len())))
    }

    fn context(&self, case: &Case<'_>) -> Value {
        let tools = match case.tools {
            Tools::Absent => None,
            Tools::List(tools) => Some(self.guard.mark_all(&Value::from(Serde(tools)))),
        };
        context! {
            messages => self.guard.mark_all(&values(case.messages, case.argument_objects)),
            tools => tools,
            documents => (),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        }
    }
}

/// Converts messages to what templates read. With `argument_objects`, the arguments of calls are objects instead of
/// text.
fn values(messages: &[Message<'_>], argument_objects: bool) -> Value {
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
                let object = argument_objects.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
                context! {
                    id => &*call.id,
                    type => call.r#type,
                    function => context! {
                        name => call.function.name,
                        arguments => object.unwrap_or_else(|| text.into()),
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
