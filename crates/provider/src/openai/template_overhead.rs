//! Measures how many tokens a model's chat template adds to the texts of a prompt.

use std::time::Duration;

use serde_json::{Value, json};

use kontekst_core::Cancel;

use super::{http::ServerClient, server_kind::Questions};

use crate::template_overhead::TemplateOverhead;

/// The time limit for one request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Measures the overhead of the model's chat template. Returns `None` if the server cannot count whole prompts.
pub(super) fn measure(client: &ServerClient, model: &str, cancel: &Cancel) -> Option<TemplateOverhead> {
    let questions = Questions { client, cancel, timeout: TIMEOUT };
    let count = |messages: Value| count_prompt(questions, model, &messages);
    let (user, assistant) =
        (json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "a"}));
    TemplateOverhead::of(count(json!([user]))?, count(json!([user, assistant, user]))?)
}

/// Counts the tokens of a whole prompt. A server without an endpoint for that renders the prompt, which is then
/// tokenized.
fn count_prompt(questions: Questions<'_>, model: &str, messages: &Value) -> Option<u32> {
    let request = json!({"model": model, "messages": messages});
    let counted = match questions.post("/v1/chat/completions/input_tokens", &request) {
        Some(counted) => counted["input_tokens"].as_u64()?,
        None => {
            let rendered = questions.post("/apply-template", &request)?;
            let text = json!({
                "model": model, "content": rendered["prompt"].as_str()?,
                "add_special": true, "parse_special": true,
            });
            questions.post("/tokenize", &text)?["tokens"].as_array()?.len() as u64
        }
    };
    u32::try_from(counted).ok()
}
