//! How good a model is: a few requests with the clock in hand.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    core::{Cancel, Message, Role, Sampling, ToolDef},
    provider::{ChatRequest, Delta, Finish, Progress, Provider, ProviderError, ToolRole, Turn},
};

/// Seconds that reading and writing may take each; what is asked for is chosen by the first, small request.
const READING: f64 = 10.0;
const WRITING: f64 = 10.0;

/// Tokens that are read at most: enough for a rate, and a prompt as agents have it.
const PROMPT: f64 = 2048.0;

/// Pieces of an answer that give a rate; some gateways send all of it at once.
const PIECES: u32 = 4;

/// What was found. A part is `None` where time or the server did not allow it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Tokens of the prompt that the rate is from, without those from a cache.
    pub read: u32,
    /// Tokens in a second.
    pub prefill: Option<f64>,
    pub decode: Option<f64>,
    /// The answer came in too few pieces to tell: `decode` has reading in it, and is what it is at least.
    pub at_least: bool,
    /// From the second question of a conversation to the first word of its answer.
    pub first_word: Option<Duration>,
    pub cache: Option<Cache>,
    pub call: Option<Call>,
    /// The call was asked for and made in plain text: the template or the server knows no tools.
    pub prompted: bool,
}

/// What the server did not read again in the second turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    pub cached: u32,
    /// Tokens of the first turn's prompt: all of them could be.
    pub possible: u32,
}

impl Cache {
    pub fn share(self) -> f64 {
        f64::from(self.cached.min(self.possible)) / f64::from(self.possible.max(1))
    }
}

/// What came when a tool was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
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
) -> Result<Measured, ProviderError> {
    let mut measured = Measured::default();
    match questions(provider, nonce, cancel, step, &mut measured) {
        Ok(()) | Err(ProviderError::Cancelled) => Ok(measured),
        Err(error) => Err(error),
    }
}

