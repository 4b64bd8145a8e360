//! Encodes a run for `POST /v1/chat/completions`.

use serde_json::{Value, json};

use kontekst_agent::{Run, protocol::Event};

use super::{
    super::{
        events::{self, EventEncoder},
        response::HttpError,
    },
    created, error_object, id,
    run_translator::{RunDelta, RunEnd, RunTranslator, chat_call},
};

/// Encodes a run as one completion or as chunks.
pub(super) struct ChatEncoder {
    id: String,
    created: u64,
    model: String,
    translator: RunTranslator,
    /// True if the stream ends with a chunk that has the token counts.
    include_usage: bool,
    text: String,
    reasoning: String,
    end: Option<Result<RunEnd, HttpError>>,
    started: bool,
}

impl ChatEncoder {
    /// `include_usage` adds a chunk with the token counts to the end of a stream.
    pub(super) fn new(model: String, translator: RunTranslator, include_usage: bool) -> Self {
        Self {
            id: id("chatcmpl-"),
            created: created(),
            model,
            translator,
            include_usage,
            text: String::new(),
            reasoning: String::new(),
            end: None,
            started: false,
        }
    }

    /// Returns the error with which the run ended, if it has.
    pub(super) fn error(&self) -> Option<HttpError> {
        self.end.as_ref()?.as_ref().err().cloned()
    }

    fn usage(&self) -> Value {
        let RunTranslator { prompt_tokens, cached_tokens, completion_tokens, .. } = self.translator;
        json!({
            "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens.saturating_add(completion_tokens),
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        })
    }

    pub(super) fn into_json(self) -> Result<Value, HttpError> {
        let usage = self.usage();
        let finish = self.end.unwrap_or(Ok(RunEnd::Stop))?;
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if let RunEnd::ToolCalls(calls) = &finish {
            message["tool_calls"] = calls.iter().map(|call| chat_call(call, None)).collect();
            if self.text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish.finish_reason()});
        Ok(json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [choice], "usage": usage,
        }))
    }

    fn chunk(&mut self, mut delta: Value, finish: Option<&str>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.started, true) {
            delta["role"] = json!("assistant");
        }
        let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        events::unnamed(out, &self.envelope(&choices));
    }

    fn envelope(&self, choices: &Value) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": choices,
        })
    }

    fn push_end(&mut self, end: &Result<RunEnd, HttpError>, out: &mut Vec<u8>) {
        match end {
            Err(error) => events::unnamed(out, &json!({"error": error_object(error)})),
            Ok(finish) => {
                if let RunEnd::ToolCalls(calls) = finish {
                    let calls: Value =
                        calls.iter().enumerate().map(|(index, call)| chat_call(call, Some(index))).collect();
                    self.chunk(json!({"tool_calls": calls}), None, out);
                }
                self.chunk(json!({}), Some(finish.finish_reason()), out);
                if self.include_usage {
                    let mut last = self.envelope(&json!([]));
                    last["usage"] = self.usage();
                    events::unnamed(out, &last);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
            }
        }
    }
}

impl EventEncoder for ChatEncoder {
    fn handle_event(&mut self, event: Event, run: &Run, out: &mut Vec<u8>) -> bool {
        match self.translator.translate(event, run) {
            None => false,
            Some(RunDelta::Text(text)) => {
                self.chunk(json!({"content": text}), None, out);
                self.text.push_str(&text);
                false
            }
            Some(RunDelta::Reasoning(text)) => {
                self.chunk(json!({"reasoning_content": text}), None, out);
                self.reasoning.push_str(&text);
                false
            }
            Some(RunDelta::TurnedBack) => {
                self.text.clear();
                false
            }
            Some(RunDelta::End(end)) => {
                self.push_end(&end, out);
                self.end = Some(end);
                true
            }
        }
    }
}
