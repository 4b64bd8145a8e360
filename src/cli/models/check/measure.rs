//! Measures a model: sends a few requests and times the answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use kontekst_core::{AnswerOptions, Cancel, Message, Role, Sampling, ToolDef};
use kontekst_provider::{
    ChatRequest, Delta, FinishReason, Progress, Provider, ProviderError, StepOptions, ToolRole, Turn,
};

/// Seconds that reading the long prompt should take, and seconds that the answer should take. The size of
/// both is estimated from the first, small request.
const READ_SECONDS: f64 = 10.0;
const WRITE_SECONDS: f64 = 10.0;

/// The most tokens of the long prompt. Prompts of agents are about as long, and it is enough for a rate.
const MAX_PROMPT_TOKENS: f64 = 2048.0;

/// The fewest chunks of an answer that give a rate. Some gateways send the whole answer at once.
const MIN_CHUNKS: u32 = 4;

/// The results. A field is `None` if there was no time for it, or if the server does not report it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measurements {
    /// The tokens of the prompt that `prefill` is from, without those that were cached.
    pub prompt_tokens: u32,
    /// Tokens per second.
    pub prefill: Option<f64>,
    /// Tokens per second.
    pub decode: Option<f64>,
    /// The answer came in too few chunks. `decode` includes the time of the prefill, so the true rate is
    /// higher.
    pub decode_is_lower_bound: bool,
    /// For the second turn of a conversation.
    pub time_to_first_token: Option<Duration>,
    pub cache: Option<CacheReuse>,
    pub tool_call: Option<ToolCallCheck>,
    /// The template or the server does not support tools, so the call was asked for and made in plain text.
    pub call_was_prompted: bool,
}

/// The part of the first turn's prompt that the server still had in its cache in the second turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheReuse {
    pub cached: u32,
    /// All tokens of the first turn's prompt.
    pub possible: u32,
}

impl CacheReuse {
    pub(super) fn share(self) -> f64 {
        f64::from(self.cached.min(self.possible)) / f64::from(self.possible.max(1))
    }
}

/// The answer to a request that asks for a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolCallCheck {
    Valid,
    /// With what is wrong with the call.
    Invalid(String),
}

impl ToolCallCheck {
    /// Returns what is wrong with the call.
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Valid => None,
            Self::Invalid(why) => Some(why),
        }
    }
}

/// Sends the requests one after another. A cancel ends this early, and what was not measured then is `None`.
///
/// `nonce` makes the prompts new, so that no server has them in its cache. `step` is called with the name of
/// each step.
///
/// # Errors
///
/// Returns any [`ProviderError`] except `Cancelled`.
pub(super) fn measure(
    provider: &dyn Provider,
    nonce: u128,
    cancel: &Cancel,
    step: &mut dyn FnMut(&str),
) -> Result<Measurements, ProviderError> {
    let mut benchmark = Benchmark { provider, nonce, cancel, results: Measurements::default() };
    match benchmark.run(step) {
        Ok(()) | Err(ProviderError::Cancelled) => Ok(benchmark.results),
        Err(error) => Err(error),
    }
}

struct Benchmark<'a> {
    provider: &'a dyn Provider,
    nonce: u128,
    cancel: &'a Cancel,
    results: Measurements,
}