fn questions(
    provider: &dyn Provider,
    nonce: u128,
    cancel: &Cancel,
    step: &mut dyn FnMut(&str),
    measured: &mut Measured,
) -> Result<(), ProviderError> {
    step("warming up");
    let small = Timed::of(
        provider,
        &request(&format!("Note {nonce}. Count from one to ten."), 16),
        cancel,
        measured,
    )?;
    // Short prompts are read less quickly than long ones, so this errs on the safe side.
    let prompt = (small.prefill().unwrap_or(100.0) * READING).min(PROMPT);
    let prompt = prompt.min(provider.window().map_or(PROMPT, |window| f64::from(window) / 2.0));
    let answer = (small.decode().unwrap_or(8.0) * WRITING).clamp(16.0, 128.0);

    step("reading and writing");
    let text = long(provider, nonce, prompt as u32, cancel);
    let mut conversation = request(&text, answer as u32);
    let first = Timed::of(provider, &conversation, cancel, measured)?;
    // Of two answers, the one that came in pieces tells more.
    let better = if first.writing.is_none() && small.writing.is_some() { &small } else { &first };
    (measured.decode, measured.at_least) =
        (better.decode(), better.writing.is_none() && better.decode().is_some());

    step("a second turn");
    let mut reply = Message::text(Role::Assistant, &*first.turn.content);
    reply.reasoning.clone_from(&first.turn.reasoning);
    conversation.messages.extend([reply, Message::text(Role::User, "Now the same in one sentence.")]);
    conversation.max_tokens = 16;
    let second = Timed::of(provider, &conversation, cancel, &mut Measured::default())?;
    measured.first_word = second.first;
    if let (Some(before), Some(after)) = (first.turn.usage, second.turn.usage) {
        measured.cache = Some(Cache { cached: after.cached, possible: before.prompt });
    }

    step("a tool call");
    let mut asking = request("Use the tool read_file to read the file notes.txt. Do nothing else.", 512);
    asking.tools = [tool()].into();
    measured.call = match provider.generate(&asking, cancel, &mut |_| {}) {
        Ok(turn) => Some(judged(&turn)),
        // Servers without tools refuse the request.
        Err(ProviderError::Status { status, message }) => {
            Some(Call::Invalid(format!("the server answered {status}: {message}")))
        }
        Err(error) => return Err(error),
    };
    measured.prompted = provider.prompts_tools();
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
        force: None,
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
fn long(provider: &dyn Provider, nonce: u128, tokens: u32, cancel: &Cancel) -> String {
    let line =
        |number: u128| format!("Box {number} holds {} apples and {} pears.\n", number % 97, number % 89);
    let of_one = provider.count_tokens(&[&line(nonce)], cancel).first().copied().unwrap_or(0).max(8);
    let lines: String = (0..u128::from(tokens / of_one)).map(|at| line(nonce.wrapping_add(at * 7))).collect();
    format!("{lines}\nDescribe in a few sentences what is listed above.")
}

fn judged(turn: &Turn) -> Call {
    let invalid = |why: String| Call::Invalid(why);
    let Some(call) = turn.calls.first() else {
        return invalid("it answered in words instead of calling the tool".to_owned());
    };
    if turn.finish == Finish::Length {
        return invalid("the call was cut: it thought for too long before".to_owned());
    }
    if call.name != "read_file" {
        return invalid(format!("it called `{}`, which does not exist", call.name));
    }
    match call.parsed() {
        Err(why) => invalid(why),
        Ok(arguments) if arguments.get("path").is_some_and(Value::is_string) => Call::Valid,
        Ok(_) => invalid("the arguments have no `path`".to_owned()),
    }
}

/// An answer and when its parts came.
struct Timed {
    turn: Turn,
    /// From the question to the first piece.
    first: Option<Duration>,
    /// From the first piece to the last, if there were enough of them to tell.
    writing: Option<Duration>,
    /// From the question to the end of the answer.
    whole: Duration,
    /// Tokens that were written, by the server's count or ours.
    written: u32,
}

impl Timed {
    /// Asks. Reports what is known of reading into `measured`, also if it is cancelled on the way.
    fn of(
        provider: &dyn Provider,
        request: &ChatRequest,
        cancel: &Cancel,
        measured: &mut Measured,
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
            && read > measured.read
        {
            (measured.read, measured.prefill) = (read, rate(read, passed));
        }
        let turn = result?;
        let first = first.map(|first| (first - start, last - first));
        let written = turn.usage.map_or_else(
            || provider.count_tokens(&[&turn.content, &turn.reasoning], cancel).iter().sum(),
            |usage| usage.completion,
        );
        let timed = Self {
            first: first.map(|(first, _)| first),
            writing: first.map(|(_, writing)| writing).filter(|_| pieces >= PIECES),
            whole: start.elapsed(),
            written,
            turn,
        };
        if timed.read() > measured.read {
            (measured.read, measured.prefill) = (timed.read(), timed.prefill());
        }
        Ok(timed)
    }

    fn read(&self) -> u32 {
        self.turn.usage.map_or(0, |usage| usage.prompt.saturating_sub(usage.cached))
    }

    fn prefill(&self) -> Option<f64> {
        rate(self.read(), self.first?)
    }

    /// The first token is the end of reading. Of an answer that came in one piece only a lower bound is
    /// known, with reading in it.
    fn decode(&self) -> Option<f64> {
        match self.writing {
            Some(writing) => rate(self.written.checked_sub(1)?, writing),
            None => rate(self.written, self.whole),
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
        let turn = |name: &str, arguments: &str, finish: Finish| Turn {
            calls: vec![ToolCall {
                id: crate::core::CallId::new("a"),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }],
            finish,
            ..Turn::default()
        };
        assert_eq!(judged(&turn("read_file", "{\"path\":\"notes.txt\"}", Finish::Stop)), Call::Valid);
        for (turn, part) in [
            (Turn::default(), "in words"),
            (turn("read", "{\"path\":\"a\"}", Finish::Stop), "`read`, which does not exist"),
            (turn("read_file", "{\"path\":", Finish::Stop), "not valid JSON"),
            (turn("read_file", "{\"file\":\"a\"}", Finish::Stop), "no `path`"),
            (turn("read_file", "{\"path\":1}", Finish::Stop), "no `path`"),
            (turn("read_file", "{\"path\":\"a\"}", Finish::Length), "cut"),
        ] {
            let Call::Invalid(why) = judged(&turn) else { panic!("{turn:?}") };
            assert!(why.contains(part), "{why}");
        }
    }
}
