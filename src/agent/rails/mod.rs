//! Rails: checks that notice when a model goes round in circles or stops before it is done. Small models do both.
//!
//! The model is told first. If that does not help, the run fails with the reason, because an ending that is not what was
//! asked for must not look like one that is.

mod change_guard;
mod change_request;
mod changed_place;
mod copied_answers;
mod error_ladder;
mod file_changes;
mod missing_change;
mod missing_command;
mod offer;
mod opening;
mod other_files;
mod remaining_text;
mod repeated_calls;
mod repeated_text;
mod results;
mod rewrite;
mod test_guard;
mod test_runs;
mod thinking_budget;
mod unchanged_files;
mod unfinished_answers;
mod write_guard;

use serde_json::Value;

use super::protocol::{FailureKind, RunError};
use crate::{
    config::RailsConfig,
    core::{Message, RunId, ToolCall, ToolOutcome},
    provider::{FinishReason, StepOptions, Turn},
    tools::{
        Change, Effect,
        builtin::{RemainingPlace, ReplacedText},
    },
};
use change_guard::ChangeGuard;
use copied_answers::{CopiedAnswers, only_repeats};

pub(super) use change_request::{AskedChange, FileAim, RequestedFile};
use change_request::{asked_commands, request_text};
pub(super) use error_ladder::{ErrorLadder, help};
pub(super) use file_changes::{FileChanges, JudgedChange};
pub(super) use missing_change::{ExpectedChange, MissingChange};
use missing_command::MissingCommand;
use offer::Offer;
pub(super) use opening::{keep_new, read_opening};
use other_files::OtherFiles;
use remaining_text::RemainingText;
pub(super) use repeated_calls::RepeatedCalls;
use repeated_text::may_want_repetition;
pub(super) use repeated_text::{RepeatedText, without_repetitions};
pub(super) use results::{judge_change, with_text};
pub(super) use rewrite::{MAX_FILE as MAX_REWRITTEN_FILE, Rewrites};
use test_guard::TestGuard;
use test_runs::TestRuns;
pub(super) use thinking_budget::ThinkingBudget;
use unchanged_files::UnchangedFiles;
pub(super) use unfinished_answers::{AnswerCheck, UnfinishedAnswers};
use write_guard::WriteGuard;

/// The tool that writes whole files.
pub(super) const WRITE_FILE: &str = "write_file";
pub(super) const EDIT_FILE: &str = "edit_file";

/// The reason why a change is not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnedBack {
    /// Has nothing of the file.
    pub(super) fact: String,
    /// The way that the model should take instead, which may repeat lines of the file. Without it the whole file should be shown to the model.
    pub(super) advice: Option<String>,
}

/// The rails of one run.
pub(super) struct Rails {
    /// The rails that the agent has. A rail that is off is not asked.
    pub(super) config: RailsConfig,
    pub(super) repeated_calls: RepeatedCalls,
    /// An answer that repeats itself is stopped.
    pub(super) stops_repetition: bool,
    pub(super) unfinished_answers: UnfinishedAnswers,
    copied_answers: CopiedAnswers,
    missing_change: MissingChange,
    missing_command: MissingCommand,
    test_runs: TestRuns,
    remaining_text: RemainingText,
    unchanged_files: UnchangedFiles,
    pub(super) file_changes: FileChanges,
    offer: Offer,
    /// The model must call a tool in its next answer.
    must_call: bool,
    pub(super) error_ladder: ErrorLadder,
    write_guard: WriteGuard,
    pub(super) change_guard: ChangeGuard,
    test_guard: TestGuard,
    other_files: OtherFiles,
    has_checks: bool,
    /// The tool that writes whole files is left out of the next answer.
    withholds_writing: bool,
    pub(super) rewrites: Rewrites,
    /// The tool that edits files is left out of the next answer.
    withholds_editing: bool,
}

impl Rails {
    /// `prompt` is what the user wrote, and `system` the text of the agent. `checks` are the command lines that have to
    /// pass.
    pub(super) fn new(
        config: RailsConfig,
        prompt: &str,
        system: &str,
        expected: ExpectedChange,
        checks: &[String],
    ) -> Self {
        let offer = Offer::new(config.offer, prompt, system);
        let request = &*request_text(prompt);
        Self {
            stops_repetition: config.repeats && !may_want_repetition(request),
            config,
            repeated_calls: RepeatedCalls::default(),
            unfinished_answers: UnfinishedAnswers::default(),
            copied_answers: CopiedAnswers::new(request),
            missing_change: MissingChange::new(expected),
            missing_command: MissingCommand::default(),
            test_runs: TestRuns::default(),
            remaining_text: RemainingText::new(request, expected == ExpectedChange::Some),
            unchanged_files: UnchangedFiles::new(request, expected == ExpectedChange::Some),
            file_changes: FileChanges::default(),
            offer,
            must_call: false,
            error_ladder: ErrorLadder::default(),
            write_guard: WriteGuard::default(),
            change_guard: ChangeGuard::new(request),
            test_guard: TestGuard::new(request, checks),
            // Nobody knows which files have to be changed so that a check passes.
            other_files: if checks.is_empty() { OtherFiles::new(request) } else { OtherFiles::default() },
            has_checks: !checks.is_empty(),
            withholds_writing: false,
            rewrites: Rewrites::new(request),
            withholds_editing: false,
        }
    }

