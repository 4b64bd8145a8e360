//! The names of tools as models write them.

use std::collections::HashSet;

/// The name spaces that servers and prompts put in front of the name of a tool.
const NAME_SPACES: [&str; 6] = ["functions.", "function.", "tools.", "tool.", "default_api.", "api."];

/// The names of the tools that a model may call.
#[derive(Debug, Default)]
pub struct ToolNames(HashSet<String>);

impl ToolNames {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(normalized_name).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a tool has this name, apart from a name space and from the spelling that [`normalized_name`] drops.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(&normalized_name(name)) || self.0.contains(&normalized_name(without_name_space(name)))
    }

    /// Returns true if `beginning` may become the name of a tool.
    pub fn may_begin(&self, beginning: &str) -> bool {
        let begins = |name: &str| {
            let name = normalized_name(name);
            self.0.iter().any(|known| known.starts_with(&name))
        };
        NAME_SPACES.iter().any(|space| space.starts_with(beginning))
            || begins(beginning)
            || begins(without_name_space(beginning))
    }
}

/// Returns the name without `-`, `_` and spaces and in lower case, because models are not exact about them.
pub fn normalized_name(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Returns the name without a name space such as `functions.`.
pub fn without_name_space(name: &str) -> &str {
    let name = name.trim();
    NAME_SPACES.iter().find_map(|space| name.strip_prefix(space)).unwrap_or(name)
}
