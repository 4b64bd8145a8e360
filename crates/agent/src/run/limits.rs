//! The limits of a run: turns, tokens, time and subagents.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use kontekst_core::SessionId;
use kontekst_store::config::{Config, WorkersConfig};

use super::protocol::{FailureKind, RunError};

/// The largest depth of nested subagents: a client's run may start subagents, these may start subagents, and those
/// none.
const MAX_DEPTH: u32 = 2;

/// The limits of one run.
#[derive(Clone)]
pub(crate) struct RunLimits {
    /// The session under whose id the events of all subagents of this run are logged.
    pub(crate) root_session: SessionId,
    /// The number of runs above this one. 0 for a run that a client started.
    pub(crate) depth: u32,
    pub(crate) max_turns: u32,
    /// `None` means no limit.
    pub(crate) token_budget: Option<Arc<TokenBudget>>,
    pub(crate) deadline: Option<Instant>,
    /// The run may start subagents whatever its agent's configuration says.
    pub(crate) subagents_allowed: bool,
    /// The number of subagents that were started by the client's run and all runs below it.
    subagents_started: Arc<AtomicU32>,
}

/// The limits that a model asks for when it starts a subagent. `None` means the configured ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestedLimits {
    pub(crate) turns: Option<u32>,
    pub(crate) tokens: Option<u32>,
    pub(crate) seconds: Option<u32>,
}

impl RunLimits {
    /// Returns the limits of a run that a client started, as opposed to one started by a parent run.
    pub(crate) fn for_client(root_session: SessionId, config: &Config, subagents_allowed: bool) -> Self {
        Self {
            root_session,
            depth: 0,
            max_turns: config.max_turns,
            token_budget: None,
            deadline: None,
            subagents_allowed,
            subagents_started: Arc::default(),
        }
    }

    /// Lowers the maximum number of turns to what the client asked for. It is never raised.
    pub(crate) fn with_max_turns(self, requested: Option<u32>) -> Self {
        let max_turns = requested.map_or(self.max_turns, |requested| requested.clamp(1, self.max_turns));
        Self { max_turns, ..self }
    }

    /// Returns true if this run is not nested too deeply to start a subagent.
    pub(crate) fn may_start_subagents(&self) -> bool {
        self.depth < MAX_DEPTH
    }

    /// Counts one more subagent and returns its limits. They never exceed what is left of this run's own.
    ///
    /// # Errors
    ///
    /// One sentence for the model that says why no subagent can be started.
    pub(crate) fn for_subagent(&self, requested: RequestedLimits, config: &Config) -> Result<Self, String> {
        if !self.may_start_subagents() {
            return Err("a worker of a worker starts no others".to_owned());
        }
        let WorkersConfig { per_run, max_turns, max_tokens, max_seconds, .. } = config.workers;
        let one_more = |started: u32| (started < per_run).then_some(started + 1);
        if self.subagents_started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            return Err(format!("this run has started its {per_run} workers; go on without"));
        }
        let at_most = |requested: Option<u32>, limit: u32| {
            requested.map_or(limit, |requested| requested.clamp(1, limit))
        };
        let deadline = Instant::now() + Duration::from_secs(at_most(requested.seconds, max_seconds).into());
        let tokens = at_most(requested.tokens, max_tokens);
        Ok(Self {
            root_session: self.root_session.clone(),
            depth: self.depth + 1,
            max_turns: at_most(requested.turns, max_turns).min(config.max_turns),
            token_budget: Some(Arc::new(TokenBudget::new(tokens, self.token_budget.clone()))),
            deadline: Some(self.deadline.map_or(deadline, |own| own.min(deadline))),
            subagents_allowed: self.subagents_allowed,
            subagents_started: Arc::clone(&self.subagents_started),
        })
    }

    /// Fails if the token budget is used up.
    pub(crate) fn check_token_budget(&self) -> Result<(), RunError> {
        match &self.token_budget {
            Some(budget) if budget.remaining() == 0 => {
                let message = format!("the run used up its {} tokens", budget.total());
                Err(RunError::new(FailureKind::Limit, message))
            }
            _ => Ok(()),
        }
    }

    /// Lowers the token limit of one answer to what is left of the budget.
    pub(crate) fn limit_answer_tokens(&self, max_tokens: u32) -> u32 {
        self.token_budget.as_ref().map_or(max_tokens, |budget| budget.remaining().min(max_tokens))
    }

    pub(crate) fn spend_tokens(&self, tokens: u32) {
        if let Some(budget) = &self.token_budget {
            budget.spend(tokens);
        }
    }
}

/// The tokens that the model of a subagent may still generate. A subagent spends from its own budget and from
/// its parent's, so that all runs below one never use more than that one was given.
#[derive(Debug)]
pub(crate) struct TokenBudget {
    total: u32,
    remaining: AtomicU32,
    parent: Option<Arc<TokenBudget>>,
}

impl TokenBudget {
    fn new(total: u32, parent: Option<Arc<TokenBudget>>) -> Self {
        Self { total, remaining: AtomicU32::new(total), parent }
    }

    fn total(&self) -> u32 {
        self.total
    }

    fn remaining(&self) -> u32 {
        let own = self.remaining.load(Ordering::Relaxed);
        self.parent.as_ref().map_or(own, |parent| own.min(parent.remaining()))
    }

    /// Subtracts the tokens that were used. If they are more than what remains, nothing remains.
    fn spend(&self, tokens: u32) {
        let subtract = |remaining: u32| Some(remaining.saturating_sub(tokens));
        self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract).ok();
        if let Some(parent) = &self.parent {
            parent.spend(tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_budget_also_spends_the_tokens_of_its_parent() {
        let parent = Arc::new(TokenBudget::new(100, None));
        let child = || TokenBudget::new(80, Some(Arc::clone(&parent)));
        let (a, b) = (child(), child());
        a.spend(70);
        assert_eq!((a.remaining(), b.remaining(), parent.remaining()), (10, 30, 30));
        b.spend(1000);
        assert_eq!((a.remaining(), b.remaining(), parent.remaining()), (0, 0, 0));
        assert_eq!(a.total(), 80);
    }
}
