//! The window of one run: system text, tools, history and memory.

use crate::core::{ContextSnapshot, Message, MessageStats, Role, Source};

use super::Budget;

/// The messages of one run and what they cost.
///
/// History is what earlier runs said, memory is what this one says. Both only grow at the end, so
/// that each prompt starts with the one before it; when the window would overflow, whole exchanges
/// leave at the start, in one large step.
#[derive(Debug)]
pub struct Window {
    budget: Budget,
    history_budget: u32,
    history: Vec<Message>,
    memory: Vec<Message>,
    /// What the server's chat template adds, learned from its own count.
    overhead: u32,
}

/// What [`Window::fit`] had to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Messages of earlier runs that are no longer sent.
    pub history: usize,
    /// Tool outputs of this run that are no longer sent in full.
    pub outputs: usize,
}

/// What stands in for a tool output that had to go.
const ELIDED: &str = "[this output was dropped to make room; call the tool again if it is needed]";

impl Window {
    /// `history` starts at a user message and was chosen to take at most `history_budget` tokens.
    pub fn new(budget: Budget, history_budget: u32, history: Vec<Message>) -> Self {
        Self { budget, history_budget, history, memory: Vec::new(), overhead: 0 }
    }

    /// Adds a message of this run. Its `tokens` must be set.
    pub fn push(&mut self, message: Message) {
        self.memory.push(message);
    }

    /// Whether a prompt of so many tokens would leave the history little room: it takes more than four
    /// fifths of what there is, and what there is is worth a summary.
    pub fn crowded(&self, prompt: u32) -> bool {
        let room = self.budget.messages();
        !self.history.is_empty() && room >= 1200 && sum(&self.history).saturating_add(prompt) > room / 5 * 4
    }

    /// Messages of the history.
    pub fn history_messages(&self) -> usize {
        self.history.len()
    }

    /// Tokens that a summary of the history may take.
    pub fn summary_limit(&self) -> u32 {
        (self.budget.messages() / 6).clamp(64, 1024)
    }

    /// Puts a summary in place of the history; gives the tokens before and after.
    pub fn compact(&mut self, summary: impl IntoIterator<Item = Message>) -> (u32, u32) {
        let before = sum(&self.history);
        self.history = summary.into_iter().collect();
        (before, sum(&self.history))
    }

    /// Tokens that one more tool output may take: three quarters of what is left, so that the model can
    /// still answer. At least 64, for a sentence.
    pub fn output_limit(&self) -> u32 {
        let share = self.budget.context_size.saturating_sub(self.budget.reply);
        (share.saturating_sub(self.prompt_tokens()) / 4 * 3).max(64)
    }

    /// Corrects the newest user message once it has been counted.
    pub fn set_prompt_tokens(&mut self, tokens: u32) {
        if let Some(prompt) = self.memory.iter_mut().rfind(|message| message.role == Role::User) {
            prompt.tokens = tokens;
        }
    }

    /// What the chat template is known to add, until the server's own count says more.
    pub fn expect_overhead(&mut self, tokens: u32) {
        self.overhead = tokens;
    }

    /// Learns from the server's count of the prompt just sent.
    pub fn correct(&mut self, prompt_tokens: u32) {
        let ours = self.budget.system + self.budget.tools + sum(&self.history) + sum(&self.memory);
        self.overhead = prompt_tokens.saturating_sub(ours);
    }

    /// Tokens that the next prompt takes, as far as known.
    pub fn prompt_tokens(&self) -> u32 {
        self.budget.system + self.budget.tools + sum(&self.history) + sum(&self.memory) + self.overhead
    }

    /// Makes room for the next answer.
    ///
    /// When prompt and reply no longer fit, history leaves first, at user-message boundaries, until
    /// the prompt takes 70 % of its share; then the oldest tool outputs of this run, the newest turn's
    /// excepted. One large step instead of many small ones, because each costs the server its cache.
    pub fn fit(&mut self) -> Dropped {
        let share = self.budget.context_size.saturating_sub(self.budget.reply);
        self.shrink(share, share / 10 * 7)
    }

    /// Makes room after the server refused a prompt of `prompt_tokens` for its `window`.
    ///
    /// Gives `None` when there is nothing left that may go.
    pub fn overflowed(&mut self, prompt_tokens: u32, window: u32) -> Option<Dropped> {
        self.correct(prompt_tokens);
        self.budget.context_size = self.budget.context_size.min(window);
        let share = window.saturating_sub(self.budget.reply);
        let goal = share.min(prompt_tokens.saturating_sub(1)) / 10 * 7;
        let dropped = self.shrink(goal, goal);
        (dropped != Dropped::default()).then_some(dropped)
    }

