//! Has the model write a small file anew as text, after an edit of it has failed.
//!
//! Small models copy a file with one change in it more reliably than they say as JSON what takes the place of what: a model
//! of 0.5 billion parameters edited 13 of 16 small files rightly in this way, and 4 with calls. The request is a
//! conversation of its own, because with their steps before it these models go on to write JSON.

use std::collections::HashMap;

use serde_json::json;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{EDIT_FILE, changed_place::equal_ends};
use crate::core::{CallId, ToolCall};

/// A larger file takes a small model too long, in bytes. It would also begin to leave parts out.
pub(in crate::agent) const MAX_FILE: u64 = 3000;
/// Models with fewer parameters write a file anew in place of their first change of it.
pub(in crate::agent) const VERY_SMALL_MODEL: u64 = 1_000_000_000;
/// A longer request leaves the model no room for the file, in bytes.
const MAX_REQUEST: usize = 2000;
/// The maximum number of times that one file is written anew in a run.
const MAX_TIMES: u32 = 2;
/// The tokens of an answer in addition to those of the file as it is.
const ADDED_TOKENS: u32 = 500;

/// The files of a run that are written anew.
#[derive(Default)]
pub(in crate::agent) struct Rewrites {
    /// The words of the user.
    request: String,
    /// The number of times that each file was to be written anew.
    times: HashMap<String, u32>,
    next: Option<Rewrite>,
}

impl Rewrites {
    pub(super) fn new(request: &str) -> Self {
        let request = if request.len() > MAX_REQUEST { "" } else { request.trim() };
        Self { request: request.to_owned(), ..Self::default() }
    }

    /// Has the next answer be this file, unless it was tried too often or the request cannot be repeated.
    pub(in crate::agent) fn plan(&mut self, path: &str, content: &str) {
        if self.request.is_empty() || content.trim().is_empty() {
            return;
        }
        let times = self.times.entry(path.to_owned()).or_default();
        *times += 1;
        self.next = (*times <= MAX_TIMES).then(|| Rewrite {
            path: path.to_owned(),
            content: content.replace("\r\n", "\n"),
            request: self.request.clone(),
        });
    }

    /// Returns true if the model was to write this file anew before.
    pub(in crate::agent) fn has(&self, path: &str) -> bool {
        self.times.contains_key(path)
    }

    /// Returns the file that the model is to write in place of its next step.
    pub(in crate::agent) fn take(&mut self) -> Option<Rewrite> {
        self.next.take()
    }
}

/// A file that the model is to write anew.
pub(in crate::agent) struct Rewrite {
    path: String,
    /// The content now, with line feeds.
    content: String,
    request: String,
}

impl Rewrite {
    /// Returns the message to the model.
    pub(in crate::agent) fn message(&self) -> String {
        let Self { path, content, request } = self;
        let fence = fence_for(content);
        let content = content.trim_end_matches('\n');
        format!(
            "{path}:\n{fence}\n{content}\n{fence}\n\n{request}\n\nChange nothing else. Write the new content of {path}, \
             all of it, in one code block."
        )
    }

    /// Returns the most tokens that the answer may have. A token has two bytes at least on average.
    pub(in crate::agent) fn max_tokens(&self) -> u32 {
        u32::try_from(self.content.len() / 2).unwrap_or(u32::MAX).saturating_add(ADDED_TOKENS)
    }

    /// Returns the edit that makes of the file what the answer has. `None` if the answer has no whole block of code, if
    /// nothing would change, or if more than half of the file would be gone, which is a file that was not finished.
    pub(in crate::agent) fn call(&self, answer: &str) -> Option<ToolCall> {
        let block = code_block(answer, fence_for(&self.content))?;
        let old: Vec<&str> = self.content.lines().collect();
        let mut new: Vec<&str> = block.lines().collect();
        let heads = [self.path.as_str(), &format!("{}:", self.path)];
        if new.first().is_some_and(|line| heads.contains(line)) && old.first() != new.first() {
            new.remove(0);
        }
        let size = |lines: &[&str]| lines.iter().map(|line| line.trim().len()).sum::<usize>();
        if size(&new) * 2 < size(&old) {
            return None;
        }
        let (old_str, new_str, replace_all) = self.edit(&old, &new)?;
        let mut arguments = json!({"path": self.path, "old_str": old_str, "new_str": new_str});
        if replace_all {
            arguments["replace_all"] = json!(true);
        }
        let name = EDIT_FILE.to_owned();
        Some(ToolCall { id: CallId::local(), name, arguments: arguments.to_string() })
    }

    /// Returns the text that is replaced, the one that takes its place, and true if it is replaced at all its places.
    fn edit(&self, old: &[&str], new: &[&str]) -> Option<(String, String, bool)> {
        let (before, after) = equal_ends(old, new);
        if before == old.len() && before == new.len() {
            return None;
        }
        if let Some((from, to)) = self.equal_changes(old, new) {
            return Some((from, to, true));
        }
        let (mut first, mut last, mut new_last) = (before, old.len() - after, new.len() - after);
        loop {
            let old_str = old[first..last].join("\n");
            let is_found = !old_str.is_empty() && self.content.matches(&old_str).count() == 1;
            if is_found && new_last > first {
                return Some((old_str, new[first..new_last].join("\n"), false));
            }
            if first > 0 {
                first -= 1;
            } else if last < old.len() {
                (last, new_last) = (last + 1, new_last + 1);
            } else {
                return None;
            }
        }
    }

