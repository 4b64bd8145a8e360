//! Rules that decide byte by byte what an answer may be, as a constraint for the engine.

use kontekst_engine::Constraint;

/// Decides which byte may follow which.
pub(crate) trait ByteRules {
    /// The position in an answer.
    type State: Clone;

    fn start(&self) -> Self::State;

    /// Returns the state after `byte`, or `None` if it may not follow.
    fn step(&self, state: Self::State, byte: u8) -> Option<Self::State>;

    /// Returns true if the model may end its answer there.
    fn may_end(&self, state: &Self::State) -> bool;

    /// Returns true if nothing may follow.
    fn is_complete(&self, state: &Self::State) -> bool;
}

/// A constraint that can be used for several answers, one after the other.
pub(crate) trait Restart: Constraint {
    /// Goes back to the start of the answer.
    fn restart(&mut self);
}

/// An answer that is held to rules.
pub(crate) struct RuleConstraint<R: ByteRules> {
    rules: R,
    state: R::State,
}

impl<R: ByteRules> RuleConstraint<R> {
    pub(crate) fn new(rules: R) -> Self {
        Self { state: rules.start(), rules }
    }

    fn after(&self, bytes: &[u8]) -> Option<R::State> {
        bytes.iter().try_fold(self.state.clone(), |state, &byte| self.rules.step(state, byte))
    }
}

impl<R: ByteRules> Constraint for RuleConstraint<R> {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        self.after(bytes).is_some()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(state) = self.after(bytes) {
            self.state = state;
        }
    }

    fn is_complete(&self) -> bool {
        self.rules.is_complete(&self.state)
    }

    fn may_end(&self) -> bool {
        self.rules.may_end(&self.state)
    }
}

impl<R: ByteRules> Restart for RuleConstraint<R> {
    fn restart(&mut self) {
        self.state = self.rules.start();
    }
}
