//! A list of what a run has done. The run adds facts to it, and nothing changes them.
//!
//! Everything that asks what has happened asks here: the rails, the checks of `--expect-change`, and the facts that every
//! client is told at the end.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value;

use crate::{
    core::{CommandFacts, ToolCall, ToolFailureKind, ToolNature, ToolOutcome},
    tools::{Change, Fingerprint, Syntax, SyntaxError, syntax},
};

use super::protocol::RunFacts;

/// The facts of one run.
#[derive(Default)]
pub(super) struct Ledger {
    facts: Vec<Fact>,
    turn: u32,
}

/// Something that has happened.
enum Fact {
    Called(Called),
    /// The model was shown this file, apart from a call.
    Shown(String),
    Changed(FileChange),
    Ran(CommandFacts),
    /// A call was denied: by a person, or by a rule of the user.
    Denied,
    /// A subagent has done this.
    OfWorker(RunFacts),
    /// Somebody else has done something of which nothing is known, such as the client.
    Unknown,
}

/// A call that the daemon has answered.
struct Called {
    turn: u32,
    tool: String,
    path: Option<String>,
    /// The hash of the call.
    call: u64,
    /// The hash of the call and its result.
    result: u64,
    /// The reason for the failure, if another call would have avoided it.
    failure: Option<ToolFailureKind>,
    /// The files that exist and that the call may have meant.
    near: Vec<String>,
    /// Other calls may well have other results after it.
    changes_something: bool,
}

/// A change of a file that a tool of the daemon has carried out.
pub(super) struct FileChange {
    pub(super) path: String,
    before: Fingerprint,
    now: Fingerprint,
    /// The first error of the file, if it does not parse now and did before this change.
    pub(super) error: Option<SyntaxError>,
    /// The file does not parse now, whatever it did before.
    is_broken: bool,
}

impl FileChange {
    /// Hashes and parses the file, so it may take some milliseconds.
    pub(super) fn new(change: &Change) -> Self {
        let Change { path, old, new } = change;
        let error = match syntax(path, new) {
            Syntax::Error(error) => Some(error),
            Syntax::Valid | Syntax::Unknown => None,
        };
        let old_text = old.as_deref().and_then(|old| std::str::from_utf8(old).ok());
        let parsed_before = error.is_some() && old_text.is_some_and(|old| syntax(path, old) == Syntax::Valid);
        Self {
            path: path.clone(),
            before: old.as_deref().map_or(Fingerprint::Missing, Fingerprint::of),
            now: Fingerprint::of(new.as_bytes()),
            is_broken: error.is_some(),
            error: error.filter(|_| parsed_before),
        }
    }
}

impl Ledger {
    /// Begins a turn. Must be called before its calls are noted.
    pub(super) fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Notes a call of a tool of the daemon, and how it ended. A change of a file is noted apart from it.
    pub(super) fn note_call(&mut self, call: &ToolCall, nature: ToolNature, outcome: &ToolOutcome) {
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let hash = call_hash(call, &args);
        let is_new_command = nature == ToolNature::Runs && self.called().all(|called| called.call != hash);
        self.facts.push(Fact::Called(Called {
            turn: self.turn,
            tool: call.name.clone(),
            path: args["path"].as_str().map(str::to_owned),
            call: hash,
            result: result_hash(hash, nature, outcome),
            failure: outcome.failure_kind().filter(|kind| is_avoidable(*kind)),
            near: outcome.facts.near.clone(),
            changes_something: is_new_command || (nature == ToolNature::Changes && !outcome.is_error()),
        }));
        self.facts.extend(outcome.facts.command.clone().map(Fact::Ran));
        if outcome.failure_kind() == Some(ToolFailureKind::Denied) {
            self.facts.push(Fact::Denied);
        }
    }

    pub(super) fn note_change(&mut self, change: FileChange) {
        self.facts.push(Fact::Changed(change));
    }

    /// Notes that the model was shown a file apart from a call.
    pub(super) fn note_shown(&mut self, path: &str) {
        self.facts.push(Fact::Shown(path.to_owned()));
    }

    pub(super) fn note_denial(&mut self) {
        self.facts.push(Fact::Denied);
    }