    fn shrink(&mut self, limit: u32, goal: u32) -> Dropped {
        let mut dropped = Dropped::default();
        if self.prompt_tokens() <= limit {
            return dropped;
        }
        while self.prompt_tokens() > goal && !self.history.is_empty() {
            let next = self.history.iter().skip(1).position(|message| message.role == Role::User);
            let cut = next.map_or(self.history.len(), |at| at + 1);
            self.history.drain(..cut);
            dropped.history += cut;
        }
        let last_turn = self.memory.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0);
        for at in 0..last_turn {
            if self.prompt_tokens() <= goal {
                break;
            }
            let message = &mut self.memory[at];
            let Some(result) = &mut message.tool_result else { continue };
            if result.output.len() <= ELIDED.len() {
                continue;
            }
            ELIDED.clone_into(&mut result.output);
            message.tokens = message.tokens.min(20);
            dropped.outputs += 1;
        }
        dropped
    }

    /// What is sent: history, then memory.
    pub fn messages(&self) -> Vec<Message> {
        self.history.iter().chain(&self.memory).cloned().collect()
    }

    /// What was said, for the runs to come: with `prompt` as what the user said in this run, whatever the
    /// model was shown beside it.
    pub fn said(&self, prompt: Option<&str>) -> Vec<Message> {
        let mut messages = self.messages();
        let asked = messages[self.history.len()..].iter_mut().rfind(|message| message.role == Role::User);
        if let (Some(asked), Some(prompt)) = (asked, prompt) {
            prompt.clone_into(&mut asked.content);
            asked.tokens = 0;
        }
        messages
    }

    pub fn snapshot(&self) -> ContextSnapshot {
        let stats = |source| {
            move |message: &Message| MessageStats { role: message.role, tokens: message.tokens, source }
        };
        let system = MessageStats { role: Role::System, tokens: self.budget.system, source: Source::System };
        let messages = std::iter::once(system)
            .chain(self.history.iter().map(stats(Source::History)))
            .chain(self.memory.iter().map(stats(Source::Memory)))
            .collect();
        ContextSnapshot {
            context_size: self.budget.context_size,
            system_tokens: self.budget.system,
            tool_tokens: self.budget.tools,
            history_tokens: sum(&self.history),
            memory_tokens: sum(&self.memory),
            history_budget: self.history_budget,
            messages,
            prompt_tokens: None,
            cached_tokens: None,
            answer_tokens: None,
        }
    }
}

fn sum(messages: &[Message]) -> u32 {
    messages.iter().fold(0, |total, message| total.saturating_add(message.tokens))
}

#[cfg(test)]
mod tests {
    use crate::core::{CallId, ToolResult};

    use super::*;

    fn message(role: Role, tokens: u32) -> Message {
        Message { tokens, ..Message::text(role, "x") }
    }

    fn output(tokens: u32) -> Message {
        let result = ToolResult {
            call_id: CallId::local(),
            name: "read_file".into(),
            output: "y".repeat(tokens as usize * 4),
            is_error: false,
        };
        Message { tokens, ..Message::result(result) }
    }

    fn window(size: u32, exchanges: u32) -> Window {
        let history =
            (0..exchanges).flat_map(|_| [message(Role::User, 50), message(Role::Assistant, 50)]).collect();
        Window::new(Budget::new(size, 100, 100, 100), size, history)
    }

    #[test]
    fn the_snapshot_adds_up() {
        let mut window = window(2000, 3);
        window.push(message(Role::User, 30));
        let snapshot = window.snapshot();
        assert_eq!(snapshot.total_tokens(), 100 + 100 + 300 + 30);
        assert_eq!(snapshot.remaining_tokens(), 2000 - 530);
        assert_eq!(snapshot.messages.len(), 1 + 6 + 1);
        assert_eq!(
            (snapshot.count(Source::System), snapshot.count(Source::History), snapshot.count(Source::Memory)),
            (1, 6, 1)
        );
    }

    #[test]
    fn what_fits_is_left_alone() {
        let mut window = window(2000, 3);
        assert_eq!(window.fit(), Dropped::default());
        assert_eq!(window.messages().len(), 6);
    }

    #[test]
    fn history_leaves_in_one_large_step_and_starts_at_a_user_message() {
        let mut window = window(1000, 8);
        window.push(message(Role::User, 50));
        let dropped = window.fit();
        assert_eq!(dropped, Dropped { history: 10, outputs: 0 });
        assert_eq!(window.messages()[0].role, Role::User);
        assert!(window.prompt_tokens() <= 900 / 10 * 7);
    }

    #[test]
    fn then_old_outputs_go_but_never_the_newest_turns() {
        let mut window = window(1000, 1);
        window.push(message(Role::User, 50));
        for _ in 0..2 {
            window.push(message(Role::Assistant, 10));
            window.push(output(400));
        }
        assert_eq!(window.fit(), Dropped { history: 2, outputs: 1 });
        let outputs: Vec<usize> =
            window.messages().iter().filter_map(|m| m.tool_result.as_ref()).map(|r| r.output.len()).collect();
        assert_eq!(outputs, [ELIDED.len(), 1600]);
    }

    #[test]
    fn the_servers_count_is_believed() {
        let mut window = window(1000, 4);
        window.push(message(Role::User, 10));
        window.correct(1_000);
        assert_eq!(window.prompt_tokens(), 1_000);
        assert!(window.fit().history > 0);
    }

    #[test]
    fn an_overflow_always_makes_progress_or_gives_up() {
        let mut window = window(1000, 4);
        window.push(message(Role::User, 10));
        let mut rounds = 0;
        while window.overflowed(5_000, 1_000).is_some() {
            rounds += 1;
            assert!(rounds < 10);
        }
        assert_eq!(window.messages().len(), 1);
    }
}
