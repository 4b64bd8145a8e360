//! Changes whose texts are not in quotes. They are taken only if they reach from one known word to the next or to the end
//! of the request, and can only mean themselves.

use super::{
    Change,
    form::{Form, Piece},
    tokens::Token,
    words::is_literal,
};

/// The most words of a text that is written without quotes.
const MAX_WORDS: usize = 8;
/// The first words of what people note down. Any other text, such as `weekly schedule`, may say what to write instead of
/// being it.
const NOTES: &str = "hello hi hey dear buy remember";
/// The fewest letters of a word without quotes that is replaced. A shorter one is in the middle of many others.
const MIN_WORD: usize = 3;
/// The endings of files for people to read. In other files a word such as `debug` is more often a name than a text.
const PROSE: [&str; 6] = ["txt", "md", "markdown", "rst", "adoc", "text"];

/// Reads a request to replace a text: `replace X with Y in F`, `in F, replace X with Y`, `X -> Y in F`.
pub(super) fn edit(request: &str, tokens: &[Token<'_>]) -> Option<Change> {
    let form = Form::new(request, tokens);
    let (mut pieces, is_polite) = without_ends(&form);
    let mut path = take_path_at_start(&mut pieces);
    if path.is_none() {
        path = take_path_at_end(&mut pieces);
        // Nobody knows where the text begins in `hello world -> bye in a.txt`.
        if is_polite && pieces.first().is_none_or(|piece| piece.letter != 'r') {
            return None;
        }
    } else if !request.ends_with(is_end_of_text) || pieces.iter().any(|piece| piece.letter == ',') {
        return None; // what comes last may not belong to the text
    }
    let (path, everywhere) = path?;
    let verb = pieces.first().filter(|piece| piece.letter == 'r').map(|piece| piece.text.to_lowercase());
    let pieces = &pieces[usize::from(verb.is_some())..];
    let all = pieces.first().is_some_and(|piece| piece.letter == '0');
    let pieces = &pieces[usize::from(all)..];
    let mut between = pieces.iter().enumerate().filter(|(_, piece)| matches!(piece.letter, '=' | '>' | '-'));
    let (at, by) = between.next().filter(|_| between.next().is_none())?;
    let (old, new) = (text(request, &pieces[..at])?, text(request, &pieces[at + 1..])?);
    let is_clear = match (verb.as_deref(), by.letter) {
        (Some(_), '=') | (Some("rename"), '>') => keeps_no_label(old, new),
        (Some(_), '>' | '-') | (None, '-') => is_value(old) || (is_prose(path) && are_alike(old, new)),
        _ => false,
    };
    let is_word = old.chars().all(char::is_alphanumeric);
    let same_size = old.split(' ').count() == new.split(' ').count();
    if !is_clear || (by.letter == '>' && !same_size) || (is_word && old.chars().count() < MIN_WORD) {
        return None;
    }
    Change::edit(path, old, new, (all || everywhere).then_some(0))
}

/// Reads a request to create a file: `create F with X`, `write X to F`.
pub(super) fn write(request: &str, tokens: &[Token<'_>]) -> Option<Change> {
    let form = Form::new(request, tokens);
    let (pieces, _) = without_ends(&form);
    let (_, rest) = pieces.split_first().filter(|(verb, _)| matches!(verb.letter, 'w' | 'k'))?;
    let named = &rest[rest.iter().take_while(|piece| piece.letter == '_').count()..];
    let (path, content) = match (named, rest) {
        ([path, with, content @ ..], _) if path.letter == 'p' && with.letter == '=' => (path.text, content),
        (_, [content @ .., to, path]) if matches!(to.letter, '>' | 'i' | 'a') && path.letter == 'p' => {
            (path.text, content)
        }
        _ => return None,
    };
    let content = text(request, content).filter(|_| content.iter().all(|piece| piece.letter != 't'))?;
    let first = content.split_whitespace().next()?.to_lowercase();
    let is_note = NOTES.split(' ').any(|word| word == first) && content.split(' ').count() <= MAX_WORDS;
    let is_foreign = !content.contains(|c: char| c.is_ascii_alphabetic());
    // A mark at the end of the request may belong to the text.
    let ends_clearly = request.trim_end().ends_with(char::is_alphanumeric);
    let fits = is_prose(path) && ends_clearly && (is_note || is_foreign);
    fits.then(|| Change::write(path, format!("{content}\n"), false))
}

/// A mark at the end of the request may belong to a text before it.
fn is_end_of_text(last: char) -> bool {
    !matches!(last, '.' | ',' | ';' | ':' | '!' | '?')
}

/// The pieces without those that mean nothing at the start, and without the full stop at the end. The second value is true
/// if there was anything at the start.
fn without_ends<'a>(form: &Form<'a>) -> (Vec<Piece<'a>>, bool) {
    let mut pieces = form.pieces.clone();
    pieces.pop_if(|last| matches!(last.text, "." | "!") || (form.asks && last.text == "?"));
    let means_nothing = |piece: &Piece<'_>| "_?,:".contains(piece.letter) && piece.text != "?";
    let start = pieces.iter().position(|piece| !means_nothing(piece)).unwrap_or(pieces.len());
    pieces.drain(..start);
    (pieces, start > 0)
}

/// Takes `in F,` or `F:` from the start. The second value is true if every occurrence is meant.
fn take_path_at_start<'a>(pieces: &mut Vec<Piece<'a>>) -> Option<(&'a str, bool)> {
    let before = pieces.iter().take_while(|piece| "ij_".contains(piece.letter)).count();
    let path = pieces.get(before).filter(|piece| piece.letter == 'p')?.text;
    let is_named = pieces[..before].iter().any(|piece| "ij".contains(piece.letter));
    let everywhere = pieces[..before].iter().any(|piece| piece.letter == 'j');
    let marks = pieces[before + 1..].iter().take_while(|piece| ",:".contains(piece.letter)).count();
    if !is_named && marks == 0 {
        return None;
    }
    pieces.drain(..before + 1 + marks);
    Some((path, everywhere))
}