    /// Withholds the tools that change files, if unused tools are withheld: the request wants an answer in a format, and no
    /// change.
    pub(super) fn expect_only_an_answer(&mut self) {
        self.offer.only_for_an_answer();
    }

    /// Looks whether a command is run, if `request` asks for one. The run has the tool for it. If `reads_answer`, the words of the
    /// answer have to say that tests failed.
    pub(super) fn expect_command(&mut self, request: &str, reads_answer: bool) {
        let asked = asked_commands(&request_text(request));
        if reads_answer {
            self.test_runs = TestRuns::new(&asked);
        }
        self.missing_command = MissingCommand::new(asked);
    }

    /// Returns true if the request asks for a change of files, the run has the tools for it, and the model can be told so.
    pub(super) fn expects_change(&self) -> bool {
        self.missing_change.is_expected()
    }

    /// Notes a call about which more cannot be asked of the model: it was denied, or its effect is not known.
    pub(super) fn note_decision(&mut self) {
        self.missing_change.note_decision();
        self.remaining_text.note_decision();
        self.unchanged_files.note_decision();
        self.file_changes.forget_open();
    }

    /// Notes calls that others carry out: clients or subagents.
    pub(super) fn note_calls_of_others(&mut self) {
        self.missing_command.note_unknown();
        self.note_decision();
    }

    /// Notes a call that was denied.
    pub(super) fn note_denial(&mut self) {
        self.unchanged_files.note_denial();
        // The user does not want it.
        (self.missing_command, self.test_runs) = (MissingCommand::default(), TestRuns::default());
        self.note_decision();
    }

    /// Judges a change by the call `call` of the run `run` with the arguments `args`, before anybody is asked about it.
    /// Returns the reason why it is turned back. `conversation` is what the model sees. After a write that would take too
    /// much away, a model that works in steps has to edit the file if `can_edit`.
    pub(super) fn judge_proposal<'a>(
        &mut self,
        change: &Change,
        (call, args, run): (&ToolCall, &Value, &RunId),
        conversation: &(impl Iterator<Item = &'a Message> + Clone),
        can_edit: bool,
    ) -> Option<TurnedBack> {
        if let Some((found, tested)) = self.test_guard.judge(change) {
            if let [tested] = tested.as_slice() {
                self.rewrites.repair_next(tested);
            }
            return Some(found);
        }
        let is_new = change.old.as_deref() != Some(change.new.as_bytes());
        if is_new
            && self.file_changes.is_changed_well(&change.path)
            && let found @ Some(_) = self.rewrites.judge(&change.path)
        {
            (self.withholds_writing, self.withholds_editing) = (true, true);
            return found;
        }
        if let found @ Some(_) = self.other_files.judge(change, &self.file_changes.changed()) {
            (self.withholds_writing, self.withholds_editing) = (true, true);
            return found;
        }
        let writes = call.name == WRITE_FILE;
        let unread = if writes { self.write_guard.judge(change, &call.id, run, conversation) } else { None };
        let found = match unread {
            Some((fact, drops_text)) => {
                self.withholds_writing |= drops_text && can_edit;
                TurnedBack { fact, advice: None }
            }
            None => {
                let found = self.change_guard.judge(&call.name, change, args)?;
                self.withholds_writing |= writes && can_edit;
                found
            }
        };
        Some(found)
    }

    /// Begins a turn. Must be called before its results are counted.
    pub(super) fn begin_turn(&mut self) {
        self.error_ladder.begin_turn();
    }

    /// # Errors
    ///
    /// [`FailureKind::Limit`] if the model repeats its calls or its mistakes.
    ///
    /// [`FailureKind::Limit`]: super::protocol::FailureKind::Limit
    pub(super) fn check(&self) -> Result<(), RunError> {
        self.repeated_calls.check()?;
        self.error_ladder.check()
    }

    /// Returns the number of turns in a row in which the tool failed, or 0 if no help is needed. `tool` is `None` for a
    /// call of a tool that does not exist.
    pub(super) fn count_failure(&mut self, tool: Option<&str>, outcome: &ToolOutcome) -> u32 {
        if self.config.errors { self.error_ladder.count(tool, outcome) } else { 0 }
    }

    /// Counts the result of a call that ran in the daemon, and returns it as the model is to read it. `notes` is what
    /// the model reads in addition.
    pub(super) fn result_for_model(
        &mut self,
        call: &ToolCall,
        outcome: &ToolOutcome,
        effect: &Effect,
        notes: &str,
    ) -> ToolOutcome {
        let counted = if self.config.repeats {
            self.repeated_calls.count(call, outcome, effect)
        } else {
            outcome.clone()
        };
        with_text(counted, notes)
    }

