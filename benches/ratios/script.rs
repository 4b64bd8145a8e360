//! The answers of the scripted model server. The name of the model is the script.

use std::{io, thread, time::Duration};

use crate::clock;

/// An answer, described by a model name such as `t200d0` or `st50d20000`.
///
/// `t` is followed by the number of tokens and `d` by the microseconds between two of them. With a leading `s` each
/// token is the server's clock, so that a reader can tell how late it is. Any other name means `t1d0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub tokens: u32,
    pub gap: Duration,
    pub stamped: bool,
}

impl Script {
    pub(crate) fn of(model: &str) -> Self {
        Self::parse(model).unwrap_or(Self { tokens: 1, gap: Duration::ZERO, stamped: false })
    }

    fn parse(model: &str) -> Option<Self> {
        let (stamped, rest) = match model.strip_prefix('s') {
            Some(rest) => (true, rest),
            None => (false, model),
        };
        let (tokens, micros) = rest.strip_prefix('t')?.split_once('d')?;
        let gap = Duration::from_micros(micros.parse().ok()?);
        Some(Self { tokens: tokens.parse().ok()?, gap, stamped })
    }

    /// Passes the data of each event to `put`. The prompt is said to have had `prompt_tokens`.
    ///
    /// The order is llama-server's: a role, the text, a finish reason, the usage, `[DONE]`.
    pub(crate) fn play(
        self,
        model: &str,
        prompt_tokens: usize,
        mut put: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let chunk = |choices: &str, more: &str| {
            format!(
                r#"{{"choices":[{choices}],"created":1790000000,"id":"chatcmpl-ratios","model":"{model}","object":"chat.completion.chunk"{more}}}"#
            )
        };
        let choice =
            |finish: &str, delta: &str| format!(r#"{{"finish_reason":{finish},"index":0,"delta":{delta}}}"#);
        put(&chunk(&choice("null", r#"{"role":"assistant","content":null}"#), ""))?;
        for n in 0..self.tokens {
            if n > 0 && !self.gap.is_zero() {
                thread::sleep(self.gap);
            }
            let token = if self.stamped { format!("{} ", clock::now()) } else { word(n).to_owned() };
            put(&chunk(&choice("null", &format!(r#"{{"content":"{token}"}}"#)), ""))?;
        }
        put(&chunk(&choice(r#""stop""#, "{}"), ""))?;
        let (tokens, all) = (self.tokens, prompt_tokens + self.tokens as usize);
        put(&chunk(
            "",
            &format!(
                r#","usage":{{"completion_tokens":{tokens},"prompt_tokens":{prompt_tokens},"total_tokens":{all}}}"#
            ),
        ))?;
        put("[DONE]")
    }
}

fn word(n: u32) -> &'static str {
    ["the ", "quick ", "brown ", "fox ", "jumps ", "over ", "lazy ", "dog "][n as usize % 8]
}
