//! `[rails]` of an agent: which checks help the model to finish.

use serde::Deserialize;

use super::{MAX_TOKENS, toml_file::optional_integer};

/// `[rails]` in the `config.toml` of an agent. Each rail is on unless its key is `false`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RailsConfig {
    /// The listing of the working directory and the files that the prompt names come with the prompt.
    pub opening: bool,
    /// The request is repeated after each result.
    pub reminder: bool,
    /// The result of a change shows the changed place.
    pub shown: bool,
    /// A model that repeats its calls is told, and then the run ends.
    pub repeats: bool,
    /// An empty answer is asked for again, and so is one of a model in steps that names files as changed which are not.
    pub unfinished: bool,
    /// A model that works in steps cannot call tools of which the run has no use.
    pub offer: bool,
    /// A result takes at most its share of the window.
    pub results: bool,
    /// Calls that the model wrote as text are run.
    pub rescue: bool,
    /// The maximum number of tokens of one thought. `None` means no limit.
    #[serde(deserialize_with = "optional_integer::<_, _, 1, MAX_TOKENS>")]
    pub thinking_budget: Option<u32>,
}

impl RailsConfig {
    /// Every rail off.
    pub const OFF: Self = Self::all(false);

    /// Every rail on or off, and no limit for thoughts.
    const fn all(on: bool) -> Self {
        Self {
            opening: on,
            reminder: on,
            shown: on,
            repeats: on,
            unfinished: on,
            offer: on,
            results: on,
            rescue: on,
            thinking_budget: None,
        }
    }
}

impl Default for RailsConfig {
    /// Every rail on, and no limit for thoughts.
    fn default() -> Self {
        Self::all(true)
    }
}
