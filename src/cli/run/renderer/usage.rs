//! The tokens that the answers of a run took, and the time.

use std::time::{Duration, Instant};

use kontekst_pb::run_event::Event;

/// The tokens of all answers of a run, as the model servers have counted them.
#[derive(Default)]
pub(super) struct Usage {
    pub(super) turns: u32,
    /// `None` until a server has counted.
    pub(super) prompt: Option<i64>,
    pub(super) cached: Option<i64>,
    pub(super) completion: Option<i64>,
    /// The beginning of the answer that is being written.
    began: Option<Instant>,
    /// The tokens of the answers whose time was measured, and that time.
    measured: (i64, Duration),
}

/// A shorter answer says nothing about the speed.
const MIN_MEASURED: Duration = Duration::from_millis(50);

impl Usage {
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::Token(_) | Event::Reasoning(_) => {
                self.began.get_or_insert_with(Instant::now);
            }
            Event::TurnCompleted(turn) => {
                self.turns += 1;
                let began = self.began.take();
                let Some(context) = &turn.context else { return };
                add(&mut self.prompt, context.prompt_tokens);
                add(&mut self.cached, context.cached_tokens);
                add(&mut self.completion, context.answer_tokens);
                // The time of the first token is that of reading the prompt.
                if let (Some(began), Some(tokens @ 2..)) = (began, context.answer_tokens) {
                    self.measured.0 += i64::from(tokens) - 1;
                    self.measured.1 += began.elapsed();
                }
            }
            _ => {}
        }
    }

    /// Formats the tokens of the run: `tokens: 812 prompt, 640 cached, 45 answer, 23.1 tokens/s`. `None` if no server has
    /// counted.
    pub(super) fn line(&self) -> Option<String> {
        let (prompt, completion) = (self.prompt?, self.completion?);
        let cached = self.cached.unwrap_or_default();
        let turns = if self.turns == 1 { String::new() } else { format!(" in {} turns", self.turns) };
        let (tokens, time) = self.measured;
        let speed = (time >= MIN_MEASURED).then(|| {
            let per_second = f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) / time.as_secs_f64();
            format!(", {per_second:.1} tokens/s")
        });
        let speed = speed.unwrap_or_default();
        Some(format!("tokens: prompt {prompt}, of these {cached} cached; answer {completion}{turns}{speed}"))
    }
}

fn add(sum: &mut Option<i64>, tokens: Option<i32>) {
    if let Some(tokens) = tokens {
        *sum = Some(sum.unwrap_or_default() + i64::from(tokens));
    }
}
