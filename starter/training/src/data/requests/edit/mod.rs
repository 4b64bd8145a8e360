//! Requests to replace one text by another.

mod once;

use once::ONCE;

use super::{
    Request, call, ordinal, quoted, some_path,
    write::{bare, open_text},
};
use crate::data::{
    Call, Draw,
    draw::is_small_word,
    grammar::{Phrasings, expand, filled},
};

const ALL: Phrasings = Phrasings {
    commands: &[
        "$C [all|every|each|all occurrences of|every occurrence of|each occurrence of|all instances of|every instance of|any|all the|all of the|every single|all places of|all mentions of|each and every] {x} $B {y} $I $F",
        "replace all {x} with {y} in {f}",
        "replace every {x} [with|by] {y} in {f}",
        "change [all|every] {x} to {y} in {f}",
        "replace all occurrences of {x} [with|by] {y} in {f}",
        "change [all|every] [occurrence|occurrences|instance|instances] of {x} to {y} in {f}",
        "$C {x} $B {y} $Q [in|in|throughout] $F",
        "$C {x} $B {y} $I $F $Q",
        "$C {x} $B {y} [everywhere in|throughout|all over|in all of|in the whole of|in the whole|across] {f}",
        "$C {x} $B {y} [everywhere|throughout|globally] in {f}",
        "[in|inside] $F[,|] [replace|change|swap|rename] [all|every|each|all occurrences of|every occurrence of|all instances of] {x} [with|to|by] {y}",
        "[in|inside] $F[,|] [replace|change|rename] {x} [with|to|by] {y} $Q",
        "[find|look for] [all|every] {x} in $F and [replace them with|change them to|replace each with|make them|turn them into] {y}",
        "make [all|every|each] {x} [a|an|into|] {y} in $F",
        "[rename|change] {x} to {y} [everywhere|in all places|in every place|at all places|all the time|all times] in $F",
        "replace {x} with {y} in {f}, all [occurrences|of them|instances|matches]",
        "replace {x} [with|by] {y} in {f} [(all occurrences)|, every occurrence|, everywhere|, all of them|, each time|wherever you find it|as often as it is there]",
        "[turn|convert] [all|every|each] {x} [into|to] {y} in $F",
        "substitute {y} for [all|every|each] {x} in $F",
        "[replace|change] all {x} in $F [with|to|by] {y}",
        "[use|write|put] {y} [instead of|rather than|in place of] {x} [everywhere in|throughout|all over] $F",
        "[put|write|use] {y} [wherever|everywhere] [$F says|{f} has] {x}",
        "[put|write|use] {y} [wherever|everywhere] it says {x} now in $F",
        "[put|write|use] {y} wherever $F [says|has|mentions|reads] {x}",
        "$C {x} $B {y} in {f}[, not just the first one|, not only the first|, no matter how often it is there|, and don't miss any|, and do it everywhere|, as many times as it occurs| (every one)| (all of them)|, each and every one]",
        "[apply|do|run] s/{x}/{y}/g [to|on|in] {f}",
        "[find|look for] [all|every|each] [occurrence of|place with|mention of] {x} in $F and [make it|turn it into|change it to|replace it with] {y}",
        "[do|make] a global [replace|replacement|substitution] of {x} [with|by] {y} in $F",
        "[globally|everywhere] [replace|change] {x} [with|to] {y} in $F",
        "[mass-replace|replace-all|replace all|bulk replace] {x} [with|by] {y} in $F",
        "[swap|switch] out [all|every|each] {x} for {y} in $F",
        "[make sure|see to it|ensure] that [all|every|each] {x} in $F [becomes|is changed to|is replaced by|turns into] {y}",
        "[make sure|see to it|ensure] that no {x} is left in $F, [use|put|make them all] {y}",
        "in $F[,|] [make|turn|change] [all|every|each] {x} [into|to] {y}",
        "go through $F and [replace|change] [all|every|each] {x} [with|to] {y}",
        "[edit|update|change] $F so that [all|every|each] {x} [becomes|is|reads|is replaced by] {y}",
        "[replace|change] {x} [with|to|by] {y} as often as it [occurs|appears|comes up|is found] in $F",
        "[fix|correct] [all|every|each] {x} in $F[, it should be|: it should be|, make it| to|, the right spelling is] {y}",
    ],
    questions: &[
        "can [all|every] {x} be [replaced with|replaced by|changed to] {y} in $F",
        "can we replace all {x} [with|by] {y} in $F",
        "$G [changing|turning] [all|every|each|every single] {x} [to|into] {y} in $F",
        "$G replacing [all|every|each|all occurrences of|every occurrence of] {x} [with|by] {y} in $F",
        "$G replacing {x} [with|by] {y} [everywhere|throughout|wherever it occurs] in $F",
        "could [all|every|each] {x} in $F [become|be replaced by|be changed to|be] {y}",
        "can [all occurrences of|every occurrence of|all the|every] {x} in $F be [replaced with|replaced by|changed to] {y}",
        "can we have {y} instead of {x} everywhere in $F",
        "can {x} be [replaced with|replaced by|changed to] {y} [everywhere|throughout] in $F",
        "shouldn't [all|every] {x} in $F be {y}",
    ],
    statements: &[
        "[all|every|each] {x} in $F should be {y}",
        "[all|every|each|all occurrences of|every occurrence of] {x} should [be|become|say] {y} in $F",
        "[i want|i need|i'd like] [all|every] {x} [replaced by|replaced with|changed to|to be|to become] {y} in $F",
        "{f}: [replace|change] [all|every] {x} [with|to|by] {y}",
        "s/{x}/{y}/g in {f}",
        "sed -i 's/{x}/{y}/g' {f}",
        "{x} must be {y} everywhere in $F",
        "{x} -> {y} everywhere in {f}",
        "{x} should be {y} throughout {f}",
        "wherever $F [says|has|reads|mentions|uses] {x}[,|] [put|write|use|it should say|make it|i want|it must say] {y}",
        "wherever {x} [appears|occurs|is found|shows up|comes up|stands] in $F[,|] [put|write|use|replace it with|change it to|it should be] {y}",
        "[whenever|every time|each time|any time|everywhere] {x} [appears|occurs|shows up|comes up|is used] in $F[,|] [put|write|use|replace it with|change it to|make it] {y}",
        "everywhere $F says {x}[,|] it [should|must|has to] say {y}",
        "[all|every|each|every single] {x} in $F [must be|must become|becomes|has to be|needs to be|should become|should turn into|ought to be|is to be|should read] {y}",
        "[all|every|each|all occurrences of|every occurrence of] {x} in $F [must be|should be|have to be|need to be|are to be] [replaced by|replaced with|changed to|turned into] {y}",
        "in $F[,|] [all|every|each] {x} [must|should|has to|needs to|ought to] [be|become|say|read] {y}",
        "in $F[,|] {x} should be {y} [everywhere|in all places|throughout|each time|wherever it occurs]",
        "{x} [occurs|appears|is|comes up] [several times|many times|more than once|a lot|in many places|often] in $F[,|;] [make them all|change them all to|replace them all with|turn all of them into|they should all be] {y}",
        "$F [uses|has|says|mentions|contains] {x} [several times|many times|in many places|all over the place|everywhere|a lot][,|;] [make them all|change them all to|replace them all with|they should all be] {y}",
        "there are [several|many|some|lots of|a few] {x} in $F[,|;] [make them all|change them all to|replace all of them with|they should all be|turn each into] {y}",
        "there should be no {x} left in $F, [use|make them all|put] {y}",
        "i don't want [any|a single] {x} in $F[,|;] [use|write|put|make them all|replace each with] {y}",
        "i [want|need|would like|'d like] {y} [instead of|rather than|in place of] {x} [everywhere in|throughout|all over] $F",
        "i [misspelled|mistyped|misspelt] {x} everywhere in $F, [it should be|make it|it is|the right spelling is] {y}",
        "{y} [instead of|rather than|in place of] {x} [everywhere in|throughout|all over] $F",
        "[all|every|each] {x} [->|=>|to|into|→] {y} in {f}",
        "{f}: [all|every|each] {x} [->|=>|to|into|becomes|should be] {y}",
        "{f}: {x} -> {y} [everywhere|(all)|, all of them|throughout|, everywhere]",
        "{x} -> {y} in {f}[, everywhere| (all)|, all occurrences|, all of them]",
        "{f}: s/{x}/{y}/g",
        "s/{x}/{y}/g {f}",
        "sed -i s/{x}/{y}/g {f}",
        "sed -i -e 's/{x}/{y}/g' {f}",
        "perl -pi -e 's/{x}/{y}/g' {f}",
        ":%s/{x}/{y}/g in {f}",
        "%s/{x}/{y}/g in {f}",
        "{x} is now called {y}[,|;] [please |so |][update|change|fix|adjust] [all of|every place in|each mention in] $F",
        "we renamed {x} to {y}[,|;] [please |so |]change [it everywhere|all of them|every mention|all mentions] in $F",
    ],
};
const NTH: Phrasings = Phrasings {
    commands: &[
        "$C [the {n}|only the {n}|just the {n}|the {n} occurrence of|the {n} instance of|only the {n} occurrence of|the {n} time] {x} $B {y} $I $F",
        "[in|inside] $F[,|] [replace|change] the {n} [occurrence of |instance of |]{x} [with|to|by] {y}",
        "replace the {n} {x} with {y} in {f}",
        "change the {n} {x} to {y} in {f}",
        "[replace|change|swap|turn] {x} [with|to|into|by|for] {y} in $F[, but|, only|, just| but] only [the {n} one|the {n} time|the {n} occurrence|the {n}]",
        "[find|look for] the {n} {x} in $F and [replace it with|change it to|make it|turn it into] {y}",
        "[make|turn] the {n} {x} in $F [into|to] {y}",
        "[replace|change] [occurrence|match|instance|number|occurrence number|match number] {i} of {x} in $F [with|to|by] {y}",
        "[replace|change] the {n} {x} in $F [with|to|by|into] {y}[|, leave the others|, not the others|, only that one|, and no other]",
        "put {y} [instead of|in place of|for|where there is] the {n} {x} in $F",
        "[use|write] {y} instead of the {n} {x} in $F",
        "[in|inside] $F[,|] the {n} {x} [becomes|should be|must be] {y}",
    ],
    questions: &[
        "$G [changing|turning] the {n} {x} [to|into] {y} in $F",
        "$G replacing [the {n} {x}|the {n} occurrence of {x}] [with|by] {y} in $F",
        "can the {n} {x} in $F be [replaced with|replaced by|changed to] {y}",
        "could the {n} {x} in $F become {y}",
    ],
    statements: &[
        "the {n} {x} in $F should be {y}",
        "[i want|i need|i'd like] the {n} {x} [replaced by|replaced with|changed to] {y} in $F",
        "{f}: [replace|change] the {n} {x} [with|to|by] {y}",
        "the {n} {x} in $F [must|has to|ought to|needs to] [be|become] {y}",
        "the {n} {x} in $F [is wrong, it should be|is a typo, make it|must be replaced by|gets replaced with] {y}",
        "the {n} time {x} [appears|occurs|comes up] in $F[,|] [make it|change it to|replace it with|it should be|put] {y}",
        "where $F says {x} for the {n} time, [put|write|it should say|make it] {y}",
        "$F [has|contains|says] {x} [several times|more than once|a few times], [change the {n} one to|make the {n} one|the {n} one should be] {y}",
        "there are several {x} in $F, [change the {n} one to|make the {n} one|the {n} one should be] {y}",
        "{f}: the {n} {x} [->|to|becomes|should be] {y}",
        "{f}: {x} -> {y}, [only|just|but only] the {n} [one|occurrence|time]",
    ],
};
const GONE: Phrasings = Phrasings {
    commands: &[
        "[delete|remove|delete|remove|erase|drop|cut|strip|take out|get rid of|take|cut out|kill|wipe|throw out|eliminate|scratch|clear] [||||the word |the text |the line |the string |the words |the phrase |the part |the sentence |the value |the bit ]{x} [from|from|from|in|out of|inside] $F",
        "delete {x} [from|in] {f}",
        "remove {x} [from|in] {f}",
        "[in|from|inside] $F[,|] [delete|remove|drop|erase|cut] [the word |the text |the line |]{x}",
        "[edit|update|change] $F [and|to] [remove|delete|drop] {x}",
        "[edit|update|change] $F so that {x} is [gone|removed|deleted|no longer there]",
        "replace {x} with nothing in $F",
        "[find|look for] {x} in $F and [delete|remove] it",
        "make {x} [disappear|go away|vanish] from $F",
        "leave out {x} in $F",
        "open $F and [delete|remove] {x}",
        "[delete|remove|erase|drop|cut] from $F [the word|the text|the line|the string|the phrase|the part|the sentence|the bit] {x}",
        "[strike|cut|ditch|lose|kick|pull|purge|nix|omit|chop|toss|scrub|snip] {x} from $F",
        "[strike|cross|leave|take|cut|rub|edit|throw|scratch|get] out {x} [in|from|of] $F",
        "[cross|strike|take|cut|leave] {x} out [of|in] $F",
        "[get|take|throw|kick] {x} out of $F",
        "[replace|swap] {x} in $F [with|by|for] [nothing|an empty string|the empty string|an empty text]",
        "[change|turn] {x} [to|into] nothing in $F",
        "[make sure|see to it|ensure|take care] that $F [no longer contains|no longer says|no longer has|doesn't contain|does not contain|doesn't mention|doesn't say] {x}",
        "[make sure|see to it|ensure|take care] that {x} is [gone|removed|deleted] from $F",
        "[have|get] {x} [removed|deleted|erased|dropped] from $F",
        "[open|go to|go into|take] $F[,|] and [take out|erase|cut|drop|delete|remove] {x}",
        "[clean|tidy] up $F by [removing|deleting] {x}",
        "[delete|remove] where $F says {x}",
        "[delete|remove|drop] [the|that|this|my] {x} [from|in] $F",
        "[do|run|apply] s/{x}// [on|in|to] {f}",
        "[fix|edit|update|change] $F: [remove|delete|drop|no|without|take out] {x}",
    ],
    questions: &[
        "can {x} be [removed|deleted] from $F",
        "can we [remove|delete|drop] {x} from $F",
        "$G [removing|deleting|erasing|dropping|cutting|taking out|getting rid of] {x} [from|in] $F",
        "can {x} [go|disappear|be dropped|be taken out] from $F",
        "could {x} [please be|be] [removed|deleted|dropped|erased] from $F",
        "could we have $F without {x}",
        "can we get rid of {x} in $F",
        "can $F do without {x}",
        "can i have $F without {x}",
        "shouldn't {x} be removed from $F",
    ],
    statements: &[
        "{x} should [go|be gone|be removed|be deleted|not be there|disappear] [from|in] $F",
        "[i want|i need|i'd like] {x} [removed|deleted|gone|out] [from|of] $F",
        "{f}: [delete|remove|drop] {x}",
        "{x} must go from $F",
        "$F should not [contain|say|have] {x}[| any more]",
        "i don't want {x} in $F[| any more]",
        "no more {x} in $F, remove it",
        "{f} without {x} please",
        "{x} is [not needed|not wanted|not used|unnecessary|superfluous|obsolete] in $F [|any more|any longer][|, remove it|, delete it|, take it out|, drop it|. Remove it]",
        "{x} in $F is [superfluous|too much|not needed|wrong|obsolete|a leftover|nonsense|unnecessary], [delete|remove|drop|erase] it",
        "{x} [doesn't|does not] belong in $F[|, remove it|, delete it|, take it out]",
        "{x} has [no place|no business] in $F[|, remove it|, delete it]",
        "{x} [is to be|has to be|must be|needs to be|ought to be|can be|shall be] [removed|deleted|dropped|erased|cut|taken out] [from|in] $F",
        "{x} [has to|needs to|can|may|shall] [go|disappear] from $F",
        "in $F[,|] {x} [should be|must be|has to be|needs to be|can be] [removed|deleted|dropped|gone]",
        "we [don't|do not] need {x} in $F [any more|any longer|][|, remove it|, delete it|. Delete it]",
        "i [don't|do not] [want|need|like] {x} in $F[,|;] [remove|delete|drop] it",
        "i want {x} out of $F",
        "i [accidentally|mistakenly] [put|wrote|left|pasted|typed] {x} in $F, [remove|delete|erase|drop] it",
        "i [put|wrote|left|pasted|typed] {x} in $F by [mistake|accident], [remove|delete|erase|drop|take] it[| out| again]",
        "there is {x} in $F[,|;| and] [delete it|remove it|it should go|take it out|it must go|i want it gone|it shouldn't be there]",
        "$F [has|contains|says|still has|still contains|still says] {x}[,|;] [delete it|remove it|take it out|drop that|get rid of it|erase that]",
        "$F [must|may|can|shall] [not|no longer] [contain|say|have|mention] {x}",
        "$F [should|must|has to] [lose|do without|be without|be free of] {x}",
        "why is {x} still in $F? [Remove|Delete|Drop] it",
        "{f}: {x} [out|can go|must go|should go|has to go|is to be removed]",
        "{f}: s/{x}//",
        "no {x} in $F please",
        "[no more|without] {x} in $F please",
        "s/{x}// in {f}",
        "sed -i 's/{x}//' {f}",
        "sed -i s/{x}// {f}",
        "[removal|deletion] of {x} from $F",
        "it would be [nice|good|great] if {x} were [gone|removed] from $F",
        "i'd [like|love] to have {x} [removed|deleted|gone] from $F",
    ],
};
const ALL_GONE: Phrasings = Phrasings {
    commands: &[
        "[delete|remove|erase|drop|strip|cut|get rid of] [all|every|each|all occurrences of|every occurrence of|all instances of|any] {x} [from|in] $F",
        "[delete|remove|erase|drop] {x} [everywhere in|everywhere from|throughout] $F",
        "[in|from] $F[,|] [delete|remove] [all|every|all occurrences of|each] {x}",
        "[delete|remove|erase|drop|strip] {x} [from|in] $F [everywhere|wherever it appears|wherever it occurs|in all places|each time it appears|globally|as often as it is there]",
        "[find|look for] [all|every] {x} in $F and [delete|remove|erase] [them|them all|each]",
        "[replace|swap] [all|every|each] {x} in $F [with|by] nothing",
        "[make sure|see to it|ensure] that no {x} is left in $F",
        "[apply|do|run] s/{x}//g [to|on|in] {f}",
        "go through $F and [delete|remove] [all|every|each] {x}",
    ],
    questions: &[
        "can [all|every] {x} be [removed|deleted] from $F",
        "$G [removing|deleting|dropping] [all|every|each|all occurrences of] {x} [from|in] $F",
    ],
    statements: &[
        "[all|every] {x} should be [removed|deleted] from $F",
        "{f}: [delete|remove] [all|every] {x}",
        "[all|every|each] {x} in $F [must go|should go|has to go|must be removed|can be deleted]",
        "there should be no {x} left in $F",
        "wherever $F says {x}, [remove|delete] it",
        "i want [all|every|each] {x} [removed|deleted|gone] from $F",
        "{x} [occurs|appears] [several times|many times] in $F[,|;] [remove|delete] [them all|all of them|each]",
        "s/{x}//g in {f}",
        "sed -i 's/{x}//g' {f}",
        "{f}: s/{x}//g",
    ],
};

