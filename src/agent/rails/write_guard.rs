//! Turns back a write that would replace a file of which the model knows nothing, or drop most of it, or create one under
//! a name that the model has only guessed.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{EDIT_FILE, WRITE_FILE};
use crate::{
    core::{CallId, Message, Role, RunId},
    tools::{Change, builtin::named_instead},
};

/// A shorter file may be dropped, in lines that are not blank.
const MIN_LINES: usize = 3;
/// A write that keeps fewer of the old lines, in percent, drops most of the file.
const MIN_KEPT: usize = 50;
/// A write that keeps at least so many of the old words, in percent, has them in other lines.
const SAME_WORDS: usize = 80;
/// A file of at most this many lines may be written in other words, if it does not get shorter.
const FEW_LINES: usize = 10;
/// The tools after whose calls the model knows the file.
const FILE_TOOLS: [&str; 3] = ["read_file", EDIT_FILE, WRITE_FILE];
/// The words with which people ask for a whole new file, in lower case.
const REPLACING: [&str; 21] = [
    "truncate ",
    "clear ",
    "empty ",
    "overwrite",
    "rewrite",
    "re-write",
    "from scratch",
    "start over",
    "whole file",
    "entire file",
    "replace all",
    "replace the file",
    "replace the content",
    "replace its content",
    "replace everything",
    "translate",
    "convert",
    "shorten",
    "summar",
    "keep only",
    "only keep",
];

/// Judges the writes of a run.
#[derive(Default)]
pub(in crate::agent) struct WriteGuard {
    /// Files of which a write was turned back, and why. The next write is carried out, unless there is another reason
    /// against it.
    turned_back: HashSet<(String, Reason)>,
}

/// The kind of a reason against a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    GuessedName,
    NotRead,
    DropsLines,
}

impl WriteGuard {
    /// Judges a write of a whole file, the call `call` of the run `run`. Returns the reason why it is turned back, and true
    /// if it would drop most of the file. `conversation` is what the model sees.
    pub(in crate::agent) fn judge<'a>(
        &mut self,
        change: &Change,
        call: &CallId,
        run: &RunId,
        conversation: &(impl Iterator<Item = &'a Message> + Clone),
    ) -> Option<(String, bool)> {
        let path = change.path.as_str();
        let (reason, text) = match change.old.as_deref() {
            None => (Reason::GuessedName, guessed_name(path, conversation)?),
            Some(old) => lost_text(&String::from_utf8_lossy(old), change, call, run, conversation)?,
        };
        let is_new = self.turned_back.insert((path.to_owned(), reason));
        is_new.then(|| (format!("Nothing was written: {text}"), reason == Reason::DropsLines))
    }
}

/// Returns the reason why a file is not created: the model was told that there is none of this name and which it may mean,
/// and the user did not write this name.
fn guessed_name<'a>(
    path: &str,
    conversation: &(impl Iterator<Item = &'a Message> + Clone),
) -> Option<String> {
    let results = conversation.clone().filter_map(|message| message.tool_result.as_ref());
    let meant = results.filter_map(|result| named_instead(&result.output, path)).last()?;
    let mut user = conversation.clone().filter(|message| message.role == Role::User);
    if user.any(|message| has_word(&message.content, path)) {
        return None;
    }
    Some(format!(
        "there is no {path}; did you mean {meant}? To create {path} all the same, call {WRITE_FILE} again."
    ))
}

/// Returns true if the text has this path, and not as a part of a longer one.
fn has_word(text: &str, path: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].trim_end_matches("./").chars().next_back();
        let mut after = text[at + path.len()..].chars();
        // A point may end the sentence.
        let ends = match after.next() {
            Some('.') => !after.next().is_some_and(continues),
            next => !next.is_some_and(continues),
        };
        ends && !before.is_some_and(continues)
    })
}