impl Benchmark<'_> {
    fn run(&mut self, step: &mut dyn FnMut(&str)) -> Result<(), ProviderError> {
        step("warming up");
        let small = self.ask(&request(&format!("Note {}. Count from one to ten.", self.nonce), 16))?;
        step("reading and writing");
        let conversation = self.long_request(&small);
        let first = self.ask(&conversation)?;
        self.record_decode(&small, &first);
        step("a second turn");
        self.second_turn(conversation, &first)?;
        step("a tool call");
        self.tool_call()
    }

    /// Builds a request that takes about [`READ_SECONDS`] to read and [`WRITE_SECONDS`] to answer.
    fn long_request(&self, small: &TimedTurn) -> ChatRequest {
        // The prefill of a short prompt is slower than that of a long one, so this takes less time than
        // planned.
        let prompt = (small.prefill_rate().unwrap_or(100.0) * READ_SECONDS).min(MAX_PROMPT_TOKENS);
        let half_window =
            self.provider.capabilities().window.map_or(MAX_PROMPT_TOKENS, |window| f64::from(window) / 2.0);
        let answer = (small.decode_rate().unwrap_or(8.0) * WRITE_SECONDS).clamp(16.0, 128.0);
        request(&self.long_prompt(prompt.min(half_window) as u32), answer as u32)
    }

    /// Builds a prompt of about `tokens` tokens that no server has seen before.
    fn long_prompt(&self, tokens: u32) -> String {
        let line =
            |number: u128| format!("Box {number} holds {} apples and {} pears.\n", number % 97, number % 89);
        let counts = self.provider.count_tokens(&[&line(self.nonce)], self.cancel);
        let tokens_per_line = counts.first().copied().unwrap_or(0).max(8);
        let numbers = (0..u128::from(tokens / tokens_per_line)).map(|at| self.nonce.wrapping_add(at * 7));
        let lines: String = numbers.map(line).collect();
        format!("{lines}\nDescribe in a few sentences what is listed above.")
    }

    /// Takes the decode rate from the long answer, or from the small one if only that came in enough chunks.
    fn record_decode(&mut self, small: &TimedTurn, long: &TimedTurn) {
        let better = if long.decode_time.is_none() && small.decode_time.is_some() { small } else { long };
        self.results.decode = better.decode_rate();
        self.results.decode_is_lower_bound = better.decode_time.is_none() && self.results.decode.is_some();
    }

    fn second_turn(&mut self, mut conversation: ChatRequest, first: &TimedTurn) -> Result<(), ProviderError> {
        let mut reply = Message::text(Role::Assistant, &*first.turn.content);
        reply.reasoning.clone_from(&first.turn.reasoning);
        conversation.messages.extend([reply, Message::text(Role::User, "Now the same in one sentence.")]);
        conversation.max_tokens = 16;
        let second =
            TimedTurn::ask(self.provider, &conversation, self.cancel).map_err(|failed| failed.error)?;
        self.results.time_to_first_token = second.time_to_first_token;
        if let (Some(before), Some(after)) = (first.turn.usage, second.turn.usage) {
            self.results.cache = Some(CacheReuse { cached: after.cached, possible: before.prompt });
        }
        Ok(())
    }

    fn tool_call(&mut self) -> Result<(), ProviderError> {
        let mut asking = request("Use the tool read_file to read the file notes.txt. Do nothing else.", 512);
        asking.tools = [tool()].into();
        self.results.tool_call = match self.provider.generate(&asking, self.cancel, &mut |_| {}) {
            Ok(turn) => Some(check_call(&turn)),
            // A server without tools refuses the request.
            Err(ProviderError::Status { status, message, .. }) => {
                Some(ToolCallCheck::Invalid(format!("the server answered {status}: {message}")))
            }
            Err(error) => return Err(error),
        };
        self.results.call_was_prompted = self.provider.capabilities().tools_in_prompt;
        Ok(())
    }

    /// Sends a request, and records its prefill rate if it has the longest prompt until now. A request that
    /// was cancelled counts as far as it came.
    fn ask(&mut self, request: &ChatRequest) -> Result<TimedTurn, ProviderError> {
        match TimedTurn::ask(self.provider, request, self.cancel) {
            Ok(timed) => {
                self.record_prefill(timed.prompt_tokens(), timed.prefill_rate());
                Ok(timed)
            }
            Err(Failed { error, prefill }) => {
                if let Some((tokens, time)) = prefill {
                    self.record_prefill(tokens, rate(tokens, time));
                }
                Err(error)
            }
        }
    }

    fn record_prefill(&mut self, tokens: u32, rate: Option<f64>) {
        if tokens > self.results.prompt_tokens {
            (self.results.prompt_tokens, self.results.prefill) = (tokens, rate);
        }
    }
}

pub(super) fn request(text: &str, max_tokens: u32) -> ChatRequest {
    ChatRequest {
        system: "You are a helpful assistant.".into(),
        messages: vec![Message::text(Role::User, text)],
        tools: [].into(),
        options: AnswerOptions::default(),
        sampling: Sampling { temperature: Some(0.0), ..Sampling::default() },
        max_tokens,
        tool_role: ToolRole::Auto,
        rescue: true,
        thinking: true,
        steps: StepOptions::default(),
        force_tool: None,
        session: None,
        prompt_tokens: 0,
    }
}

fn tool() -> ToolDef {
    ToolDef {
        name: "read_file".to_owned(),
        description: "Reads a text file.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "the file's path"}},
            "required": ["path"],
        }),
        ..ToolDef::default()
    }
}

