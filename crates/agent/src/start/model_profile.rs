//! Sets the settings that an agent leaves open to those that work best with the model that answers.

use kontekst_models::{families::family_calling, profile::Profile};
use kontekst_store::config::{Home, ToolRole};

use crate::state::RunModel;

/// Sets the way of calling tools and the temperature that the agent and the request leave open: to those of the model's
/// profile, or else the way of calling to that of its family. What is still open then is decided by the provider. Nothing is
/// set in a run without rails.
pub(super) fn fill_in(model: &mut RunModel, home: &Home) {
    let agent = &mut model.agent;
    if model.bare || agent.tool_role != ToolRole::Auto && agent.sampling.temperature.is_some() {
        return;
    }
    let Some(identity) = model.provider.capabilities().identity else { return };
    let profile = Profile::find(home, &identity);
    if agent.tool_role == ToolRole::Auto
        && let Some(calling) =
            profile.as_ref().and_then(|profile| profile.calling).or_else(|| family_calling(&identity.name()))
    {
        tracing::debug!(
            model = identity.name(),
            calling = calling.as_str(),
            "a way of calling tools is known"
        );
        agent.tool_role = calling.tool_role();
    }
    if agent.sampling.temperature.is_none() {
        agent.sampling.temperature = profile.and_then(|profile| profile.temperature);
    }
}
