//! What a door can tell its clients before there is a run.

use std::sync::Arc;

use crate::{config::AgentConfig, core::Name, sessions::Feedback, skills::Skills};

use super::{
    AgentCore, bridge::blocking, prepare::own_tools, protocol::RunError, recorder::storage,
    spawn_tool::SPAWN_WORKER,
};

/// A tool that runs here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonTool {
    pub name: String,
    pub needs_approval: bool,
}

/// The model of a client that asked for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenModel {
    /// For [`StartRun::model`](super::StartRun::model); `None` is the agent's own.
    pub requested: Option<String>,
    /// What answers, as far as can be told without starting it.
    pub name: String,
}

impl AgentCore {
    /// Every tool that runs here, in the order in which models see them.
    pub async fn daemon_tools(&self) -> Vec<DaemonTool> {
        let shared = Arc::clone(&self.shared);
        let mut listing = blocking(move || {
            let tools = own_tools(&shared, Skills::load(&shared.home));
            let mut own: Vec<DaemonTool> = tools
                .iter()
                .map(|tool| DaemonTool { name: tool.def().name, needs_approval: tool.needs_approval() })
                .collect();
            own.push(DaemonTool { name: SPAWN_WORKER.to_owned(), needs_approval: true });
            own
        });
        listing.join().await.unwrap_or_default()
    }

    /// What `agent` will use when it is asked for the model `asked`: that, if there is one of the name,
    /// else its own. Takes up to two seconds when the model server does not answer.
    pub async fn choose_model(&self, agent: &str, asked: &str) -> ChosenModel {
        let (shared, agent, asked) = (Arc::clone(&self.shared), agent.parse::<Name>(), asked.to_owned());
        let mut choosing = blocking(move || {
            // Without the agent no turn can begin, and that will be said then.
            let own = agent.ok().and_then(|agent| AgentConfig::load(&shared.home, &agent).ok());
            let own = own.map(|agent| agent.model).unwrap_or_default();
            choose(&asked, &own, &shared.models.names())
        });
        choosing.join().await.unwrap_or(ChosenModel { requested: None, name: String::new() })
    }

    /// Keeps what a person thinks of an answer.
    ///
    /// # Errors
    ///
    /// [`RunError`] of kind storage when it cannot be written.
    pub async fn store_feedback(&self, feedback: Feedback) -> Result<(), RunError> {
        let shared = Arc::clone(&self.shared);
        let mut keeping = blocking(move || feedback.append(&shared.home).map_err(|error| storage(&error)));
        keeping.join().await?
    }
}

fn choose(asked: &str, own: &str, names: &[String]) -> ChosenModel {
    let known = |name: &str| !name.is_empty() && names.iter().any(|known| same(known, name));
    if known(asked) {
        return ChosenModel { requested: Some(asked.to_owned()), name: asked.to_owned() };
    }
    let name = match names {
        // A server with one model answers with it whatever it is asked for.
        [only] if !known(own) => only.clone(),
        _ if !own.is_empty() => own.to_owned(),
        _ => names.first().cloned().unwrap_or_else(|| "default".to_owned()),
    };
    ChosenModel { requested: None, name }
}

/// Model files may be named with and without their ending.
fn same(known: &str, name: &str) -> bool {
    known.trim_end_matches(".gguf") == name.trim_end_matches(".gguf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_becomes_the_agents_own_and_is_not_passed_on() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let check = |asked: &str, own: &str, there: &[&str], wanted: Option<&str>, name: &str| {
            let chosen = choose(asked, own, &names(there));
            assert_eq!(
                (chosen.requested.as_deref(), chosen.name.as_str()),
                (wanted, name),
                "{asked} {own} {there:?}"
            );
        };
        check("a", "b", &["a", "b"], Some("a"), "a");
        check("a.gguf", "b", &["a", "b"], Some("a.gguf"), "a.gguf");
        check("claude", "b", &["a", "b"], None, "b");
        check("", "b", &["a", "b"], None, "b");
        check("", "", &["a", "b"], None, "a");
        check("claude", "gone", &["a"], None, "a");
        check("claude", "", &[], None, "default");
        check("", "later", &[], None, "later");
    }
}
