//! A constraint that goes from byte to byte.

use crate::engine::Constraint;

/// What may follow what.
pub trait Rules {
    /// Where in an answer.
    type At: Clone;

    fn start(&self) -> Self::At;

    /// Where `byte` leads, if it may come.
    fn step(&self, at: Self::At, byte: u8) -> Option<Self::At>;

    /// Whether the model may end its answer there.
    fn may_end(&self, at: &Self::At) -> bool;

    /// Whether nothing may follow.
    fn complete(&self, at: &Self::At) -> bool;

    /// How much less likely what led there is than the model takes it to be, as a natural logarithm. It may only
    /// grow; what is doubted no more counts as nothing new.
    fn doubt(&self, _: &Self::At) -> f32 {
        0.0
    }
}

/// An answer that is held to rules.
pub struct Bytewise<R: Rules> {
    rules: R,
    at: R::At,
}

impl<R: Rules> Bytewise<R> {
    pub fn new(rules: R) -> Self {
        Self { at: rules.start(), rules }
    }

    fn after(&self, bytes: &[u8]) -> Option<R::At> {
        bytes.iter().try_fold(self.at.clone(), |at, &byte| self.rules.step(at, byte))
    }
}

impl<R: Rules> Constraint for Bytewise<R> {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        self.after(bytes).is_some()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(at) = self.after(bytes) {
            self.at = at;
        }
    }

    fn doubt(&mut self, bytes: &[u8]) -> f32 {
        let after = self.after(bytes).map_or(f32::INFINITY, |at| self.rules.doubt(&at));
        (after - self.rules.doubt(&self.at)).max(0.0)
    }

    fn complete(&self) -> bool {
        self.rules.complete(&self.at)
    }

    fn may_end(&self) -> bool {
        self.rules.may_end(&self.at)
    }

    fn restart(&mut self) {
        self.at = self.rules.start();
    }
}
