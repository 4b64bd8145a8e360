//! The attempts to get one answer: which errors are worth another try, and what the next request changes.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use kontekst_core::{AnswerFormat, Cancel};

use super::{
    calling::Calling,
    error_response::{self, is_loading},
    refusals::Refusal,
    request_body::{self, RequestForm},
    served_model::ServedModel,
    stream,
    turn_builder::TurnBuilder,
};

use crate::{
    ChatRequest, Delta, Progress, ProviderError, Turn,
    chat::{AnswerParser, prompted},
};

/// The longest wait between two requests to a server that is loading its model.
const MAX_LOADING_WAIT: Duration = Duration::from_secs(1);

/// The largest body of an error response that is read, in bytes.
const ERROR_BODY_LIMIT: u64 = 1024 * 1024;

/// The most times that one request is sent with a lower `max_tokens`: a server may count the prompt anew each time.
const MAX_LOWERED: usize = 3;

/// One request, and how it was changed by the failures so far.
pub(super) struct Attempts<'a> {
    served: &'a ServedModel,
    request: &'a ChatRequest,
    cancel: &'a Cancel,
    form: RequestForm,
    /// The tokens that the server counted each time `max_tokens` was lowered.
    counted_tokens: Vec<u32>,
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
    /// The server named a part that it does not take. The text says what it is sent from now on.
    Refused(String),
    Other(ProviderError),
}

impl From<ProviderError> for AttemptError {
    fn from(error: ProviderError) -> Self {
        Self::Other(error)
    }
}

impl<'a> Attempts<'a> {
    pub(super) fn new(served: &'a ServedModel, request: &'a ChatRequest, cancel: &'a Cancel) -> Self {
        let refusals = served.refusals().clone();
        let form = RequestForm {
            max_tokens: served.max_tokens(request),
            calling: served.calling(request),
            images: request.has_images() && served.takes_images() && !refusals.images,
            refusals,
        };
        Self {
            served,
            request,
            cancel,
            form,
            counted_tokens: Vec::new(),
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
        let body = request_body::build(&served.model, &served.capabilities, request, &self.form);
        let exchange = served.server.client().exchange(self.cancel, timing.first_token);
        let response = exchange.post("/v1/chat/completions", &body)?;
        let status = response.status().as_u16();
        if status != 200 {
            exchange.watchdog.reset_shorter(timing.probe);
            let retry_after = retry_after(&response);
            let answer = exchange.read_body(response, ERROR_BODY_LIMIT)?;
            return Err(self.classify(status, &answer, &body, retry_after));
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

    fn classify(&self, status: u16, answer: &[u8], body: &[u8], retry_after: Option<u32>) -> AttemptError {
        if is_loading(status, answer) {
            return AttemptError::Loading;
        }
        let mut error = error_response::from_status(status, answer);
        if matches!(error, ProviderError::Status { .. }) {
            let RequestForm { calling, images, .. } = self.form;
            let refusal = Refusal { status, answer, request: self.request, body, calling, images };
            if let Some(notice) = self.served.refusals().learn(&refusal) {
                return AttemptError::Refused(notice);
            }
        }
        if let ProviderError::Status { retry_after: seconds, .. } = &mut error {
            *seconds = retry_after;
        }
        match status {
            502..=504 => AttemptError::Gateway(error),
            // llama-server's own 500 is about the request and would come again.
            500 if !self.served.capabilities.is_llama_cpp => AttemptError::Gateway(error),
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
            AttemptError::Refused(notice) => {
                sink(Delta::Notice(notice));
                let refusals = self.served.refusals().clone();
                self.form.calling = self.served.calling(self.request);
                self.form.images &= !refusals.images;
                self.form.refusals = refusals;
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

    /// Makes room for a prompt that is longer than estimated, up to [`MAX_LOWERED`] times. vLLM counts what the answer may take as part of
    /// the overflow, or says how many tokens the prompt takes of the window, so the prompt alone may fit. Returns false if it does
    /// not.
    fn lower_max_tokens(&mut self, prompt_tokens: u32, window: u32) -> bool {
        let most = self.form.max_tokens;
        let fitting = match prompt_tokens {
            1.. if prompt_tokens < window => window - prompt_tokens,
            _ => most.saturating_sub(prompt_tokens.saturating_sub(window)),
        };
        let helps = !self.served.capabilities.is_llama_cpp
            && self.counted_tokens.len() < MAX_LOWERED
            && self.counted_tokens.last() != Some(&prompt_tokens)
            && (1..most).contains(&fitting);
        if helps {
            self.counted_tokens.push(prompt_tokens);
            self.form.max_tokens = fitting;
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
