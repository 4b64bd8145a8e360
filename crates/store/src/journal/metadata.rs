//! The modification time and the extended attributes of a file.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::os_text;

/// The modification time and the extended attributes of a file. Something that is not known, because an earlier version has
/// recorded the file or because it is too large, is `None` and is not restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The time of the last modification, in seconds and nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<(i64, i64)>,
    /// The extended attributes `user.*`, sorted by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<Attribute>>,
}

/// An extended attribute. Both are bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attribute {
    #[serde(with = "os_text")]
    pub name: OsString,
    #[serde(with = "os_text")]
    pub value: OsString,
}

impl Metadata {
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Goes back from `now` through a change from `before` to `after`. What somebody else has set since stays, but for the time
    /// of a content that goes back with it.
    #[must_use]
    pub fn before(before: &Self, after: &Self, now: &Self, is_same_content: bool) -> Self {
        let time_after = after.modified.filter(|_| is_same_content);
        Self {
            modified: earlier(&before.modified, &time_after, &now.modified),
            attributes: earlier(&before.attributes, &after.attributes, &now.attributes),
        }
    }
}

fn earlier<T: Clone + PartialEq>(before: &Option<T>, after: &Option<T>, now: &Option<T>) -> Option<T> {
    let is_set_since = after.is_some() && after != now;
    if before.is_none() || is_set_since { now.clone() } else { before.clone() }
}
