//! Finds requests for more than one thing.

use super::tokens::{Kind, Token};

/// Verbs that requests begin with.
pub(super) const VERBS: &str = " append add cat change check clear compare copy count create delete display download edit \
                                empty explain fetch find fix get give insert list load look make move open output \
                                overwrite prepend print put read remove rename replace rewrite run save search show sort \
                                store summarise summarize swap tell touch translate update write ";
/// Verbs that ask for what the request before them asks for already, as in `open a.txt and show me what it says`.
const SHOWING: &str = " cat display give look open output print read show tell ";
/// Verbs of a way to what is then listed, as in `look in docs/ and list the files`.
const GOING: &str = " check find go look open ";
/// Words between two things.
const JOINING: [&str; 5] = ["and", "then", "also", "plus", "&"];

/// Returns true if a request names two things to do.
pub(super) fn is_several(tokens: &[Token<'_>]) -> bool {
    joins_two_names(tokens) || joins_two_verbs(tokens) || joins_two_pairs(tokens)
}

/// `read a.txt and b.txt`, but not `in a/, read b.txt`.
fn joins_two_names(tokens: &[Token<'_>]) -> bool {
    let is_name = |token: &Token<'_>| token.kind == Kind::Word && (token.is_path() || token.is_url());
    let names: Vec<usize> = (0..tokens.len()).filter(|&at| is_name(&tokens[at])).collect();
    names.windows(2).any(|pair| {
        let between = &tokens[pair[0] + 1..pair[1]];
        let is_directory = tokens[pair[0]].text.ends_with('/');
        let is_comma = matches!(between, [mark] if mark.text == ",");
        let same = tokens[pair[0]].text == tokens[pair[1]].text;
        !is_directory && !same && (is_comma || between.iter().any(is_joining))
    })
}

/// `read a.txt and delete it`, but not `open a.txt and show it to me`.
fn joins_two_verbs(tokens: &[Token<'_>]) -> bool {
    let is_verb = |token: &Token<'_>| token.kind == Kind::Word && has(VERBS, token.text);
    let ends =
        (1..tokens.len()).filter(|&at| is_joining(&tokens[at]) || matches!(tokens[at].text, "." | ";"));
    ends.into_iter().any(|at| {
        let (before, after) = (&tokens[..at], &tokens[at + 1..]);
        let after = after.iter().find(|token| !is_joining(token) && !is_polite(token));
        let Some(second) = after.filter(|token| is_verb(token) && !has(SHOWING, token.text)) else {
            return false;
        };
        let lists = second.text.eq_ignore_ascii_case("list");
        before.iter().any(|token| is_verb(token) && !(lists && has(GOING, token.text)))
    })
}

/// `replace a with b and c with d`
fn joins_two_pairs(tokens: &[Token<'_>]) -> bool {
    let is = |token: &Token<'_>, words: &[&str]| {
        token.kind == Kind::Word && words.contains(&token.text.to_lowercase().as_str())
    };
    let first = tokens.iter().position(|token| is(token, &["with", "by", "->"]));
    let last = tokens.iter().rposition(|token| is(token, &["with", "by", "->"]));
    first.zip(last).is_some_and(|(first, last)| tokens[first..last].iter().any(is_joining))
}

fn is_joining(token: &Token<'_>) -> bool {
    token.kind == Kind::Word && JOINING.contains(&token.text.to_lowercase().as_str())
}

fn is_polite(token: &Token<'_>) -> bool {
    ["please", "after", "that", "next", ","].contains(&token.text.to_lowercase().as_str())
}

fn has(list: &str, word: &str) -> bool {
    list.contains(&format!(" {} ", word.to_lowercase()))
}
