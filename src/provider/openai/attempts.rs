//! The attempts to get one answer: which errors are worth another try, and what the next request changes.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{
    error_response::{self, is_about_tools, is_loading},
    request_body::{self, Calling, RequestForm},
    served_model::ServedModel,
    stream,
    turn_builder::TurnBuilder,
};
use crate::{
    core::{AnswerFormat, Cancel},
    provider::{
        ChatRequest, Delta, Progress, ProviderError, ToolRole, Turn,
        chat::{AnswerParser, prompted},
    },
};

/// The longest wait between two requests to a server that is loading its model.
const MAX_LOADING_WAIT: Duration = Duration::from_secs(1);

/// The largest body of an error response that is read, in bytes.
const ERROR_BODY_LIMIT: u64 = 1024 * 1024;

/// One request, and how it was changed by the failures so far.
pub(super) struct Attempts<'a> {
    served: &'a ServedModel,
    request: &'a ChatRequest,
    cancel: &'a Cancel,
    form: RequestForm,
    has_lowered_max_tokens: bool,
    has_retried_gateway: bool,
    started: Instant,
    loading_wait: Duration,
}

/// A reason why an attempt gave no answer.
enum AttemptError {
    /// The server is still loading its model.
    Loading,
    /// A gateway could not forward the request.
    Gateway(ProviderError),
    Other(ProviderError),
}

impl From<ProviderError> for AttemptError {
    fn from(error: ProviderError) -> Self {
        Self::Other(error)
    }
}

impl<'a> Attempts<'a> {
    pub(super) fn new(served: &'a ServedModel, request: &'a ChatRequest, cancel: &'a Cancel) -> Self {
        let form = RequestForm {
            max_tokens: served.max_tokens(request),
            calling: served.calling(request),
            images: request.has_images() && served.takes_images(),
        };
        Self {
            served,
            request,
            cancel,
            form,
            has_lowered_max_tokens: false,
            has_retried_gateway: false,
            started: Instant::now(),
            loading_wait: Duration::from_millis(50),
        }
    }

    /// Sends the request until there is an answer, or an error that another attempt would not change.
    pub(super) fn run(mut self, sink: &mut dyn FnMut(Delta)) -> Result<Turn, ProviderError> {
        loop {
            match self.send(sink) {
                Ok(turn) => return Ok(turn),
                Err(error) => self.recover(error, sink)?,
            }
        }
    }

    fn send(&self, sink: &mut dyn FnMut(Delta)) -> Result<Turn, AttemptError> {
        let (served, request) = (self.served, self.request);
        let timing = served.server.timing();
        let body = request_body::build(&served.model, &served.capabilities, request, self.form);
        let exchange = served.server.client().exchange(self.cancel, timing.first_token);
        let response = exchange.post("/v1/chat/completions", &body)?;
        let status = response.status().as_u16();
        if status != 200 {
            exchange.watchdog.reset_shorter(timing.probe);
            let retry_after = retry_after(&response);
            let body = exchange.read_body(response, ERROR_BODY_LIMIT)?;
            return Err(self.classify(status, &body, retry_after));
        }
        let parser = match self.form.calling {
            // An answer under a grammar is JSON only, so there are no calls to look for.
            _ if request.force_tool.is_some() || request.options.format != AnswerFormat::Text => {
                AnswerParser::without_calls()
            }
            Calling::Steps => AnswerParser::step(),
            Calling::Native if !request.rescue => AnswerParser::without_calls(),
            calling => AnswerParser::text(&request.tools, calling == Calling::Text),
        };
        let builder = TurnBuilder::new(parser, earlier_call_ids(request));
        let turn = stream::read_turn(&exchange, response, timing, builder, sink)?;
        Ok(match request.forced_tool() {
            Some(tool) => prompted::into_forced_call(&tool.name, turn),
            None => turn,
        })
    }

