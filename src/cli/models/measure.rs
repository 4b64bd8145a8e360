//! How good a model is: a few requests with the clock in hand.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    core::{Cancel, Message, Role, Sampling, ToolDef},
    provider::{ChatRequest, Delta, FinishReason, Progress, Provider, ProviderError, ToolRole, Turn},
};

/// Seconds that reading and writing may take each; what is asked for is chosen by the first, small request.
const READ_SECONDS: f64 = 10.0;
const WRITE_SECONDS: f64 = 10.0;

/// Tokens that are read at most: enough for a rate, and a prompt as agents have it.
const MAX_PROMPT_TOKENS: f64 = 2048.0;

/// Pieces of an answer that give a rate; some gateways send all of it at once.
const MIN_CHUNKS: u32 = 4;

/// What was found. A part is `None` where time or the server did not allow it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// Tokens of the prompt that the rate is from, without those from a cache.
    pub prompt_tokens: u32,
    /// Tokens in a second.
    pub prefill: Option<f64>,
    pub decode: Option<f64>,
    /// The answer came in too few pieces to tell: `decode` has reading in it, and is what it is at least.
    pub decode_is_lower_bound: bool,
    /// From the second question of a conversation to the first word of its answer.
    pub time_to_first_token: Option<Duration>,
    pub cache: Option<CacheReuse>,
    pub tool_call: Option<ToolCallCheck>,
    /// The call was asked for and made in plain text: the template or the server knows no tools.
    pub call_was_prompted: bool,
}

/// What the server did not read again in the second turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheReuse {
    pub cached: u32,
    /// Tokens of the first turn's prompt: all of them could be.
    pub possible: u32,
}

impl CacheReuse {
    pub fn share(self) -> f64 {
        f64::from(self.cached.min(self.possible)) / f64::from(self.possible.max(1))
    }
}

/// What came when a tool was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCallCheck {
    Valid,
    /// Why it is none.
    Invalid(String),
}

/// Asks one question after another. What a cancel leaves undone is `None`.
///
/// `nonce` makes the prompt one that no cache has.
///
/// # Errors
///
/// [`ProviderError`], but for a cancel.
pub fn measure(
    provider: &dyn Provider,
    nonce: u128,
    cancel: &Cancel,
    step: &mut dyn FnMut(&str),
) -> Result<Measurements, ProviderError> {
    let mut measured = Measurements::default();
    match run_requests(provider, nonce, cancel, step, &mut measured) {
        Ok(()) | Err(ProviderError::Cancelled) => Ok(measured),
        Err(error) => Err(error),
    }
}

fn run_requests(
    provider: &dyn Provider,
    nonce: u128,
    cancel: &Cancel,
    step: &mut dyn FnMut(&str),
    measured: &mut Measurements,
) -> Result<(), ProviderError> {
    step("warming up");
    let small = TimedTurn::ask(
        provider,
        &request(&format!("Note {nonce}. Count from one to ten."), 16),
        cancel,
        measured,
    )?;
    // Short prompts are read less quickly than long ones, so this errs on the safe side.
    let prompt = (small.prefill_rate().unwrap_or(100.0) * READ_SECONDS).min(MAX_PROMPT_TOKENS);
    let prompt = prompt.min(provider.window().map_or(MAX_PROMPT_TOKENS, |window| f64::from(window) / 2.0));
    let answer = (small.decode_rate().unwrap_or(8.0) * WRITE_SECONDS).clamp(16.0, 128.0);

    step("reading and writing");
    let text = long_prompt(provider, nonce, prompt as u32, cancel);
    let mut conversation = request(&text, answer as u32);
    let first = TimedTurn::ask(provider, &conversation, cancel, measured)?;
    // Of two answers, the one that came in pieces tells more.
    let better = if first.decode_time.is_none() && small.decode_time.is_some() { &small } else { &first };
    (measured.decode, measured.decode_is_lower_bound) =
        (better.decode_rate(), better.decode_time.is_none() && better.decode_rate().is_some());

    step("a second turn");
    let mut reply = Message::text(Role::Assistant, &*first.turn.content);
    reply.reasoning.clone_from(&first.turn.reasoning);
    conversation.messages.extend([reply, Message::text(Role::User, "Now the same in one sentence.")]);
    conversation.max_tokens = 16;
    let second = TimedTurn::ask(provider, &conversation, cancel, &mut Measurements::default())?;
    measured.time_to_first_token = second.time_to_first_token;
    if let (Some(before), Some(after)) = (first.turn.usage, second.turn.usage) {
        measured.cache = Some(CacheReuse { cached: after.cached, possible: before.prompt });
    }

    step("a tool call");
    let mut asking = request("Use the tool read_file to read the file notes.txt. Do nothing else.", 512);
    asking.tools = [tool()].into();
    measured.tool_call = match provider.generate(&asking, cancel, &mut |_| {}) {
        Ok(turn) => Some(check_call(&turn)),
        // Servers without tools refuse the request.
        Err(ProviderError::Status { status, message }) => {
            Some(ToolCallCheck::Invalid(format!("the server answered {status}: {message}")))
        }
        Err(error) => return Err(error),
    };
    measured.call_was_prompted = provider.tools_in_prompt();
    Ok(())
}

