//! Has the model write a small file anew as text, after an edit of it has failed.
//!
//! Small models copy a file with one change in it more reliably than they say as JSON what takes the place of what: a model
//! of 0.5 billion parameters edited 13 of 16 small files rightly in this way, and 4 with calls. The request is a
//! conversation of its own, because with their steps before it these models go on to write JSON.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{
    EDIT_FILE, TurnedBack, WRITE_FILE,
    change_request::{RequestedFile, file_name, requested_files},
    changed_place::equal_ends,
};
use crate::core::{CallId, ToolCall};

/// A larger file takes a small model too long, in bytes. It would also begin to leave parts out.
pub(in crate::agent) const MAX_FILE: u64 = 3000;
/// A longer request leaves the model no room for the file, in bytes.
const MAX_REQUEST: usize = 2000;
/// The maximum number of times that one file is written anew in a run.
const MAX_TIMES: u32 = 2;
/// The tokens of an answer in addition to those of the file as it is.
const ADDED_TOKENS: u32 = 500;
/// The end of what a failed check printed that the model reads, in bytes.
const MAX_OUTPUT: usize = 800;

/// The files of a run that are written anew.
#[derive(Default)]
pub(in crate::agent) struct Rewrites {
    /// The words of the user.
    request: String,
    /// The files that the request names, if they are several.
    requested: Vec<RequestedFile>,
    /// The number of times that each file was to be written anew.
    times: HashMap<String, u32>,
    next: Option<Rewrite>,
    /// The file that a test is about, after the model tried to change the test.
    repair_next: Option<String>,
    /// The check that failed last.
    failed_check: Option<FailedCheck>,
    /// The files that were to be written anew in place of the model's first change of them.
    whole_changes: HashSet<String>,
}

impl Rewrites {
    pub(super) fn new(request: &str) -> Self {
        let request = if request.len() > MAX_REQUEST { "" } else { request.trim() };
        let mut requested = requested_files(request);
        if requested.len() == 1 {
            requested.clear();
        }
        Self { request: request.to_owned(), requested, ..Self::default() }
    }

    /// Has the next answer be this file, unless it was tried too often or the request cannot be repeated. `content` is empty
    /// if there is no such file yet.
    pub(in crate::agent) fn plan(&mut self, path: &str, content: &str) {
        let is_new = content.is_empty() && self.failed_check.is_none();
        if self.request.is_empty() || (content.trim().is_empty() && !is_new) {
            return;
        }
        let times = self.times.entry(path.to_owned()).or_default();
        *times += 1;
        self.next = (*times <= MAX_TIMES).then(|| Rewrite {
            path: path.to_owned(),
            // The mark stays where it is, because no edit has it.
            content: content.trim_start_matches('\u{FEFF}').replace("\r\n", "\n"),
            request: self.request_for(path).to_owned(),
            failed_check: self.failed_check.as_ref().map(FailedCheck::in_words),
        });
    }

    /// Returns the words of the user about this file. A very small model that reads of several files changes in one what was
    /// meant for another.
    fn request_for(&self, path: &str) -> &str {
        let mut clauses = self.requested.iter().filter(|file| file.path == path).map(|file| &*file.clause);
        match (clauses.next(), clauses.next()) {
            (Some(clause), None) => clause,
            _ => &self.request,
        }
    }

