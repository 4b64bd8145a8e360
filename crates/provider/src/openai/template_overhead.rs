//! Measures how many tokens a model's chat template adds to the texts of a prompt.

use std::time::Duration;

use serde_json::{Value, json};

use kontekst_core::Cancel;

use super::http::ServerClient;

/// The time limit for one request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The tokens that a chat template adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TemplateOverhead {
    /// Added once to each prompt.
    fixed: u32,
    /// Added to each message.
    message: u32,
}

impl TemplateOverhead {
    /// Measures the overhead with a prompt of one message and a prompt of three, where each message is a text of one
    /// token. Returns `None` if the server cannot count whole prompts.
    pub(super) fn measure(client: &ServerClient, model: &str, cancel: &Cancel) -> Option<Self> {
        let count = |messages: Value| count_prompt(client, model, &messages, cancel);
        let (user, assistant) =
            (json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "a"}));
        let one = count(json!([user]))?;
        let three = count(json!([user, assistant, user]))?;
        let message = (three.checked_sub(one)? / 2).checked_sub(1)?;
        Some(Self { fixed: one.checked_sub(1 + message)?, message })
    }

    /// Returns the overhead of a prompt with `messages` messages.
    pub(super) fn for_messages(self, messages: usize) -> u32 {
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        self.message.saturating_mul(messages).saturating_add(self.fixed)
    }
}

/// Counts the tokens of a whole prompt. A server without an endpoint for that renders the prompt, which is then
/// tokenized.
fn count_prompt(client: &ServerClient, model: &str, messages: &Value, cancel: &Cancel) -> Option<u32> {
    let ask = |path: &str, body: &Value| -> Option<Value> {
        let (status, body) = client.request(path, Some(body.to_string().as_bytes()), cancel, TIMEOUT).ok()?;
        (status == 200).then(|| serde_json::from_slice(&body).ok())?
    };
    let request = json!({"model": model, "messages": messages});
    let counted = match ask("/v1/chat/completions/input_tokens", &request) {
        Some(counted) => counted["input_tokens"].as_u64()?,
        None => {
            let rendered = ask("/apply-template", &request)?;
            let text = json!({
                "model": model, "content": rendered["prompt"].as_str()?,
                "add_special": true, "parse_special": true,
            });
            ask("/tokenize", &text)?["tokens"].as_array()?.len() as u64
        }
    };
    u32::try_from(counted).ok()
}
