//! Several servers with the same models: the first that can answers.

use std::sync::Arc;

use super::{
    ChatRequest, Delta, Progress, Provider, ProviderError, Turn, endpoint::Endpoint, openai::OpenAiProvider,
};
use crate::core::Cancel;

/// One model at several servers. A request goes to the first of them; to the next one when that cannot
/// answer, as long as nothing of an answer has come.
///
/// Always the same order, not in turns: a server that has read a conversation answers it sooner.
pub struct FailoverGroup {
    endpoints: Arc<[Endpoint]>,
    model: String,
    /// Counts, and knows the window.
    first: Arc<OpenAiProvider>,
}

impl FailoverGroup {
    /// # Errors
    ///
    /// The last server's, when none of them is there.
    pub fn open(
        endpoints: &Arc<[Endpoint]>,
        model: &str,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Self, ProviderError> {
        let mut failure = ProviderError::Cancelled;
        for endpoint in healthy_first(endpoints) {
            match endpoint.open(model, cancel, sink) {
                Ok(first) => {
                    return Ok(Self { endpoints: Arc::clone(endpoints), model: model.to_owned(), first });
                }
                Err(ProviderError::Cancelled) => return Err(ProviderError::Cancelled),
                Err(error) => {
                    endpoint.mark_unhealthy();
                    failure = error;
                }
            }
        }
        Err(failure)
    }
}

/// Those that failed not long ago come last.
fn healthy_first(endpoints: &[Endpoint]) -> impl Iterator<Item = &Endpoint> {
    let (good, shunned): (Vec<_>, Vec<_>) = endpoints.iter().partition(|endpoint| !endpoint.is_unhealthy());
    good.into_iter().chain(shunned)
}

/// Another server may do better. What is wrong with the request is wrong everywhere.
fn should_fail_over(error: &ProviderError) -> bool {
    match error {
        ProviderError::Unreachable { .. } | ProviderError::Protocol(_) | ProviderError::NoServer(_) => true,
        ProviderError::Status { status, .. } => !matches!(status, 400 | 413 | 422),
        ProviderError::Cancelled | ProviderError::Overflow { .. } | ProviderError::Engine(_) => false,
    }
}

impl Provider for FailoverGroup {
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let mut failure = ProviderError::Cancelled;
        for endpoint in healthy_first(&self.endpoints) {
            let mut started = false;
            let mut sink = |delta: Delta| {
                started |= !matches!(delta, Delta::Progress(_));
                sink(delta);
            };
            let opened = endpoint.open(&self.model, cancel, &mut |told| sink(Delta::Progress(told)));
            match opened.and_then(|provider| provider.generate(request, cancel, &mut sink)) {
                Err(error) if !started && should_fail_over(&error) => {
                    tracing::warn!(endpoint = endpoint.client().base(), %error, "asking the next server");
                    endpoint.mark_unhealthy();
                    failure = error;
                }
                turn => return turn,
            }
        }
        Err(failure)
    }

    fn count_tokens(&self, texts: &[&str], cancel: &Cancel) -> Vec<u32> {
        self.first.count_tokens(texts, cancel)
    }

    fn template_tokens(&self, messages: usize, cancel: &Cancel) -> u32 {
        self.first.template_tokens(messages, cancel)
    }

    fn window(&self) -> Option<u32> {
        self.first.window()
    }

    fn can_force_tool(&self) -> bool {
        self.first.can_force_tool()
    }

    fn tools_in_prompt(&self) -> bool {
        self.first.tools_in_prompt()
    }

    fn slots(&self) -> usize {
        self.first.slots()
    }
}