    /// Notes what a subagent has done. `None` if that is not known.
    pub(super) fn note_worker(&mut self, facts: Option<RunFacts>) {
        self.facts.push(facts.map_or(Fact::Unknown, Fact::OfWorker));
    }

    /// Notes calls that the client carries out.
    pub(super) fn note_unknown(&mut self) {
        self.facts.push(Fact::Unknown);
    }

    fn called(&self) -> impl DoubleEndedIterator<Item = &Called> {
        self.facts.iter().filter_map(|fact| match fact {
            Fact::Called(called) => Some(called),
            _ => None,
        })
    }

    fn changes(&self) -> impl Iterator<Item = &FileChange> {
        self.facts.iter().filter_map(|fact| match fact {
            Fact::Changed(change) => Some(change),
            _ => None,
        })
    }

    fn commands(&self) -> impl Iterator<Item = &CommandFacts> {
        self.facts.iter().flat_map(|fact| match fact {
            Fact::Ran(command) => std::slice::from_ref(command),
            Fact::OfWorker(facts) => &facts.commands,
            _ => &[],
        })
    }

    /// Returns the files that workers have changed.
    fn changed_by_workers(&self) -> impl Iterator<Item = &String> {
        self.facts.iter().flat_map(|fact| match fact {
            Fact::OfWorker(facts) => &*facts.changed_files,
            _ => &[],
        })
    }

    /// Returns how often the last call was made with the same result, with nothing between that could have changed it.
    pub(super) fn repetitions(&self) -> u32 {
        let (mut counts, mut last) = (HashMap::new(), 0);
        for called in self.called() {
            last = counts.get(&called.result).copied().unwrap_or(0) + 1;
            if called.changes_something && last == 1 {
                counts.clear();
            }
            counts.insert(called.result, last);
        }
        last
    }