/// Takes `in F` from the end.
fn take_path_at_end<'a>(pieces: &mut Vec<Piece<'a>>) -> Option<(&'a str, bool)> {
    let path = pieces.last().filter(|piece| piece.letter == 'p')?.text;
    let at = pieces.iter().rposition(|piece| "ij".contains(piece.letter))?;
    let everywhere = pieces[at].letter == 'j';
    let only_path = pieces[at + 1..pieces.len() - 1].iter().all(|piece| piece.letter == '_');
    pieces.truncate(at);
    only_path.then_some((path, everywhere))
}

/// The text that all of the pieces make up: one quoted text, or words that can only mean themselves.
fn text<'a>(request: &'a str, pieces: &[Piece<'a>]) -> Option<&'a str> {
    match pieces {
        [quoted] if quoted.letter == 't' => Some(quoted.text).filter(|text| !text.is_empty()),
        [first, .., last] => Some(&request[first.start..last.end]),
        [word] => Some(word.text),
        [] => None,
    }
    .filter(|text| pieces[0].letter == 't' || (is_literal(text) && !text.starts_with([':', ',', ';'])))
    .filter(|_| pieces.len() == 1 || pieces.iter().all(|piece| piece.letter != 't'))
}

/// Returns false for `version 1.0` and `2.0`: the first word seems to be what the number is called.
fn keeps_no_label(old: &str, new: &str) -> bool {
    let last = old.rsplit(' ').next().unwrap_or_default();
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    last.len() == old.len() || !(is_number(last) && is_number(new))
}

/// Returns true if a text is a value and not the name of one.
fn is_value(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_digit() || !(c.is_alphanumeric() || " _-.".contains(c)))
}

/// Returns true if two words are of one kind: `Ada` and `Bob`, or `apples` and `pears`, but not `author` and `Bob`.
fn are_alike(old: &str, new: &str) -> bool {
    let both = |is: fn(&str) -> bool| is(old) && is(new);
    both(|word| word.starts_with(char::is_uppercase)) || both(|word| word.len() > 3 && word.ends_with('s'))
}

fn is_prose(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.').is_some_and(|(_, ending)| PROSE.contains(&ending.to_lowercase().as_str()))
}