    /// Has the files be written anew that this check is to pass with, and allows to change again what was changed. `output` is
    /// what the check printed.
    pub(in crate::agent) fn note_failed_check(&mut self, command: &str, output: &str) {
        let output = output.trim_end();
        let end = output[output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT))..].to_owned();
        self.failed_check = Some(FailedCheck { command: command.to_owned(), end });
        self.times.clear();
        self.whole_changes.clear();
    }

    /// Returns true if a check has failed, and its command line does not name this file.
    pub(in crate::agent) fn repairs(&self, path: &str) -> bool {
        let is_named = |check: &FailedCheck| {
            check.command.split_whitespace().any(|word| file_name(word) == file_name(path))
        };
        self.failed_check.as_ref().is_some_and(|check| !is_named(check))
    }

    /// Has the next answer be this file, because the model tried to change the test that fails instead.
    pub(super) fn repair_next(&mut self, path: &str) {
        self.repair_next = self.repairs(path).then(|| path.to_owned());
    }

    /// Returns the file of [`Self::repair_next`].
    pub(in crate::agent) fn take_repair(&mut self) -> Option<String> {
        self.repair_next.take()
    }

    /// Forgets the check that failed, because it passes now.
    pub(in crate::agent) fn forget_failed_check(&mut self) {
        self.failed_check = None;
    }

    /// Notes that what the model writes anew is all that it changes in this file.
    pub(in crate::agent) fn note_whole_change(&mut self, path: &str) {
        self.whole_changes.insert(path.to_owned());
    }

    /// Returns the reason why a file that was changed already is not changed once more.
    pub(super) fn judge(&self, path: &str) -> Option<TurnedBack> {
        self.whole_changes.contains(path).then(|| TurnedBack {
            fact: format!("{path} was changed as asked already"),
            advice: Some("Go on with the rest of the request, or call answer.".to_owned()),
        })
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

/// A command line that has to pass, and does not.
struct FailedCheck {
    command: String,
    /// The end of what it printed.
    end: String,
}

impl FailedCheck {
    fn in_words(&self) -> String {
        let Self { command, end } = self;
        let fence = fence_for(end);
        format!("The check `{command}` fails now. It prints:\n{fence}\n{end}\n{fence}")
    }
}

/// A file that the model is to write anew.
pub(in crate::agent) struct Rewrite {
    path: String,
    /// The content now, with line feeds. Empty for a file that does not exist.
    content: String,
    request: String,
    /// The words for the model about the check that failed.
    failed_check: Option<String>,
}

impl Rewrite {
    /// Returns the message to the model.
    pub(in crate::agent) fn message(&self) -> String {
        let Self { path, content, request, failed_check } = self;
        if content.is_empty() {
            return format!(
                "{request}\n\nWrite the content of {path}, all of it, in one code block. Nothing else."
            );
        }
        let fence = fence_for(content);
        let content = content.trim_end_matches('\n');
        let problem = match failed_check {
            Some(check) => format!("{check}\n\nRepair {path} so that the check passes. "),
            None => String::new(),
        };
        format!(
            "{path}:\n{fence}\n{content}\n{fence}\n\n{request}\n\n{problem}Change nothing else. Write the new content of {path}, \
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
        if self.content.is_empty() {
            return self.creation(block);
        }
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
        Some(call(EDIT_FILE, &arguments))
    }

    /// Returns the call that writes this block into the file, which does not exist yet.
    fn creation(&self, block: &str) -> Option<ToolCall> {
        let content = format!("{}\n", block.trim_end_matches('\n'));
        (!block.trim().is_empty()).then(|| call(WRITE_FILE, &json!({"path": self.path, "content": content})))
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

fn call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall { id: CallId::local(), name: tool.to_owned(), arguments: arguments.to_string() }
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
    fn a_file_that_does_not_exist_is_written() {
        let mut rewrites = Rewrites::new("create a.txt with the line: one");
        rewrites.plan("a.txt", "");
        let rewrite = rewrites.take().unwrap();
        assert_eq!(
            rewrite.message(),
            "create a.txt with the line: one\n\nWrite the content of a.txt, all of it, in one code block. Nothing else."
        );
        let call = rewrite.call("```\none\n```").unwrap();
        assert_eq!(call.name, "write_file");
        assert_eq!(call.arguments, r#"{"content":"one\n","path":"a.txt"}"#);
        assert!(rewrite.call("```\n\n```").is_none() && rewrite.call("one").is_none());
    }

    #[test]
    fn of_several_files_each_comes_with_the_words_about_it() {
        let mut rewrites = Rewrites::new("Set x in a.txt to 1, and set y in b.txt to 2.");
        let mut message = |path: &str| {
            rewrites.plan(path, "old\n");
            rewrites.take().unwrap().message()
        };
        let expected = "a.txt:\n```\nold\n```\n\nset x in a.txt to 1\n\nChange nothing else. Write the new content of a.txt, \
                        all of it, in one code block.";
        assert_eq!(message("a.txt").to_lowercase(), expected.to_lowercase());
        assert!(message("b.txt").contains("\n\nset y in b.txt to 2.\n\nChange"));
        assert!(message("c.txt").contains("\n\nSet x in a.txt to 1, and set y in b.txt to 2.\n\nChange"));
    }

    #[test]
    fn a_file_comes_with_the_end_of_what_a_failed_check_printed() {
        let mut rewrites = Rewrites::new("repair it");
        let output = format!("{}\nexpected 2, found 3\n", "ä".repeat(1000));
        rewrites.note_failed_check("sh tests/test_a.sh", &output);
        assert!(rewrites.repairs("lib/a.sh") && !rewrites.repairs("test_a.sh"));
        rewrites.plan("a.sh", "echo 3\n");
        let message = rewrites.take().unwrap().message();
        assert!(
            message.contains("The check `sh tests/test_a.sh` fails now. It prints:\n```\nä"),
            "{message}"
        );
        assert!(
            message.contains("expected 2, found 3\n```\n\nRepair a.sh so that the check passes."),
            "{message}"
        );
        assert!(message.len() < 1200, "{}", message.len());
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