/// The same of one of several matches.
const NTH_GONE: Phrasings = Phrasings {
    commands: &[
        "[delete|remove|erase|drop|cut|take out] the {n} [|occurrence of |instance of ]{x} [from|in] $F",
        "[in|from] $F[,|] [delete|remove|drop] the {n} {x}",
        "[delete|remove] {x} [from|in] $F, but only the {n} [one|time|occurrence]",
        "[delete|remove|drop] [occurrence|match|instance] {i} of {x} [from|in] $F",
    ],
    questions: &[
        "can the {n} {x} be [removed|deleted] from $F",
        "$G [removing|deleting] the {n} {x} from $F",
    ],
    statements: &[
        "the {n} {x} in $F [should|must|has to] [go|be removed|be deleted]",
        "i want the {n} {x} [removed|deleted|gone] from $F",
        "{f}: [delete|remove] the {n} {x}",
    ],
};
/// `{x}` as above; what replaces it, `{u}`, is bare and at the end.
const OPEN: Phrasings = Phrasings {
    commands: &[
        "[replace|change|update|rewrite] {x} in $F [with|to|by|so that it reads|so it says|to say|to read][:| the following:| this:] {u}",
        "[replace|change] [the line|the text|the sentence|the part|the words] {x} in $F [with|by|to] [this|the following|this line|this text|these words|the text|the words]:[ |\n|\n\n]{u}",
        "in $F[,|] [replace|change|rewrite] {x} [with|to][:| this:| the following:] {u}",
        "in $F[,|] replace {x} [with|by] [this|the following|the text|the line|the words]:[ |\n]{u}",
        "[find|look for] {x} in $F and [replace it with|change it to|make it say|make it][:| this:| the following:] {u}",
        "in $F[,|] where it says {x}[,|] [write|put][:| this:| instead:] {u}",
        "make {x} in $F [say|read]: {u}",
    ],
    questions: &[],
    statements: &[
        "{x} in $F should [read|say|be|become]: {u}",
        "in $F[,|] {x} [should|must] [read|say|be|become]: {u}",
        "$F says {x}[,|;| but] it should [say|be|read]: {u}",
        "[new|the new] text for {x} in $F: {u}",
        "[where|at the place where] $F says {x} it should say: {u}",
        "{f}: replace {x} with: {u}",
        "file: {f}\nold: {x}\nnew: {u}",
        "in {f}\nold: {x}\nnew: {u}",
    ],
};
/// Between line ends any text can stand bare: `{p}` is what is there, `{u}` or `{q}` what is to be there.
const LINES: Phrasings = Phrasings {
    commands: &[
        "in $F[,|] [replace|change][| the line| this| this line|:| this:| the text:]\n{p}\n[with|by|to|with this:|with this|with:]\n{u}",
        "[replace|change][| the line| this| this line|:| this:]\n{p}\n[with|to|by|with this:|into]\n{q}\nin $F",
        "[replace|change] [this|this line|this text]:\n\n{p}\n\n[with this|to this|by this|with]:\n\n{q}\n\nin $F",
        "[edit|update|fix|change] $F\n[old|before|from]: {p}\n[new|after|to]: {u}",
        "[edit|update|fix|change] $F:\n- {p}\n+ {u}",
        "in $F[,|] [replace|change]\n```\n{p}\n```\n[with|to|by]\n```\n{q}\n```",
        "[replace|change]\n```\n{p}\n```\nin $F [with|to|by]\n```\n{q}\n```",
    ],
    questions: &[],
    statements: &[
        "{f}:\n-{p}\n+{u}",
        "{f}\n- {p}\n+ {u}",
        "[old|before|was]:\n{p}\n[new|after|should be]:\n{q}\n[file|in]: {f}",
        "in $F this line\n{p}\nshould [be|read|say|become]\n{u}",
        "{p}\nin $F should [be|read|say|become]\n{u}",
        "[this|this line] in $F is wrong:\n{p}\n[it should be|it should say|correct is]:\n{u}",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let nth = draw.small(1, 6);
    let (n, i) = (ordinal(draw, nth), nth.to_string());
    let slots = [("f", f.as_str()), ("n", &n), ("i", &i)];
    let (old, new) = sides(draw);
    match draw.between(0, 99) {
        0..60 => {
            let text = ONCE.draw(draw);
            let text = put(draw, &text, "replace {x} [with|by] {y} in {f}", &old, &new, &slots);
            call("edit", text, Call::edit(path, old, new))
        }
        60..65 => {
            let text = OPEN.draw(draw);
            let (shown, new) = open_text(draw, &text);
            let x = if is_plain(&old) && draw.chance(30) { old.clone() } else { quoted(draw, &old) };
            let text = filled(&text, &[("f", &f), ("x", &x), ("u", &shown)]);
            call("edit", text, Call::edit(path, old, new))
        }
        65..69 => {
            let text = LINES.draw(draw);
            let several = text.contains("```") || text.contains("\n\n{");
            let block = |draw: &mut Draw| {
                if several && draw.chance(40) { draw.lines(2, 3) } else { bare(draw, false) }
            };
            let (old, new) = (block(draw), block(draw));
            let text = filled(&text, &[("f", &f), ("p", &old), ("q", &new), ("u", &new)]);
            call("edit", text, Call::edit(path, old, new))
        }
        69..81 => {
            let text = ALL.draw(draw);
            let text = put(draw, &text, "replace all {x} [with|by] {y} in {f}", &old, &new, &slots);
            call("edit all", text, Call::edit(path, old, new).occurrence(0))
        }
        81..85 => {
            let text = NTH.draw(draw);
            let text = put(draw, &text, "replace the {n} {x} [with|by] {y} in {f}", &old, &new, &slots);
            call("edit all", text, Call::edit(path, old, new).occurrence(nth))
        }
        85..97 => {
            let text = GONE.draw(draw);
            let text = put(draw, &text, "delete {x} from {f}", &old, "", &slots);
            call("edit", text, Call::edit(path, old, ""))
        }
        97..99 => {
            let text = ALL_GONE.draw(draw);
            let text = put(draw, &text, "delete all {x} from {f}", &old, "", &slots);
            call("edit all", text, Call::edit(path, old, "").occurrence(0))
        }
        _ => {
            let text = NTH_GONE.draw(draw);
            let text = put(draw, &text, "delete the {n} {x} from {f}", &old, "", &slots);
            call("edit all", text, Call::edit(path, old, "").occurrence(nth))
        }
    }
}

/// The request with its slots filled: both texts bare where nobody could read them in two ways.
fn put(draw: &mut Draw, request: &str, other: &str, old: &str, new: &str, slots: &[(&str, &str)]) -> String {
    let plain = |text: &str| {
        // A comma must not be one of the request's.
        let comma = text.contains(',') && request.contains(',');
        let beside = text.contains(' ') && request.contains("} {");
        is_plain(text) && !comma && !beside
    };
    let both = plain(old) && plain(new);
    let mut request = request.to_owned();
    // In `s/a/b/` there are no quotes.
    let slashed = request.contains("/{x}/");
    if slashed && (!both || format!("{old}{new}").contains(['/', '\''])) {
        request = expand(draw, other);
    }
    let bare = both && (slashed || draw.chance(60));
    let half = !bare && draw.chance(6);
    let first = bare || half && plain(old) && draw.chance(60);
    let second = bare || half && !first && plain(new);
    let x = if first { old.to_owned() } else { quoted(draw, old) };
    let y = if second { new.to_owned() } else { quoted(draw, new) };
    let mut all = vec![("x", x.as_str()), ("y", y.as_str())];
    all.extend(slots);
    filled(&request, &all)
}

/// Returns the text that is replaced, and the text that replaces it.
fn sides(draw: &mut Draw) -> (String, String) {
    match draw.between(0, 99) {
        0..6 => (draw.text(), draw.text()),
        6..9 => (draw.lines(2, 2), draw.lines(1, 3)),
        // A text of which a part changes.
        9..15 => {
            let (text, word) = (draw.words(2, 5), draw.word());
            let mut words: Vec<&str> = text.split(' ').collect();
            let at = draw.between(0, u32::try_from(words.len() - 1).unwrap_or(0)) as usize;
            words[at] = &word;
            let new = words.join(" ");
            if new == text { (text, format!("{new} {word}")) } else { (text, new) }
        }
        _ => (side(draw), side(draw)),
    }
}

fn side(draw: &mut Draw) -> String {
    match draw.between(0, 99) {
        0..48 => draw.token(),
        48..62 => draw.words(1, 4),
        62..74 => draw.plain_words(2, 4),
        74..82 => draw.everyday(),
        82..88 => draw.code(),
        88..93 => draw.sentence(2, 7),
        _ => draw.text(),
    }
}

/// Returns true if it can be told apart from the words around it.
fn is_plain(text: &str) -> bool {
    const JOINTS: &[&str] = &[
        "from",
        "every",
        "each",
        "into",
        "an",
        "any",
        "instead",
        "throughout",
        "everywhere",
        "rather",
        "where",
        "wherever",
        "should",
        "over",
        "inside",
        "within",
        "says",
        "say",
        "becomes",
        "now",
        "it's",
    ];
    const STARTS: &[&str] = &["just", "first", "please"];
    let words: Vec<String> = text.split(' ').map(str::to_lowercase).collect();
    words.len() <= 5
        && !text.contains(['"', '“', '\t', '\n'])
        && !text.starts_with(['\'', '`'])
        && !text.ends_with([',', ':', ';', '.', '?', '!', '\'', '`'])
        && !STARTS.contains(&words[0].as_str())
        && words.iter().all(|word| {
            let word = word.trim_end_matches([',', '.', '?', '!', ':']);
            !JOINTS.contains(&word) && !is_small_word(word)
        })
}
