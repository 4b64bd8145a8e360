//! The model in this process: for a machine that has nothing else, and for files where there is no llama-server.

mod answer;
mod asset;
mod bytewise;
mod call;
mod grammar;
mod grounds;
mod model;
mod numbers;
mod open_models;
mod report;
mod template;

use std::sync::Arc;

use self::model::Model;
pub use self::{
    asset::{BYTES, NAME, notice},
    open_models::{NotOpened, OpenModels, Settings, Which},
};
use super::{ChatRequest, Delta, Provider, ProviderError, Shown, Turn};
use crate::core::Cancel;

/// What `general.architecture` says in files that the engine can run.
pub use crate::engine::ARCHITECTURES;

/// The engine is part of this program.
pub const AVAILABLE: bool = true;

/// An open model, as one run has it.
struct InProcess {
    model: Arc<Model>,
    /// What its user should read.
    notice: Option<String>,
}

impl Provider for InProcess {
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        self.model.generate(request, cancel, sink)
    }

    fn count_tokens(&self, texts: &[&str], _: &Cancel) -> Vec<u32> {
        let estimate = |text: &&str| u32::try_from(text.len() / 4).unwrap_or(u32::MAX);
        self.model.count(texts).unwrap_or_else(|| texts.iter().map(estimate).collect())
    }

    fn template_tokens(&self, messages: usize, _: &Cancel) -> u32 {
        self.model.overhead(messages).unwrap_or(0)
    }

    fn window(&self) -> Option<u32> {
        Some(self.model.window())
    }

    fn can_force_tool(&self) -> bool {
        true
    }

    fn slots(&self) -> usize {
        self.model.slots().limit()
    }

    fn shown(&self) -> Shown {
        let traits = self.model.template().traits();
        let all = !traits.by_heart();
        Shown { system: all || traits.shows_system(), tools: all, history: all || traits.history }
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }
}
