//! Who started a run, and what it may take and start itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    config::{Config, WorkersConfig},
    core::SessionId,
    tools::{ToolBox, WorkDir},
};

use super::token_budget::TokenBudget;

/// How deep workers go: those of a client's run may have workers, and these have none.
const MAX_DEPTH: u32 = 2;

/// Where a run comes from.
pub(super) enum Origin {
    Client,
    /// Another run, whose rights it has and no others.
    Parent(Box<ParentContext>),
}

/// What a worker has from its parent.
pub(super) struct ParentContext {
    pub(super) place: Arc<WorkDir>,
    /// All of the parent's tools but the one that starts workers.
    pub(super) tools: ToolBox,
    pub(super) parent: SessionId,
    pub(super) standing: RunLimits,
}

/// A run's place in its team, and its budget.
#[derive(Clone)]
pub(super) struct RunLimits {
    pub(super) team: SessionId,
    /// 0 for a client's run.
    pub(super) depth: u32,
    /// Model calls it may make.
    pub(super) turns: u32,
    /// `None` is no limit.
    pub(super) purse: Option<Arc<TokenBudget>>,
    /// When its time is over.
    pub(super) deadline: Option<Instant>,
    /// Workers are offered whatever its agent says.
    pub(super) asked_for: bool,
    /// Workers that the team's run has started.
    started: Arc<AtomicU32>,
}

/// What a worker is to have at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestedLimits {
    pub(super) turns: Option<u32>,
    pub(super) tokens: Option<u32>,
    pub(super) seconds: Option<u32>,
}

impl RunLimits {
    /// Of a client's run.
    pub(super) fn of_client(team: SessionId, config: &Config, asked_for: bool) -> Self {
        Self {
            team,
            depth: 0,
            turns: config.max_turns,
            purse: None,
            deadline: None,
            asked_for,
            started: Arc::default(),
        }
    }

    /// With no more model calls than its client wants.
    pub(super) fn within(self, turns: Option<u32>) -> Self {
        let turns = turns.map_or(self.turns, |turns| turns.clamp(1, self.turns));
        Self { turns, ..self }
    }

    /// Whether it may start workers, as far as its depth goes.
    pub(super) fn may_start(&self) -> bool {
        self.depth < MAX_DEPTH
    }

    /// Of a worker that this run starts now, with no more than what is left of this one's budget.
    ///
    /// # Errors
    ///
    /// A sentence for the model.
    pub(super) fn of_worker(&self, wanted: RequestedLimits, config: &Config) -> Result<Self, String> {
        if !self.may_start() {
            return Err("a worker of a worker starts no others".to_owned());
        }
        let WorkersConfig { per_run, max_turns, max_tokens, max_seconds, .. } = config.workers;
        let one_more = |started: u32| (started < per_run).then_some(started + 1);
        if self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            return Err(format!("this run has started its {per_run} workers; go on without"));
        }
        let at_most = |wanted: Option<u32>, limit: u32| wanted.map_or(limit, |wanted| wanted.clamp(1, limit));
        let seconds = Duration::from_secs(at_most(wanted.seconds, max_seconds).into());
        let deadline = Instant::now() + seconds;
        Ok(Self {
            team: self.team.clone(),
            depth: self.depth + 1,
            turns: at_most(wanted.turns, max_turns).min(config.max_turns),
            purse: Some(Arc::new(TokenBudget::new(at_most(wanted.tokens, max_tokens), self.purse.clone()))),
            deadline: Some(self.deadline.map_or(deadline, |parents| parents.min(deadline))),
            asked_for: self.asked_for,
            started: Arc::clone(&self.started),
        })
    }

    /// Tokens that the next answer may take, of the `wanted` ones.
    pub(super) fn tokens(&self, wanted: u32) -> u32 {
        self.purse.as_ref().map_or(wanted, |purse| purse.remaining().min(wanted))
    }
}
