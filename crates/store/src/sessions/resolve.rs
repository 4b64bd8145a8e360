//! Finds the session that a person means: by its id, by the start or the end of its id, or by its title.

use kontekst_core::{SessionId, is_named_by};

use super::{SessionError, SessionSummary, Sessions};

/// The shortest part of a generated id that `kontekst run --session` takes for one. A shorter text is more likely the
/// name of a new session.
const MIN_PART: usize = 6;

impl Sessions {
    /// Returns the session that `text` names: an id, the unique start or end of an id, `last` for the newest session that does
    /// not belong to a subagent, a title, or the unique start of a title. Case does not matter in titles.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`] and [`SessionError::Ambiguous`].
    pub fn resolve(&self, text: &str) -> Result<SessionId, SessionError> {
        if let Some(id) = self.by_id(text) {
            return Ok(id);
        }
        let mut sessions = self.list()?;
        if text == "last" {
            let newest = sessions.into_iter().find(|session| session.parent.is_none());
            return newest.map(|session| session.id).ok_or_else(|| not_found(text));
        }
        if text.is_empty() {
            return Err(not_found(text));
        }
        let by_id = sessions.iter().filter(|session| is_named_by(session.id.as_str(), text)).cloned();
        if let Some(id) = self.only(text, by_id.collect())? {
            return Ok(id);
        }
        sessions.retain(|session| session.parent.is_none());
        let overviews = self.overviews(&sessions);
        let titled: Vec<_> =
            sessions.into_iter().zip(overviews.into_iter().map(|overview| overview.title)).collect();
        self.by_title(text, titled)?.ok_or_else(|| not_found(text))
    }

    /// Returns the session that `text` names where a name that nobody has starts a new session: an id, the start or
    /// the end of a generated id with at least six characters, or a title that a person has given. Any title will do, and the start of
    /// one, if `text` cannot be an id.
    ///
    /// Returns `None` if there is no such session.
    ///
    /// # Errors
    ///
    /// [`SessionError::Ambiguous`], and [`SessionError::Path`] if the directory cannot be read.
    pub fn existing(&self, text: &str) -> Result<Option<SessionId>, SessionError> {
        if let Some(id) = self.by_id(text) {
            return Ok(Some(id));
        }
        if text.parse::<SessionId>().is_err() {
            return match self.resolve(text) {
                Err(SessionError::NotFound(_)) => Ok(None),
                found => found.map(Some),
            };
        }
        let sessions = self.list()?;
        let is_part = text.len() >= MIN_PART && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        let is_meant = |id: &SessionId| is_part && id.is_generated() && is_named_by(id.as_str(), text);
        let by_id = sessions.iter().filter(|session| is_meant(&session.id));
        if let Some(id) = self.only(text, by_id.cloned().collect())? {
            return Ok(Some(id));
        }
        let titled = sessions.into_iter().filter_map(|session| {
            let title = session.title.clone()?;
            is_same(&title, text).then_some((session, title))
        });
        self.by_title(text, titled.collect())
    }

    fn by_id(&self, text: &str) -> Option<SessionId> {
        text.parse().ok().filter(|id| self.exists(id))
    }

    /// Returns the session with this title, or else the one whose title starts with `text`.
    fn by_title(
        &self,
        text: &str,
        titled: Vec<(SessionSummary, String)>,
    ) -> Result<Option<SessionId>, SessionError> {
        let wanted = text.trim().to_lowercase();
        if wanted.is_empty() {
            return Ok(None);
        }
        let (whole, others): (Vec<_>, Vec<_>) =
            titled.into_iter().partition(|(_, title)| title.to_lowercase() == wanted);
        let found = if whole.is_empty() {
            others.into_iter().filter(|(_, title)| title.to_lowercase().starts_with(&wanted)).collect()
        } else {
            whole
        };
        self.only(text, found.into_iter().map(|(session, _)| session).collect())
    }

    fn only(&self, text: &str, mut found: Vec<SessionSummary>) -> Result<Option<SessionId>, SessionError> {
        if found.len() < 2 {
            return Ok(found.pop().map(|session| session.id));
        }
        let titles = self.overviews(&found).into_iter().map(|overview| overview.title);
        let found = found.into_iter().map(|session| session.id).zip(titles).collect();
        Err(SessionError::Ambiguous { text: start(text), found })
    }
}

fn is_same(title: &str, text: &str) -> bool {
    title.to_lowercase() == text.to_lowercase()
}

fn not_found(text: &str) -> SessionError {
    SessionError::NotFound(start(text))
}

/// Returns the start of a text for an error message, because it can be megabytes long.
fn start(text: &str) -> String {
    text.chars().take(128).collect()
}