    /// Returns what takes the place of an answer after a change of files that only repeats what the model was told: the files
    /// that were changed. Small models say nothing better when they are asked again. `last_read` is the last message to the model.
    pub(super) fn own_answer(&self, answer: &str, last_read: &str) -> Option<String> {
        let is_change = self.config.unfinished && self.expects_change() && self.file_changes.differ();
        (is_change && only_repeats(answer, last_read)).then(|| self.file_changes.in_words())
    }

    /// Judges an answer without calls.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check_answer(&mut self, turn: &Turn, has_tools: bool) -> Result<AnswerCheck, RunError> {
        if !self.config.unfinished && turn.finish_reason != FinishReason::Repetition {
            // A run without an answer has not completed, with rails or without.
            let is_empty = turn.finish_reason == FinishReason::Stop && turn.content.trim().is_empty();
            let error = || RunError::new(FailureKind::Model, "the model's answer is empty");
            return if is_empty { Err(error()) } else { Ok(AnswerCheck::Finished) };
        }
        let files = &mut self.file_changes;
        // An answer may report that a change failed, unless the user asked for a change. Where files were changed, the checks
        // say what is left to do.
        let checks_decide = self.has_checks && files.differ();
        let counts_failure = self.missing_change.is_expected() && !checks_decide;
        let lacks_change = self.missing_change.is_open(files.differ());
        let problem = || {
            let copied = self.copied_answers.check(&turn.content, files.differ(), lacks_change);
            copied.or_else(|| files.problem(counts_failure))
        };
        let expects_change = self.missing_change.is_expected();
        let check = self
            .unfinished_answers
            .check(turn, has_tools, problem)?
            .and_then(|| self.missing_change.check(turn, &self.file_changes))?
            // Tests come first, because what they are about may have to be committed then.
            .and_then(|| self.test_runs.check(turn, expects_change, self.file_changes.differ()))?
            .and_then(|| self.missing_command.check(turn, &self.file_changes.changed()))?;
        self.must_call = matches!(check, AnswerCheck::AskAgain { must_call: true, .. });
        Ok(check)
    }

    /// Notes the result of a call of a tool of the daemon.
    pub(super) fn note_result(&mut self, call: &ToolCall, outcome: &ToolOutcome) {
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        self.missing_command.note_result(call, &args, outcome);
        self.test_runs.note_result(call, &args, outcome);
        // A change that was made already, or that nobody asked for, is no change that is missing.
        let is_made =
            |path: &str| self.rewrites.judge(path).is_some() && self.file_changes.is_changed_well(path);
        let is_unneeded = |path: &str| is_made(path) || self.other_files.has_turned_back(path);
        if !outcome.is_error() || !args["path"].as_str().is_some_and(is_unneeded) {
            self.file_changes.note_result(call, outcome);
        }
    }

    /// Returns the texts that must not stand in the files any more when the run ends.
    pub(super) fn replaced_texts(&self) -> Vec<ReplacedText> {
        if !self.config.unfinished {
            return Vec::new();
        }
        self.remaining_text.wanted(&self.file_changes.changed())
    }

    /// Judges an answer without calls after which `text` still stands at these places.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check_remaining(
        &mut self,
        text: &ReplacedText,
        places: &[RemainingPlace],
    ) -> Result<AnswerCheck, RunError> {
        self.must_call = true;
        self.remaining_text.check(text, places)
    }

    /// Returns the files that the request names and the run has not changed. They may be as they have to be.
    pub(super) fn requested_files(&self) -> Vec<RequestedFile> {
        if !self.config.unfinished {
            return Vec::new();
        }
        self.unchanged_files.wanted(&self.file_changes.changed())
    }

    /// Judges an answer without calls after which this file is as it was.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check_requested(&mut self, file: &RequestedFile) -> Result<AnswerCheck, RunError> {
        self.must_call = true;
        self.unchanged_files.check(file)
    }

    /// Notes a change that was carried out. If the model was to write the file anew, its next step is no change: it would make
    /// the same one again.
    pub(super) fn note_change(&mut self, judged: JudgedChange) {
        let path = judged.path.clone();
        self.file_changes.note_change(judged);
        self.test_runs.note_change();
        let is_written = self.rewrites.has(&path) && self.file_changes.is_changed_well(&path);
        self.withholds_editing |= is_written;
        self.withholds_writing |= is_written;
    }

    /// Returns what the model may choose for its next answer. The next turn may choose more again. `conversation` is what
    /// the model sees.
    pub(super) fn take_step_options<'a>(
        &mut self,
        conversation: impl Iterator<Item = &'a Message>,
    ) -> StepOptions {
        let must_call =
            std::mem::take(&mut self.must_call) || self.missing_change.is_overdue(self.file_changes.differ());
        let mut withheld = self.repeated_calls.take_made_again();
        withheld.extend(std::mem::take(&mut self.withholds_writing).then(|| WRITE_FILE.to_owned()));
        withheld.extend(std::mem::take(&mut self.withholds_editing).then(|| EDIT_FILE.to_owned()));
        withheld.extend(self.offer.withheld(conversation).into_iter().map(str::to_owned));
        StepOptions { withheld_tools: withheld, must_call, ..StepOptions::default() }
    }
}