fn check_call(turn: &Turn) -> ToolCallCheck {
    let invalid = |why: String| ToolCallCheck::Invalid(why);
    let Some(call) = turn.calls.first() else {
        return invalid("it answered in words instead of calling the tool".to_owned());
    };
    if turn.finish_reason == FinishReason::Length {
        return invalid("the call was cut: it thought for too long before".to_owned());
    }
    if call.name != "read_file" {
        return invalid(format!("it called `{}`, which does not exist", call.name));
    }
    match call.parse_arguments() {
        Err(why) => invalid(why),
        Ok(arguments) if arguments.get("path").is_some_and(Value::is_string) => ToolCallCheck::Valid,
        Ok(_) => invalid("the arguments have no `path`".to_owned()),
    }
}

/// An answer with its times.
struct TimedTurn {
    turn: Turn,
    time_to_first_token: Option<Duration>,
    /// From the first chunk to the last. `None` if there were too few chunks.
    decode_time: Option<Duration>,
    /// From the request to the end of the answer.
    total_time: Duration,
    /// As the server counts them; if it does not, as the tokenizer does.
    completion_tokens: u32,
}

/// A request that failed or was cancelled.
struct Failed {
    error: ProviderError,
    /// The prompt tokens that had been read by then, and the time that took.
    prefill: Option<(u32, Duration)>,
}

impl TimedTurn {
    /// Sends a request and waits for the end of the answer.
    fn ask(provider: &dyn Provider, request: &ChatRequest, cancel: &Cancel) -> Result<Self, Failed> {
        let start = Instant::now();
        let (mut first_chunk, mut last_chunk, mut chunks, mut prefill) = (None, start, 0_u32, None);
        let result = provider.generate(request, cancel, &mut |delta| match delta {
            Delta::Text(_) | Delta::Reasoning(_) | Delta::Call(_) => {
                last_chunk = Instant::now();
                chunks += 1;
                first_chunk.get_or_insert(last_chunk);
            }
            Delta::Progress(Progress::Prefill { processed, cached, .. }) => {
                prefill = Some((processed.saturating_sub(cached), start.elapsed()));
            }
            Delta::Progress(_) | Delta::Notice(_) | Delta::WasThought => {}
        });
        let turn = result.map_err(|error| Failed { error, prefill })?;
        let completion_tokens = turn.usage.map_or_else(
            || provider.count_tokens(&[&turn.content, &turn.reasoning], cancel).iter().sum(),
            |usage| usage.completion,
        );
        Ok(Self {
            time_to_first_token: first_chunk.map(|first| first - start),
            decode_time: first_chunk.filter(|_| chunks >= MIN_CHUNKS).map(|first| last_chunk - first),
            total_time: start.elapsed(),
            completion_tokens,
            turn,
        })
    }

    /// Returns the tokens of the prompt that were not cached.
    fn prompt_tokens(&self) -> u32 {
        self.turn.usage.map_or(0, |usage| usage.prompt.saturating_sub(usage.cached))
    }

    fn prefill_rate(&self) -> Option<f64> {
        rate(self.prompt_tokens(), self.time_to_first_token?)
    }

    /// Returns tokens per second. The prefill ends with the first token. An answer in too few chunks gives
    /// only a lower bound, which includes the time of the prefill.
    fn decode_rate(&self) -> Option<f64> {
        match self.decode_time {
            Some(time) => rate(self.completion_tokens.checked_sub(1)?, time),
            None => rate(self.completion_tokens, self.total_time),
        }
    }
}

fn rate(tokens: u32, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| f64::from(tokens) / time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use kontekst_core::ToolCall;

    use super::*;

    #[test]
    fn a_call_is_judged() {
        let turn = |name: &str, arguments: &str, finish: FinishReason| Turn {
            calls: vec![ToolCall {
                id: kontekst_core::CallId::new("a"),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }],
            finish_reason: finish,
            ..Turn::default()
        };
        assert_eq!(
            check_call(&turn("read_file", "{\"path\":\"notes.txt\"}", FinishReason::Stop)),
            ToolCallCheck::Valid
        );
        for (turn, part) in [
            (Turn::default(), "in words"),
            (turn("read", "{\"path\":\"a\"}", FinishReason::Stop), "`read`, which does not exist"),
            (turn("read_file", "{\"path\":", FinishReason::Stop), "not valid JSON"),
            (turn("read_file", "{\"file\":\"a\"}", FinishReason::Stop), "no `path`"),
            (turn("read_file", "{\"path\":1}", FinishReason::Stop), "no `path`"),
            (turn("read_file", "{\"path\":\"a\"}", FinishReason::Length), "cut"),
        ] {
            let ToolCallCheck::Invalid(why) = check_call(&turn) else { panic!("{turn:?}") };
            assert!(why.contains(part), "{why}");
        }
    }
}