fn request(text: &str, max_tokens: u32) -> ChatRequest {
    ChatRequest {
        system: "You are a helpful assistant.".into(),
        messages: vec![Message::text(Role::User, text)],
        tools: [].into(),
        sampling: Sampling { temperature: Some(0.0), ..Sampling::default() },
        max_tokens,
        tool_role: ToolRole::Auto,
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
    }
}

/// A prompt of about so many tokens, unlike any other.
fn long_prompt(provider: &dyn Provider, nonce: u128, tokens: u32, cancel: &Cancel) -> String {
    let line =
        |number: u128| format!("Box {number} holds {} apples and {} pears.\n", number % 97, number % 89);
    let of_one = provider.count_tokens(&[&line(nonce)], cancel).first().copied().unwrap_or(0).max(8);
    let lines: String = (0..u128::from(tokens / of_one)).map(|at| line(nonce.wrapping_add(at * 7))).collect();
    format!("{lines}\nDescribe in a few sentences what is listed above.")
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

/// An answer and when its parts came.
struct TimedTurn {
    turn: Turn,
    /// From the question to the first piece.
    time_to_first_token: Option<Duration>,
    /// From the first piece to the last, if there were enough of them to tell.
    decode_time: Option<Duration>,
    /// From the question to the end of the answer.
    total_time: Duration,
    /// Tokens that were written, by the server's count or ours.
    completion_tokens: u32,
}

impl TimedTurn {
    /// Asks. Reports what is known of reading into `measured`, also if it is cancelled on the way.
    fn ask(
        provider: &dyn Provider,
        request: &ChatRequest,
        cancel: &Cancel,
        measured: &mut Measurements,
    ) -> Result<Self, ProviderError> {
        let start = Instant::now();
        let (mut first, mut last, mut pieces, mut prefill) = (None, start, 0_u32, None);
        let result = provider.generate(request, cancel, &mut |delta| match delta {
            Delta::Text(_) | Delta::Reasoning(_) => {
                last = Instant::now();
                pieces += 1;
                first.get_or_insert(last);
            }
            Delta::Progress(Progress::Prefill { processed, cached, .. }) => {
                prefill = Some((processed.saturating_sub(cached), start.elapsed()));
            }
            Delta::Progress(_) => {}
        });
        if let (Err(_), Some((read, passed))) = (&result, prefill)
            && read > measured.prompt_tokens
        {
            (measured.prompt_tokens, measured.prefill) = (read, rate(read, passed));
        }
        let turn = result?;
        let first = first.map(|first| (first - start, last - first));
        let written = turn.usage.map_or_else(
            || provider.count_tokens(&[&turn.content, &turn.reasoning], cancel).iter().sum(),
            |usage| usage.completion,
        );
        let timed = Self {
            time_to_first_token: first.map(|(first, _)| first),
            decode_time: first.map(|(_, writing)| writing).filter(|_| pieces >= MIN_CHUNKS),
            total_time: start.elapsed(),
            completion_tokens: written,
            turn,
        };
        if timed.prompt_tokens() > measured.prompt_tokens {
            (measured.prompt_tokens, measured.prefill) = (timed.prompt_tokens(), timed.prefill_rate());
        }
        Ok(timed)
    }

    fn prompt_tokens(&self) -> u32 {
        self.turn.usage.map_or(0, |usage| usage.prompt.saturating_sub(usage.cached))
    }

    fn prefill_rate(&self) -> Option<f64> {
        rate(self.prompt_tokens(), self.time_to_first_token?)
    }

    /// The first token is the end of reading. Of an answer that came in one piece only a lower bound is
    /// known, with reading in it.
    fn decode_rate(&self) -> Option<f64> {
        match self.decode_time {
            Some(writing) => rate(self.completion_tokens.checked_sub(1)?, writing),
            None => rate(self.completion_tokens, self.total_time),
        }
    }
}

fn rate(tokens: u32, passed: Duration) -> Option<f64> {
    (tokens > 0 && !passed.is_zero()).then(|| f64::from(tokens) / passed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ToolCall;

    #[test]
    fn a_call_is_judged() {
        let turn = |name: &str, arguments: &str, finish: FinishReason| Turn {
            calls: vec![ToolCall {
                id: crate::core::CallId::new("a"),
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
