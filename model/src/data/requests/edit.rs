//! Requests to replace one text by another.

use super::{Request, call, ordinal, quoted, some_path};
use crate::data::{
    Call, Draw,
    draw::is_small_word,
    grammar::{Phrasings, expand, filled},
};

/// `{x}` is what is there, `{y}` what is to be there.
const ONCE: Phrasings = Phrasings {
    commands: &[
        "$C {x} $B {y} $I $F",
        "$C {x} $B {y} $I $F",
        "$C {x} $B {y} $I $F",
        "$C {x} $B {y} $I $F",
        "$C {x} $B {y} $I $F",
        "replace {x} with {y} in {f}",
        "replace {x} by {y} in {f}",
        "change {x} to {y} in {f}",
        "change {x} into {y} in {f}",
        "swap {x} for {y} in {f}",
        "rename {x} to {y} in {f}",
        "replace {x} with {y} in $F",
        "[replace|change|swap|rename|turn|fix|correct|update] [the word|the text|the string|the line|the value|the phrase|the name|the term|the words|the part|the variable|the function|the setting|the bit] {x} $B {y} $I $F",
        "[replace|change|swap|rename] [the word|the text|the string|the line|the name] {x} [with|to|by|for|into] [the word |the text |the string |the line |]{y} $I $F",
        "[in|in|inside|within] $F[,|,|] [replace|change|swap|rename|turn|substitute|update] {x} $B {y}",
        "in {f} replace {x} with {y}",
        "in {f}, change {x} to {y}",
        "in $F, [replace|change] [the word |the text |the line |]{x} [with|to|by] {y}",
        "edit $F: [replace|change] {x} [with|to|by] {y}",
        "[edit|update|modify|change|fix|adjust] $F[ and| to|,|:|, please] [replace|change|swap|rename] {x} [with|to|by] {y}",
        "[edit|update|modify|change|fix|adjust] $F so that [it says {y} instead of {x}|{x} becomes {y}|{x} is replaced by {y}|{x} is {y}|{x} reads {y}]",
        "[make|let] [it say {y} instead of {x}|{x} become {y}|{x} read {y}|{x} say {y}] in $F",
        "[make|turn] {x} [into|to] {y} in $F",
        "substitute {y} for {x} in $F",
        "[put|write|use|place|insert|have] {y} [instead of|in place of|where it says|for|rather than] {x} in $F",
        "[put|write|use] {y} where {f} says {x}",
        "set {x} to {y} in $F",
        "[fix|correct] the [typo|error|mistake|spelling|spelling mistake|misspelling] {x} in $F[, it should be|; it should be|. It should be|: it should be|, it must be|, it is|, to| to|, the right word is|, make it| -> ] {y}",
        "[fix|correct] {x} in $F to {y}",
        "[find|look for|search for] {x} in $F and [replace it with|replace it by|change it to|make it|turn it into|substitute it with|swap it for] {y}",
        "[open|take|go to|go into] $F and [replace|change|swap|rename] {x} [with|to|by|for] {y}",
        "[switch|exchange|trade] {x} [for|with|to] {y} in $F",
        "use edit_file [on|in] {f} to [replace|change] {x} [with|to] {y}",
        "[replace|change] {x} in $F [with|by|to|into] {y}",
        "[replace|change|swap|rename] {x} in $F [with|to|for] {y}",
        "change $F from {x} to {y}",
        "change the text in $F from {x} to {y}",
        "replace [what says|where it says] {x} [with|by] {y} in $F",
        "replace in $F {x} [with|by] {y}",
        "[rename|change] the [variable|function|heading|title|key|field|constant|method|type|class|setting|name] {x} to {y} in $F",
        "modify {x} to {y} in $F",
        "edit {f} so {x} becomes {y}",
        "[replace|change] {x} -> {y} in $F",
        "write {y} over {x} in $F",
        "overwrite {x} with {y} in $F",
        "replace {x} with {y} inside the file {f}",
        "update [the value |the version |the line |]{x} to {y} in $F",
        "update {x} in $F to {y}",
        "correct {x} to {y} in $F",
        "bump {x} to {y} in $F",
        "translate {x} to {y} in $F",
    ],
    questions: &[
        "can {x} be [replaced with|replaced by|changed to] {y} in $F",
        "can we [replace|change] {x} [with|to|by] {y} in $F",
        "can $F say {y} instead of {x}",
        "could {x} become {y} in $F",
    ],
    statements: &[
        "{x} should [be|read|become|say] {y} in $F",
        "{x} [must be|needs to be|has to be|should be] [replaced by|replaced with|changed to|renamed to|turned into] {y} in $F",
        "[in|inside] $F[,|] {x} should [be|read|become|say] {y}",
        "$F says {x} but [it |]should say {y}[|. Fix it|, fix that|. Please fix it.|, please change it]",
        "$F should say {y} instead of {x}",
        "[i want|i need|i'd like|we need] {x} [replaced by|replaced with|changed to|renamed to|to be|to become|to say|turned into] {y} in $F",
        "{f}: [replace|change] {x} [with|to|by] {y}",
        "{f}: {x} -> {y}",
        "{f}: {x} => {y}",
        "{x} -> {y} in {f}",
        "s/{x}/{y}/ in {f}",
        "sed -i 's/{x}/{y}/' {f}",
        "it says {x} in {f}, [make it|change it to|it should be|change that to] {y}",
        "there is a typo in $F: {x} should be {y}",
        "there's a typo in {f}, {x} should be {y}",
        "[i want|i'd like] $F to say {y} instead of {x}",
        "in {f} there is {x}, [make it|change it to|replace it with] {y}",
        "{x} in $F should be {y}",
        "{x} in $F [is wrong, it should be|must become|should read|has to be] {y}",
        "not {x} but {y} in {f}",
        "instead of {x}, {f} should say {y}",
        "{f} has {x} where it should have {y}, fix it",
        "edit {f}: {x} to {y}",
    ],
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
    ],
    questions: &[
        "can [all|every] {x} be [replaced with|replaced by|changed to] {y} in $F",
        "can we replace all {x} [with|by] {y} in $F",
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
    ],
};
const NTH: Phrasings = Phrasings {
    commands: &[
        "$C [the {n}|only the {n}|just the {n}|the {n} occurrence of|the {n} instance of|only the {n} occurrence of|the {n} time] {x} $B {y} $I $F",
        "[in|inside] $F[,|] [replace|change] the {n} [occurrence of |instance of |]{x} [with|to|by] {y}",
        "replace the {n} {x} with {y} in {f}",
        "change the {n} {x} to {y} in {f}",
    ],
    questions: &[],
    statements: &[
        "the {n} {x} in $F should be {y}",
        "[i want|i need|i'd like] the {n} {x} [replaced by|replaced with|changed to] {y} in $F",
        "{f}: [replace|change] the {n} {x} [with|to|by] {y}",
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
    ],
    questions: &["can {x} be [removed|deleted] from $F", "can we [remove|delete|drop] {x} from $F"],
    statements: &[
        "{x} should [go|be gone|be removed|be deleted|not be there|disappear] [from|in] $F",
        "[i want|i need|i'd like] {x} [removed|deleted|gone|out] [from|of] $F",
        "{f}: [delete|remove|drop] {x}",
        "{x} must go from $F",
        "$F should not [contain|say|have] {x}[| any more]",
        "i don't want {x} in $F[| any more]",
        "no more {x} in $F, remove it",
        "{f} without {x} please",
    ],
};
const ALL_GONE: Phrasings = Phrasings {
    commands: &[
        "[delete|remove|erase|drop|strip|cut|get rid of] [all|every|each|all occurrences of|every occurrence of|all instances of|any] {x} [from|in] $F",
        "[delete|remove|erase|drop] {x} [everywhere in|everywhere from|throughout] $F",
        "[in|from] $F[,|] [delete|remove] [all|every|all occurrences of|each] {x}",
    ],
    questions: &[],
    statements: &[
        "[all|every] {x} should be [removed|deleted] from $F",
        "{f}: [delete|remove] [all|every] {x}",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    let (path, f) = some_path(draw);
    let (old, new) = (side(draw), side(draw));
    let (old, new) = if draw.chance(6) { (draw.text(), draw.text()) } else { (old, new) };
    // Bare only what nobody could read in two ways.
    let bare = is_plain(&old) && is_plain(&new) && draw.chance(45);
    let half = !bare && is_plain(&old) && draw.chance(4);
    let x = if bare || half { old.clone() } else { quoted(draw, &old) };
    let y = if bare { new.clone() } else { quoted(draw, &new) };
    let nth = draw.small(1, 6);
    let n = ordinal(draw, nth);
    let fill = |text: &str| filled(text, &[("f", &f), ("x", &x), ("y", &y), ("n", &n)]);
    match draw.between(0, 99) {
        0..67 => {
            let mut text = ONCE.draw(draw);
            // In `s/a/b/` there are no quotes.
            if text.contains("s/") && !(bare && !old.contains('/') && !new.contains('/')) {
                text = expand(draw, "replace {x} [with|by] {y} in {f}");
            }
            call("edit", fill(&text), Call::edit(path, old, new))
        }
        67..81 => {
            let mut text = ALL.draw(draw);
            if text.contains("s/") && !(bare && !old.contains('/') && !new.contains('/')) {
                text = expand(draw, "replace all {x} [with|by] {y} in {f}");
            }
            call("edit all", fill(&text), Call::edit(path, old, new).occurrence(0))
        }
        81..85 => call("edit all", fill(&NTH.draw(draw)), Call::edit(path, old, new).occurrence(nth)),
        85..98 => call("edit", fill(&GONE.draw(draw)), Call::edit(path, old, "")),
        _ => call("edit all", fill(&ALL_GONE.draw(draw)), Call::edit(path, old, "").occurrence(0)),
    }
}

/// What is replaced, or what replaces it.
fn side(draw: &mut Draw) -> String {
    match draw.between(0, 99) {
        0..55 => draw.token(),
        55..80 => draw.words(1, 4),
        80..88 => draw.code(),
        88..92 => draw.sentence(2, 7),
        _ => draw.text(),
    }
}

fn is_plain(text: &str) -> bool {
    const JOINTS: &[&str] =
        &["from", "every", "each", "into", "an", "any", "instead", "throughout", "everywhere"];
    let plain = |word: &str| {
        let word = word.to_lowercase();
        !JOINTS.contains(&word.as_str()) && !is_small_word(&word)
    };
    text.split(' ').count() <= 3
        && !text.starts_with(['"', '\'', '`', '“'])
        && !text.contains(['"', '“', '\t'])
        && !text.ends_with([',', '.', ':', ';'])
        && text.split(' ').all(plain)
}
