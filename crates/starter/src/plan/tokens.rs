//! Splits a request into words, quoted texts and punctuation marks.

use super::words;

/// Opening quotes and the quotes that close them.
const QUOTES: [(char, char); 6] = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// Names of files that have neither a dot nor a slash.
const BARE_NAMES: &str = " Makefile Dockerfile README LICENSE TODO NOTES CHANGELOG Justfile Procfile Gemfile Rakefile \
                          Vagrantfile Jenkinsfile AUTHORS CONTRIBUTING INSTALL COPYING VERSION CODEOWNERS ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// A text in quotes. The token's text is without them.
    Quoted,
    Mark,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// The index of its first byte in the request, and the index after its last one, quotes included.
    pub start: usize,
    pub end: usize,
}

/// Splits a request. Returns `None` if it is not clear where a quoted text ends.
pub(super) fn tokens(request: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = request[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if let Some(quoted) = quoted(request, at)? {
            at = quoted.end;
            tokens.push(quoted);
        } else {
            let rest = &request[at..];
            let end = at + rest.find(char::is_whitespace).unwrap_or(rest.len());
            push_word(request, at, end, &mut tokens);
            at = end;
        }
    }
    join_names(request, &mut tokens);
    Some(tokens)
}

/// The quoted text that begins at `at`, if one does.
fn quoted(request: &str, at: usize) -> Option<Option<Token<'_>>> {
    let rest = &request[at..];
    let Some((open, close)) = QUOTES.into_iter().find(|(open, _)| rest.starts_with(*open)) else {
        return Some(None);
    };
    let start = at + open.len_utf8();
    for (place, _) in request[start..].match_indices(close) {
        let end = start + place;
        let before = request[..end].chars().next_back().filter(|_| end > start);
        let after = request[end + close.len_utf8()..].chars().next();
        let goes_on = after.is_some_and(char::is_alphanumeric);
        if goes_on && matches!(close, '\'' | '’') && before.is_some_and(char::is_alphanumeric) {
            continue; // an apostrophe
        }
        if goes_on || (before == Some('\\') && close != '\\') {
            return None;
        }
        let text = &request[start..end];
        return Some(Some(Token { kind: Kind::Quoted, text, start: at, end: end + close.len_utf8() }));
    }
    // A single apostrophe is part of a word.
    if open == '\'' || open == '‘' { Some(None) } else { None }
}

/// Adds a word, and the punctuation marks around it as tokens of their own.
fn push_word<'a>(request: &'a str, start: usize, end: usize, tokens: &mut Vec<Token<'a>>) {
    let mark = |at: usize| Token { kind: Kind::Mark, text: &request[at..=at], start: at, end: at + 1 };
    let word = &request[start..end];
    let opened = word.starts_with('(') && word.len() > 1;
    let from = start + usize::from(opened);
    let mut to = end;
    while to > from {
        let word = &request[from..to];
        let closes = word.ends_with(')') && !word.contains('(');
        if !closes && !word.ends_with(['.', ',', ';', '!', '?', ':']) {
            break;
        }
        to -= 1;
    }
    tokens.extend(opened.then(|| mark(start)));
    if to > from {
        tokens.push(Token { kind: Kind::Word, text: &request[from..to], start: from, end: to });
    }
    tokens.extend((to..end).map(mark));
}

/// Joins names such as `Meeting Notes 2024.md`: a name with an ending, and the capitalised words and numbers right before
/// it. The first word of a request and words that requests are made of are not part of a name.
fn join_names<'a>(request: &'a str, tokens: &mut Vec<Token<'a>>) {
    let mut at = 1;
    while at < tokens.len() {
        let is_name = tokens[at].kind == Kind::Word && is_path(tokens[at].text);
        let mut first = at;
        while is_name && first > 1 && is_part_of_name(tokens[first - 1], tokens[first]) {
            first -= 1;
        }
        while first < at && !is_capitalised(tokens[first].text) {
            first += 1;
        }
        if first < at {
            let (start, end) = (tokens[first].start, tokens[at].end);
            tokens[first] = Token { kind: Kind::Word, text: &request[start..end], start, end };
            tokens.drain(first + 1..=at);
            at = first;
        }
        at += 1;
    }
}

fn is_capitalised(word: &str) -> bool {
    word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase)
}

fn is_part_of_name(token: Token<'_>, next: Token<'_>) -> bool {
    token.kind == Kind::Word
        && token.end + 1 == next.start
        && token.text.starts_with(|first: char| first.is_uppercase() || first.is_ascii_digit())
        && token.text.chars().all(char::is_alphanumeric)
        && !words::is_common(token.text)
}

impl Token<'_> {
    pub(super) fn is_path(&self) -> bool {
        match self.kind {
            Kind::Word => is_path(self.text),
            // A quoted sentence is no name.
            Kind::Quoted => self.text.split(' ').count() <= 6 && is_path(self.text),
            Kind::Mark => false,
        }
    }

    pub(super) fn is_url(&self) -> bool {
        self.text.contains("://") || self.text.starts_with("www.")
    }
}

/// Returns true if `name` looks like the path of a file or a directory.
fn is_path(name: &str) -> bool {
    if name.contains("://") || name.contains(['\n', '"', '<', '>', '|', '*', '=', '@', ':', '`', '$']) {
        return false;
    }
    let file = name.rsplit('/').next().unwrap_or_default();
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_ending = (1..=10).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    let is_number = name.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_named = BARE_NAMES.split(' ').any(|known| known == name);
    (is_ending && !is_number) || is_named || (name.contains('/') && name.len() > 1)
}
