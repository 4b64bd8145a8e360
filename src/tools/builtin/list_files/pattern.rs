//! A glob, and where in the tree it can match.

use globset::{GlobBuilder, GlobSet};

use crate::tools::Workspace;

/// A glob over paths relative to the root.
pub struct Pattern {
    matcher: GlobSet,
    /// The directory that every match is in; empty is the root.
    base: String,
    /// Levels below `base` that can match; `None` is any.
    depth: Option<usize>,
    /// The whole path, when there is nothing to match in it.
    literal: Option<String>,
    /// Whether directories are listed, and not files.
    pub directories: bool,
    /// Whether the last part is a plain name: then it is listed although it is ignored.
    pub ends_in_literal: bool,
}

impl Pattern {
    /// # Errors
    ///
    /// One sentence for the model.
    pub fn parse(given: &str, workspace: &Workspace) -> Result<Self, String> {
        let parts = workspace
            .pattern_parts(given)
            .map_err(|why| format!("the pattern `{}` {why}", given.chars().take(128).collect::<String>()))?;
        // Braces may hold a `/`: such parts are not names, though they look so one by one.
        let plain = parts.iter().take_while(|part| is_plain(part)).count();
        let base = parts[..plain.min(parts.len().saturating_sub(1))].join("/");
        let depth = (!given.contains("**")).then(|| parts.len() - count_parts(&base));
        let glob = GlobBuilder::new(&parts.join("/")).literal_separator(true).build();
        // A set of one: unlike a lone matcher it says so when the pattern is too large to compile.
        let matcher = glob
            .and_then(|glob| GlobSet::new([glob]))
            .map_err(|error| format!("the pattern `{given}` is not a glob: {}", error.kind()))?;
        Ok(Self {
            matcher,
            base,
            depth,
            literal: (plain == parts.len() && !given.ends_with('/')).then(|| parts.join("/")),
            directories: given.ends_with('/') && !parts.is_empty(),
            ends_in_literal: parts.last().is_some_and(|part| is_plain(part)),
        })
    }

    /// Everything directly in the directory `name`.
    pub fn children_of(name: &str, workspace: &Workspace) -> Result<Self, String> {
        let pattern = if name.is_empty() { "*".to_owned() } else { format!("{name}/*") };
        Self::parse(&pattern, workspace)
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// The path itself when it has nothing to match in it.
    pub fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    pub fn matches(&self, path: &str) -> bool {
        self.matcher.is_match(path)
    }

    /// Whether anything `levels` directories below the base can match. The base's own entries are at 0.
    pub fn can_match_at(&self, levels: usize) -> bool {
        self.depth.is_none_or(|depth| levels < depth)
    }
}

fn is_plain(part: &str) -> bool {
    !part.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

fn count_parts(path: &str) -> usize {
    if path.is_empty() { 0 } else { path.split('/').count() }
}
