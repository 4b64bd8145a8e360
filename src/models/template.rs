//! What a chat template can do, judged by its text.
//!
//! The model server knows better once it runs the template; this is for a file that nobody has loaded yet.

use super::gguf::Header;

/// What reaches the model through its template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateSupport {
    /// Tool definitions.
    pub tools: bool,
    /// What tools gave, in a role of its own.
    pub tool_results: bool,
    /// It has a place for thoughts.
    pub reasoning: bool,
    /// A system text; some templates refuse it.
    pub system: bool,
}

const KEY: &str = "tokenizer.chat_template";

impl TemplateSupport {
    /// The template in a header; named variants (`tool_use`) count.
    pub fn in_header(header: &Header) -> Option<Self> {
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

    /// Judges a template.
    pub fn detect(text: &str) -> Self {
        let has = |word: &str| text.contains(word);
        let named = |role: &str| has(&format!("'{role}'")) || has(&format!("\"{role}\""));
        let refuses_system = text.to_lowercase().contains("system role not supported");
        // Templates that put `message.role` between their markers pass every role on.
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