    /// Returns the number of turns in a row in which the tool of the last call failed at the same file, or 0 if it did not.
    pub(super) fn failures_in_a_row(&self) -> u32 {
        let Some(last) = self.called().next_back().filter(|called| called.failure.is_some()) else {
            return 0;
        };
        let of_tool = self.called().rev().filter(|called| called.tool == last.tool);
        let failed = of_tool.take_while(|called| called.failure.is_some() && called.path == last.path);
        let turns: BTreeSet<u32> = failed.map(|called| called.turn).collect();
        u32::try_from(turns.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if the last turn has changed this file, and nothing else has happened since. A file that does not parse is to
    /// be written again.
    pub(super) fn has_just_written(&self, path: &str) -> bool {
        let written = self.called().next_back().filter(|called| called.turn == self.turn);
        let path = path.trim_start_matches("./");
        let last = self.changes().last().filter(|change| change.path == path && !change.is_broken);
        last.is_some()
            && written.is_some_and(|called| called.changes_something && called.path.as_deref() == Some(path))
    }

    /// Returns true if what has happened last is a write of what a file had already.
    pub(super) fn has_just_changed_nothing(&self) -> bool {
        matches!(self.facts.last(), Some(Fact::Changed(change)) if change.before == change.now)
    }

    /// Returns true if the model has written what a file had already: it is so as the request wants it.
    pub(super) fn has_found_it_so(&self) -> bool {
        self.changes().any(|change| change.before == change.now)
    }

    /// Returns the files that a call was told of in place of `path`, which does not exist.
    pub(super) fn near(&self, path: &str) -> &[String] {
        let named = |called: &&Called| called.path.as_deref() == Some(path) && !called.near.is_empty();
        self.called().rev().find(named).map_or(&[], |called| &called.near)
    }

    /// Returns true if the model has read or changed this file.
    pub(super) fn knows(&self, path: &str) -> bool {
        let is_file = |named: &str| {
            let named = named.trim_start_matches("./");
            named == path
                || named.strip_suffix(path).is_some_and(|dir| dir.starts_with('/') && dir.ends_with('/'))
        };
        self.facts.iter().any(|fact| match fact {
            Fact::Called(called) => called.failure.is_none() && called.path.as_deref().is_some_and(is_file),
            Fact::Shown(path) => is_file(path),
            _ => false,
        })
    }

    /// Returns the files that differ from what they were before the run, or that a command has changed. Sorted.
    pub(super) fn changed_files(&self) -> Vec<String> {
        let mut files: BTreeMap<&str, (&Fingerprint, &Fingerprint)> = BTreeMap::new();
        for change in self.changes() {
            files.entry(&change.path).or_insert((&change.before, &change.now)).1 = &change.now;
        }
        let differing = files.into_iter().filter(|(_, (before, now))| before != now).map(|(path, _)| path);
        let by_commands =
            self.commands().flat_map(|command| command.changed.iter().flatten()).map(String::as_str);
        let by_workers = self.changed_by_workers().map(String::as_str);
        let all: BTreeSet<&str> = differing.chain(by_commands).chain(by_workers).collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// Returns true if all that the run has changed is known.
    pub(super) fn is_complete(&self) -> bool {
        let is_unknown =
            |fact: &Fact| matches!(fact, Fact::Unknown | Fact::Ran(CommandFacts { changed: None, .. }));
        !self.facts.iter().any(is_unknown)
    }

    /// Returns true if something was changed, run or denied, or if others have done something.
    pub(super) fn has_acted(&self) -> bool {
        self.facts.iter().any(is_of_others) || !self.changed_files().is_empty()
    }

    /// Returns the file that certainly does not parse any more since a change of the run, and why.
    pub(super) fn broken_file(&self) -> Option<(&str, &SyntaxError)> {
        if self.facts.iter().rev().take_while(|fact| !matches!(fact, Fact::Changed(_))).any(is_of_others) {
            return None;
        }
        let mut broken: BTreeMap<&str, Option<&SyntaxError>> = BTreeMap::new();
        for change in self.changes() {
            let known = broken.entry(&change.path).or_default();
            *known =
                change.error.as_ref().or(known.filter(|_| change.is_broken)).filter(|error| error.is_certain);
        }
        broken.into_iter().find_map(|(path, error)| Some((path, error?)))
    }

    /// Returns what every client is told at the end.
    pub(super) fn facts(&self) -> RunFacts {
        RunFacts {
            changed_files: self.changed_files(),
            commands: self.commands().cloned().collect(),
            is_complete: self.is_complete(),
        }
    }
}

/// Returns true for something that may have changed any file, and for the decision of a person.
fn is_of_others(fact: &Fact) -> bool {
    matches!(fact, Fact::Ran(_) | Fact::OfWorker(_) | Fact::Unknown | Fact::Denied)
}

/// Returns true for failures that another call would avoid. A page that cannot be fetched is not the model's mistake.
fn is_avoidable(kind: ToolFailureKind) -> bool {
    use ToolFailureKind as Kind;
    match kind {
        Kind::InvalidArguments | Kind::NotFound | Kind::OutsideWorkspace => true,
        Kind::NothingToChange
        | Kind::Stale
        | Kind::TimedOut
        | Kind::Cancelled
        | Kind::Denied
        | Kind::Other => false,
    }
}

/// Returns the hash of a call. The order and spacing of the arguments makes no difference.
fn call_hash(call: &ToolCall, args: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.hash(&mut hasher);
    match args {
        Value::Null => call.arguments.hash(&mut hasher),
        args => args.to_string().hash(&mut hasher),
    }
    hasher.finish()
}

fn result_hash(call: u64, nature: ToolNature, outcome: &ToolOutcome) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.hash(&mut hasher);
    match nature {
        ToolNature::Runs => without_fractions(outcome.text()).for_each(|part| part.hash(&mut hasher)),
        _ => outcome.text().hash(&mut hasher),
    }
    hasher.finish()
}

/// Returns the parts of a text without numbers that have a fraction. In the output of a command these are times, which
/// differ from one run to the next.
fn without_fractions(text: &str) -> impl Iterator<Item = &str> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let parts = text.split_inclusive(move |c: char| !is_of_number(c));
    parts.map(move |part| {
        let rest = part.trim_start_matches(is_of_number);
        let number = &part[..part.len() - rest.len()];
        let has_fraction = number.contains('.') && number.starts_with(|c: char| c.is_ascii_digit());
        if has_fraction { rest } else { part }
    })
}

#[cfg(test)]
mod tests;
