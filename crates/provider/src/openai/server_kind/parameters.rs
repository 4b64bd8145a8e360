//! The number of parameters of a model, where a server tells.

use serde_json::{Value, json};

use super::{ServerKind, listed_model, question::Questions};

/// Asks for the number of parameters of a model. `None` if the server does not tell.
pub(in crate::openai) fn parameters(kind: ServerKind, questions: Questions<'_>, model: &str) -> Option<u64> {
    match kind {
        ServerKind::LlamaCpp => {
            let models = questions.get("/v1/models")?;
            listed_model(models["data"].as_array()?, model)?["meta"]["n_params"].as_u64()
        }
        ServerKind::Ollama => {
            let shown = questions.post("/api/show", &json!({"model": model}))?;
            let exact = shown["model_info"]["general.parameter_count"].as_u64();
            exact.or_else(|| rounded(&shown["details"]["parameter_size"]))
        }
        ServerKind::LmStudio | ServerKind::Vllm | ServerKind::LlamaSwap | ServerKind::Other => None,
    }
}

/// Reads a count such as "1.5B" or "494.03M".
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count is no longer exact once it is rounded"
)]
fn rounded(size: &Value) -> Option<u64> {
    let size = size.as_str()?.trim();
    let (number, factor) = match size.char_indices().next_back()? {
        (at, 'K' | 'k') => (&size[..at], 1e3),
        (at, 'M' | 'm') => (&size[..at], 1e6),
        (at, 'B' | 'b') => (&size[..at], 1e9),
        (at, 'T' | 't') => (&size[..at], 1e12),
        _ => return None,
    };
    let count = number.parse::<f64>().ok()? * factor;
    (count.is_finite() && count > 0.0).then_some(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_counts_are_read_with_their_unit() {
        for (text, count) in [
            ("1.5B", Some(1_500_000_000)),
            ("494.03M", Some(494_030_000)),
            ("7b", Some(7_000_000_000)),
            ("8x7B", None),
            ("-1B", None),
            ("12", None),
            ("", None),
            ("infB", None),
        ] {
            assert_eq!(rounded(&Value::from(text)), count, "{text}");
        }
    }
}