    /// Returns what is replaced by what if the same lines are changed in the same way at several places, and at all places
    /// at which they stand.
    fn equal_changes(&self, old: &[&str], new: &[&str]) -> Option<(String, String)> {
        let changed: Vec<(String, String)> = capture_diff_slices(Algorithm::Myers, old, new)
            .iter()
            .filter(|op| !matches!(op, DiffOp::Equal { .. }))
            .map(|op| (old[op.old_range()].join("\n"), new[op.new_range()].join("\n")))
            .collect();
        let (from, to) = changed.first()?;
        let is_everywhere = changed.len() > 1
            && !from.is_empty()
            && changed.iter().all(|change| change == &changed[0])
            && self.content.matches(from.as_str()).count() == changed.len();
        is_everywhere.then(|| (from.clone(), to.clone()))
    }
}

/// Returns a fence that does not occur in the text.
fn fence_for(text: &str) -> &'static str {
    if text.contains("```") { "`````" } else { "```" }
}

/// Returns the first block of code between such fences, without them. `None` if it has no end.
fn code_block<'a>(answer: &'a str, fence: &str) -> Option<&'a str> {
    let is_fence = |line: &str| line.starts_with(fence);
    let start = if is_fence(answer) { 0 } else { answer.find(&format!("\n{fence}"))? + 1 };
    let block = &answer[start..];
    let block = &block[block.find('\n')? + 1..];
    if is_fence(block) {
        return Some("");
    }
    Some(&block[..block.find(&format!("\n{fence}"))?])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const INI: &str = "[server]\nt = 30\n\n[client]\nt = 30\n";

    /// Returns the edit that an answer means.
    fn edit(content: &str, answer: &str) -> Option<Value> {
        let mut rewrites = Rewrites::new("go");
        rewrites.plan("a.txt", content);
        let call = rewrites.take().unwrap().call(answer)?;
        assert_eq!(call.name, "edit_file");
        Some(serde_json::from_str(&call.arguments).unwrap())
    }

    #[test]
    fn the_difference_is_an_edit_of_a_text_that_stands_in_the_file_once() {
        for (content, block, old, new) in [
            ("a\nb\nc\n", "a\nB\nc", "b", "B"),
            ("a\nb\nc\n", "a\nB\nc\n", "b", "B"),
            ("a\nb\nc", "a\nb\nc\nd", "c", "c\nd"),
            ("a\nb\n", "x\na\nb", "a", "x\na"),
            ("a\nb\nc\n", "a\nc", "a\nb", "a"),
            (INI, "[server]\nt = 30\n\n[client]\nt = 60", "[client]\nt = 30", "[client]\nt = 60"),
            ("a\r\nb\r\n", "a\nB", "b", "B"),
            ("value\n", "a.txt:\nvalues", "value", "values"),
        ] {
            let expected = json!({"path": "a.txt", "old_str": old, "new_str": new});
            assert_eq!(
                edit(content, &format!("Here:\n```ini\n{block}\n```\nDone.")),
                Some(expected),
                "{block}"
            );
        }
    }

    #[test]
    fn the_same_change_everywhere_is_an_edit_of_all_places() {
        let answer = "```\n[server]\nt = 60\n\n[client]\nt = 60\n```";
        let expected =
            json!({"path": "a.txt", "old_str": "t = 30", "new_str": "t = 60", "replace_all": true});
        assert_eq!(edit(INI, answer), Some(expected));
    }

    #[test]
    fn an_answer_that_is_no_whole_file_is_no_edit() {
        for answer in [
            "```\na\nb\nc\n```",
            "```\na\nb\nnot ended",
            "{\"tool\": \"answer\"}",
            "```\n```",
            "```\na\n```",
            "",
        ] {
            assert_eq!(edit("a\nb\nc\n", answer), None, "{answer}");
        }
    }

    #[test]
    fn a_file_with_fences_is_between_longer_ones() {
        let mut rewrites = Rewrites::new("set it to 2");
        rewrites.plan("a.md", "```\n1\n```\n");
        let rewrite = rewrites.take().unwrap();
        assert_eq!(
            rewrite.message(),
            "a.md:\n`````\n```\n1\n```\n`````\n\nset it to 2\n\nChange nothing else. Write the new content of a.md, all of \
             it, in one code block."
        );
        let call = rewrite.call("`````\n```\n2\n```\n`````").unwrap();
        assert_eq!(call.arguments, r#"{"new_str":"2","old_str":"1","path":"a.md"}"#);
    }

    #[test]
    fn a_file_is_written_anew_twice_at_most() {
        let mut rewrites = Rewrites::new("go");
        let mut planned = |path: &str| {
            rewrites.plan(path, "a\n");
            rewrites.take().is_some()
        };
        assert_eq!([planned("a"), planned("a"), planned("a"), planned("b")], [true, true, false, true]);
        for (request, content) in [("", "a"), (&*"long ".repeat(999), "a"), ("go", " \n")] {
            let mut rewrites = Rewrites::new(request);
            rewrites.plan("a", content);
            assert!(rewrites.take().is_none());
        }
    }
}
