//! The end of an answer of the engine, and its errors, in the words of a [`Turn`](super::Turn).

use kontekst_engine::{DecodeError, EngineError, FinishReason as EngineFinish};

use super::{FinishReason, ProviderError, chat::CALL_LIMIT};

/// The finish reason of a turn whose answer ended like this.
pub(super) fn finish_reason(finish: EngineFinish) -> Result<FinishReason, ProviderError> {
    match finish {
        EngineFinish::EndOfAnswer | EngineFinish::ConstraintComplete => Ok(FinishReason::Stop),
        EngineFinish::Length => Ok(FinishReason::Length),
        EngineFinish::NoAllowedToken => Err(ProviderError::Engine(
            "the model's answer led nowhere: it fits neither the tool nor what was asked; say it in other words, or \
             ask a larger model (`kontekst models`)"
                .to_owned(),
        )),
    }
}

/// Converts an error of the engine. An answer is only broken off by its receiver if it makes too many calls.
pub(super) fn decode_error(error: &DecodeError) -> ProviderError {
    match error {
        DecodeError::Cancelled => ProviderError::Cancelled,
        DecodeError::SinkClosed => {
            ProviderError::Engine(format!("more than {CALL_LIMIT} tool calls in one answer"))
        }
        DecodeError::Engine(EngineError::TooLong { prompt, context }) => {
            ProviderError::Overflow { prompt_tokens: *prompt, window: *context }
        }
        DecodeError::Engine(other) => ProviderError::Engine(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_leads_nowhere_is_not_taken_for_a_long_one() {
        let error = finish_reason(EngineFinish::NoAllowedToken).unwrap_err().to_string();
        assert!(error.contains("led nowhere") && error.contains("kontekst models"), "{error}");
        assert!(matches!(finish_reason(EngineFinish::Length), Ok(FinishReason::Length)));
    }
}