/// Returns the reason why a file is not replaced, and its text.
fn lost_text<'a>(
    old: &str,
    change: &Change,
    call: &CallId,
    run: &RunId,
    conversation: &(impl Iterator<Item = &'a Message> + Clone),
) -> Option<(Reason, String)> {
    let Change { path, new, .. } = change;
    let requests = || {
        let own = conversation.clone().filter(|message| message.run.as_ref() == Some(run));
        own.filter(|message| message.role == Role::User).map(|message| &*message.content)
    };
    if old.trim().is_empty() || old == new || requests().any(asks_for_replacing) {
        return None;
    }
    let known = conversation.clone().any(|message| names_file(message, path, call) || shows(message, old));
    let (reason, why) = if known {
        let (kept, all) = kept_parts(lines(old), lines(new));
        let (kept_words, all_words) = kept_parts(words(old), words(new));
        let is_reformatted = kept_words * 100 >= all_words * SAME_WORDS;
        let is_reworded = all <= FEW_LINES && lines(new).count() >= all;
        let is_dictated = || requests().any(|request| dictates(request, new));
        if all < MIN_LINES || kept * 100 >= all * MIN_KEPT || is_reformatted || is_reworded || is_dictated() {
            return None;
        }
        (Reason::DropsLines, format!("only {kept} of the {all} lines of {path} would be left"))
    } else {
        (Reason::NotRead, format!("{path} exists already, and you have not read it"))
    };
    let text = format!(
        "{why}. To change a part of it, call edit_file with old_str copied from the file. To replace all of it, call \
         {WRITE_FILE} again with the whole content."
    );
    Some((reason, text))
}

/// Returns true if the request has the whole content of the file, and not as lines that are to be added to it. A single line
/// is more often a part of the file.
fn dictates(request: &str, content: &str) -> bool {
    let words = request.to_lowercase();
    let adds = ["add", "append", "insert", "at the end"].iter().any(|word| words.contains(word));
    lines(content).count() > 1 && !adds && request.contains(content.trim())
}

fn asks_for_replacing(request: &str) -> bool {
    let text = request.to_lowercase();
    REPLACING.iter().any(|words| text.contains(words))
}

/// Returns true if the message has a call, other than `call`, that reads or changes the file.
fn names_file(message: &Message, path: &str, call: &CallId) -> bool {
    message.tool_calls.iter().filter(|known| known.id != *call).any(|known| {
        let args = serde_json::from_str::<Value>(&known.arguments).unwrap_or_default();
        let named = args["path"].as_str().unwrap_or_default();
        let named = named.trim_start_matches("./");
        FILE_TOOLS.contains(&known.name.as_str())
            && (named == path
                || named.strip_suffix(path).is_some_and(|dir| dir.starts_with('/') && dir.ends_with('/')))
    })
}

/// Returns true if a message to the model contains the whole file, as the one with the prompt may.
fn shows(message: &Message, old: &str) -> bool {
    message.role == Role::User && message.with_context().contains(old.trim())
}

/// Returns how many of the old parts are among the new ones, and how many there are.
fn kept_parts<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>) -> (usize, usize) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for part in new {
        *counts.entry(part).or_default() += 1;
    }
    let (mut kept, mut all) = (0, 0);
    for part in old {
        all += 1;
        if let Some(count @ 1..) = counts.get_mut(part) {
            *count -= 1;
            kept += 1;
        }
    }
    (kept, all)
}