    fn classify(&self, status: u16, body: &[u8], retry_after: Option<u32>) -> AttemptError {
        if is_loading(status, body) {
            return AttemptError::Loading;
        }
        let mut error = error_response::from_status(status, body);
        if let ProviderError::Status { retry_after: seconds, .. } = &mut error {
            *seconds = retry_after;
        }
        match status {
            502..=504 => AttemptError::Gateway(error),
            // llama-server's own 500 is about the request and would come again.
            500 if !self.served.capabilities.is_llama_cpp && !is_about_tools(&error) => {
                AttemptError::Gateway(error)
            }
            _ => AttemptError::Other(error),
        }
    }

    /// Prepares the next attempt, after a wait where one is needed.
    ///
    /// # Errors
    ///
    /// The error itself if another attempt would not help, and [`ProviderError::Cancelled`].
    fn recover(&mut self, error: AttemptError, sink: &mut dyn FnMut(Delta)) -> Result<(), ProviderError> {
        match error {
            AttemptError::Loading => self.wait_for_loading(sink),
            AttemptError::Gateway(_) if !self.has_retried_gateway => {
                self.has_retried_gateway = true;
                self.wait(self.served.server.timing().backoff)
            }
            AttemptError::Other(error) if self.is_refusal_of_tools(&error) => {
                tracing::info!(model = self.served.model, %error, "tools are put into the prompt from now on");
                self.served.set_refuses_tools();
                self.form.calling = Calling::Text;
                Ok(())
            }
            AttemptError::Other(error) if self.is_refusal_of_schema(&error) => {
                tracing::info!(model = self.served.model, %error, "the model no longer works in steps");
                self.served.set_refuses_steps();
                self.form.calling = self.served.calling(self.request);
                Ok(())
            }
            AttemptError::Other(ProviderError::Overflow { prompt_tokens, window })
                if self.lower_max_tokens(prompt_tokens, window) =>
            {
                Ok(())
            }
            AttemptError::Gateway(error) | AttemptError::Other(error) => Err(error),
        }
    }

    fn wait_for_loading(&mut self, sink: &mut dyn FnMut(Delta)) -> Result<(), ProviderError> {
        if self.started.elapsed() >= self.served.server.timing().load {
            let message = "it has been loading its model for too long".to_owned();
            return Err(ProviderError::Status { status: 503, message, retry_after: None });
        }
        let model = self.served.model.clone();
        sink(Delta::Progress(Progress::Loading { model, fraction: None }));
        self.wait(self.loading_wait)?;
        self.loading_wait = (self.loading_wait * 2).min(MAX_LOADING_WAIT);
        Ok(())
    }

    fn is_refusal_of_tools(&self, error: &ProviderError) -> bool {
        self.form.calling == Calling::Native
            && self.request.tool_role != ToolRole::Native
            && !self.request.tools.is_empty()
            && is_about_tools(error)
    }

    /// Returns true if the server refuses the schema of a step, which servers without grammars do.
    fn is_refusal_of_schema(&self, error: &ProviderError) -> bool {
        self.form.calling == Calling::Steps
            && self.request.force_tool.is_none()
            && error_response::is_about_schema(error)
    }

    /// Makes room for a prompt that is longer than estimated, once. vLLM counts what the answer may take as part of
    /// the overflow, so the prompt alone may fit. Returns false if it does not.
    fn lower_max_tokens(&mut self, prompt_tokens: u32, window: u32) -> bool {
        let excess = prompt_tokens.saturating_sub(window);
        let helps = !self.served.capabilities.is_llama_cpp
            && !self.has_lowered_max_tokens
            && (1..self.form.max_tokens).contains(&excess);
        if helps {
            self.has_lowered_max_tokens = true;
            self.form.max_tokens -= excess;
        }
        helps
    }

    fn wait(&self, time: Duration) -> Result<(), ProviderError> {
        if self.cancel.is_cancelled_within(time) { Err(ProviderError::Cancelled) } else { Ok(()) }
    }
}

/// Returns the seconds of a `Retry-After` header. Its other form, a date, is ignored.
fn retry_after<B>(response: &ureq::http::Response<B>) -> Option<u32> {
    response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok()
}

/// Returns the ids of all calls in the conversation. Some servers count the calls of each answer from 0 again.
fn earlier_call_ids(request: &ChatRequest) -> HashSet<String> {
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    calls.map(|call| call.id.to_string()).collect()
}
