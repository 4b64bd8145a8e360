//! Guesses what a chat template supports, from its text.
//!
//! A model server knows this exactly once it runs the template. This is for files that have not been loaded.

use super::gguf::Header;

/// The parts of a conversation that a template passes to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateSupport {
    /// Tool definitions.
    pub tools: bool,
    /// Results of tools, in a role of their own.
    pub tool_results: bool,
    /// The model's reasoning.
    pub reasoning: bool,
    /// A system message. Some templates refuse it.
    pub system: bool,
}

const KEY: &str = "tokenizer.chat_template";

impl TemplateSupport {
    /// Examines the template in a file header, together with its named variants such as `tool_use`.
    pub(crate) fn in_header(header: &Header) -> Option<Self> {
        let variants = header
            .keys()
            .filter(|key| key.strip_prefix(KEY).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
        let mut texts = variants.filter_map(|key| header.string(key));
        let first = Self::detect(texts.next()?);
        Some(texts.map(Self::detect).fold(first, |one, other| Self {
            tools: one.tools || other.tools,
            tool_results: one.tool_results || other.tool_results,
            reasoning: one.reasoning || other.reasoning,
            system: one.system || other.system,
        }))
    }

    /// Examines the text of a template.
    pub(crate) fn detect(text: &str) -> Self {
        let has = |word: &str| text.contains(word);
        let named = |role: &str| has(&format!("'{role}'")) || has(&format!("\"{role}\""));
        let refuses_system = text.to_lowercase().contains("system role not supported");
        // Templates that print `message.role` between their markers accept every role.
        let any_role = has("message['role'] +")
            || has("message.role +")
            || has("message[\"role\"] +")
            || has("{{ message.role }}")
            || has("{{message.role}}");
        Self {
            // `tools` as a variable: iterated, tested or printed.
            tools: ["in tools", "if tools", "tools is", "tools |", "tools|", "and tools"]
                .iter()
                .any(|use_of| has(use_of)),
            tool_results: named("tool") || named("ipython") || has("tool_response") || has("[TOOL_RESULTS]"),
            reasoning: has("reasoning_content")
                || has("<think>")
                || has("enable_thinking")
                || has(".thinking")
                || has("<|channel|>analysis"),
            system: !refuses_system && (named("system") || any_role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_templates() {
        let no = TemplateSupport::default();
        for (text, expect) in [
            ("", no),
            (
                "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']}}{% endfor %}",
                TemplateSupport { system: true, ..no },
            ),
            ("{{ raise_exception('System role not supported') }}{% if message['role'] == 'system' %}", no),
            (
                "{%- if tools %}{{ messages[0]['role'] == 'system' }}{% for tool in tools %}<tool_response>",
                TemplateSupport { tools: true, tool_results: true, system: true, ..no },
            ),
            (
                "{% if message.role == \"tool\" %}{{ message.reasoning_content }}",
                TemplateSupport { tool_results: true, reasoning: true, ..no },
            ),
            ("these are the tools of the trade", no),
        ] {
            assert_eq!(TemplateSupport::detect(text), expect, "{text}");
        }
    }
}