/// Returns the lines that are not blank.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{ToolCall, ToolResult};

    const LONG: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";

    fn calls(name: &str, path: &str) -> Message {
        let mut message = Message::text(Role::Assistant, "");
        let arguments = serde_json::json!({"path": path}).to_string();
        message.tool_calls = vec![ToolCall { id: CallId::local(), name: name.to_owned(), arguments }];
        message
    }

    /// Returns the reason why a write of `new` over `old` is turned back.
    fn judged(old: &str, new: &str, mut conversation: Vec<Message>) -> Option<String> {
        let run = RunId::new();
        for message in &mut conversation {
            message.run = Some(run.clone());
        }
        let change = Change { path: "a.txt".into(), old: Some(old.into()), new: new.into() };
        let mut guard = WriteGuard::default();
        let first = guard.judge(&change, &CallId::local(), &run, &conversation.iter());
        assert_eq!(
            guard.judge(&change, &CallId::local(), &run, &conversation.iter()),
            None,
            "the second time"
        );
        first.map(|(text, _)| text)
    }

    #[test]
    fn a_file_must_be_known_before_it_is_replaced() {
        let user = |text: &str| vec![Message::text(Role::User, text)];
        let reason = judged("old\n", "new\n", user("change a.txt")).unwrap();
        assert!(reason.starts_with("Nothing was written: a.txt exists already, and you have not read it. "));
        for conversation in [
            vec![calls("read_file", "a.txt")],
            vec![calls("edit_file", "./a.txt")],
            vec![calls("write_file", "/srv/a.txt")],
            user("Rewrite a.txt in French"),
            user("The file is:\nold\n\nCorrect it."),
        ] {
            assert_eq!(judged("old\n", "new\n", conversation.clone()), None, "{conversation:?}");
        }
        for other in
            [calls("read_file", "b/a.txt"), calls("list_files", "a.txt"), calls("read_file", "xa.txt")]
        {
            assert!(judged("old\n", "new\n", vec![other.clone()]).is_some(), "{other:?}");
        }
        assert_eq!(judged(" \n", "new\n", Vec::new()), None);
    }

    #[test]
    fn most_of_a_known_file_must_be_kept() {
        let known = || vec![calls("read_file", "a.txt")];
        let reason = judged(LONG, "1\n2\nthe rest is as before\n", known()).unwrap();
        assert!(reason.contains("only 2 of the 12 lines of a.txt would be left"), "{reason}");
        assert_eq!(judged(LONG, "6\n5\n4\n3\n2\n1\n", known()), None);
        assert_eq!(judged("1\n2\n", "4\n", known()), None, "a very short file");
        assert!(judged("1\n2\n3\n4\n5\n", "debug: true\n", known()).is_some());
        assert_eq!(judged("1\n2\n3\n", "one\ntwo\nthree\n", known()), None, "in other words");
        let (json, one_line) = ("{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n", "{\"a\":1,\"b\":5,\"c\":3}");
        assert_eq!(judged(json, one_line, known()), None, "the same words on one line");
        let asked = |request: &str| [known(), vec![Message::text(Role::User, request)]].concat();
        assert_eq!(judged("1\n2\n3\n", "a: 1\nb: 2\n", asked("a.txt is to hold:\na: 1\nb: 2")), None);
        assert!(judged("1\n2\n3\n", "a: 1\nb: 2\n", asked("Append to a.txt:\na: 1\nb: 2")).is_some());
        assert!(judged("1\n2\n3\n", "debug: true\n", asked("Put debug: true into a.txt")).is_some());
    }

    #[test]
    fn a_name_that_was_guessed_is_no_file_to_create() {
        let missing = || {
            let output = "file does not exist: src/a.txt. Did you mean `a.txt`?\n\nmore".to_owned();
            Message::result(ToolResult {
                call_id: CallId::local(),
                name: "edit_file".into(),
                output,
                is_error: true,
            })
        };
        let created = |path: &str, request: &str| {
            let change = Change { path: path.into(), old: None, new: "x".into() };
            let conversation = [Message::text(Role::User, request), missing()];
            let (mut guard, ids) = (WriteGuard::default(), (CallId::local(), RunId::new()));
            let first = guard.judge(&change, &ids.0, &ids.1, &conversation.iter());
            assert_eq!(guard.judge(&change, &ids.0, &ids.1, &conversation.iter()), None, "the second time");
            first.map(|(text, _)| text)
        };
        assert_eq!(
            created("src/a.txt", "fix a.txt").unwrap(),
            "Nothing was written: there is no src/a.txt; did you mean `a.txt`? To create src/a.txt all the same, call \
             write_file again."
        );
        assert!(created("src/a.txt", "see lib/src/a.txt").is_some());
        assert_eq!(created("src/a.txt", "copy a.txt to ./src/a.txt."), None);
        assert_eq!(created("src/b.txt", "fix a.txt"), None, "nothing was said about it");
    }
}
