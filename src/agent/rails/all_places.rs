//! Turns back an edit of all places of a text where the request does not say that all are meant.
//!
//! Told that a text stands in a file several times, small models replace all of them.

use std::collections::HashSet;

use serde_json::Value;

use super::change_request::has_word;
use crate::tools::Change;

/// The words of a request that may mean all places, in lower case. "Replace" and "rename" do without more words.
const ALL: [&str; 26] = [
    "all",
    "any",
    "anywhere",
    "both",
    "each",
    "every",
    "everything",
    "everywhere",
    "globally",
    "instances",
    "occurrences",
    "rename",
    "renamed",
    "replace",
    "throughout",
    "uses",
    "wherever",
    "whole",
    "alle",
    "allen",
    "beide",
    "ersetze",
    "jede",
    "jedes",
    "überall",
    "umbenennen",
];

/// Judges the edits of a run.
pub(in crate::agent) struct AllPlaces {
    may_mean_all: bool,
    /// Files of which an edit was turned back. The next one is carried out.
    turned_back: HashSet<String>,
}

impl AllPlaces {
    pub(super) fn new(request: &str) -> Self {
        Self { may_mean_all: has_word(request, &ALL), turned_back: HashSet::new() }
    }

    /// Judges an edit with the arguments `args`. Returns the reason why it is turned back.
    pub(in crate::agent) fn judge(&mut self, change: &Change, args: &Value) -> Option<String> {
        if self.may_mean_all || args["replace_all"] != Value::Bool(true) {
            return None;
        }
        let old = String::from_utf8_lossy(change.old.as_deref()?);
        let count = old.matches(args["old_str"].as_str().filter(|text| !text.is_empty())?).count();
        if count < 2 || !self.turned_back.insert(change.path.clone()) {
            return None;
        }
        let path = &change.path;
        Some(format!(
            "Nothing was changed: old_str stands in {path} {count} times, and the request does not say that all of them \
             are meant. To change one, add the lines around it to old_str and new_str. To change all of them, call \
             edit_file again with replace_all: true."
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the answers to two equal edits of all places.
    fn judged(request: &str, old: &str, args: &Value) -> [bool; 2] {
        let change = Change { path: "a.ini".into(), old: Some(old.into()), new: "".into() };
        let mut places = AllPlaces::new(request);
        [(); 2].map(|()| places.judge(&change, args).is_some())
    }

    #[test]
    fn all_places_are_changed_once_the_model_insists() {
        let args = json!({"old_str": "t = 1", "replace_all": true});
        let twice = "[a]\nt = 1\n[b]\nt = 1\n";
        assert_eq!(judged("set the t of b to 2", twice, &args), [true, false]);
        for (request, content) in [
            ("set every t to 2", twice),
            ("rename t to u", twice),
            ("Replace t by u!", twice),
            ("set the t of b to 2", "[a]\nt = 1\n"),
        ] {
            assert_eq!(judged(request, content, &args), [false, false], "{request}");
        }
        for args in [json!({"old_str": "t = 1"}), json!({"old_str": "", "replace_all": true}), json!({})] {
            assert_eq!(judged("set the t of b to 2", twice, &args), [false, false], "{args}");
        }
    }
}
