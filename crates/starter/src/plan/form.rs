//! The form of a request: the part that each of its words plays, and the texts and paths among them.

use super::{
    tokens::{Kind, Token},
    words::part,
};

/// A piece of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// A letter of `words::WORDS`, or `t` for a quoted text, `p` for a path, `u` for an unknown word, and punctuation marks
    /// as they are.
    pub letter: char,
    /// The text of a quote or a path, and what is written for any other piece.
    pub text: &'a str,
    pub start: usize,
    pub end: usize,
    /// A quoted text that may also be a path.
    may_be_path: bool,
}

/// The pieces of a request without those that mean nothing.
#[derive(Clone, Debug)]
pub(super) struct Form<'a> {
    pub pieces: Vec<Piece<'a>>,
    /// The request speaks of one line of several.
    pub one_line: bool,
    /// The request is a polite question.
    pub asks: bool,
}

impl<'a> Form<'a> {
    pub(super) fn new(request: &'a str, tokens: &[Token<'a>]) -> Self {
        let mut form = Self { pieces: Vec::new(), one_line: false, asks: false };
        let mut rest = tokens;
        while let [first, ..] = rest {
            let (letter, length) = match first.kind {
                Kind::Quoted => ('t', 1),
                Kind::Mark => (first.text.chars().next().unwrap_or('u'), 1),
                Kind::Word => part(rest).unwrap_or((if first.is_path() { 'p' } else { 'u' }, 1)),
            };
            let (taken, others) = rest.split_at(length);
            rest = others;
            match letter {
                'L' => form.one_line = true,
                '?' if first.kind == Kind::Word => form.asks = true,
                _ => {}
            }
            let end = taken.last().map_or(first.end, |last| last.end);
            let text = if length == 1 { first.text } else { &request[first.start..end] };
            let may_be_path = first.kind == Kind::Quoted && first.is_path();
            form.pieces.push(Piece { letter, text, start: first.start, end, may_be_path });
        }
        form
    }

    /// The form without the pieces that change nothing, and without the mark at its end.
    pub(super) fn essence(&self) -> Self {
        let asks = self.asks;
        let mut pieces = self.pieces.clone();
        pieces.pop_if(|last| last.letter == '.' || last.letter == '!' || (asks && last.text == "?"));
        pieces.retain(|piece| !"_L,:;".contains(piece.letter) && (piece.letter != '?' || piece.text == "?"));
        Self { pieces, ..*self }
    }

    /// The quoted texts and the paths of a form that fits one of `forms`: the texts and the paths in their order. Letters of a
    /// form stand for parts; `v` is `w` or `k`, `s` is `=`, `>` or `-`, and `i` is also `j`.
    pub(super) fn fit(&self, forms: &[&str]) -> Option<Fit<'a>> {
        forms.iter().find_map(|form| {
            let fits = form.chars().count() == self.pieces.len()
                && form.chars().zip(&self.pieces).all(|(wanted, piece)| piece.is(wanted));
            fits.then(|| {
                let of = |letter: char| {
                    let pieces = form.chars().zip(&self.pieces).filter(move |(wanted, _)| *wanted == letter);
                    pieces.map(|(_, piece)| piece.text).collect()
                };
                let names_path =
                    form.chars().zip(&self.pieces).any(|(wanted, piece)| wanted == 't' && piece.may_be_path);
                Fit { texts: of('t'), paths: of('p'), names_path }
            })
        })
    }

    /// Returns true if the form can only go on with a text: `create a.txt with`, `save this as a.txt`.
    pub(super) fn announces_text(&self) -> bool {
        let points = |piece: &Piece<'_>| {
            let words = ["this", "these", "following", "below"];
            let text = piece.text.to_lowercase();
            piece.letter == 'd' && text.split(' ').any(|word| words.contains(&word))
        };
        self.pieces.last().is_some_and(|last| last.letter == '=') || self.pieces.iter().any(points)
    }

    pub(super) fn has(&self, letter: char) -> bool {
        self.pieces.iter().any(|piece| piece.letter == letter)
    }
}

/// The texts and paths of a form that fits a request.
pub(super) struct Fit<'a> {
    pub texts: Vec<&'a str>,
    pub paths: Vec<&'a str>,
    /// One of the texts could be a path: `save "a.txt" as b.txt` may ask for a copy.
    pub names_path: bool,
}

impl Piece<'_> {
    fn is(&self, wanted: char) -> bool {
        match wanted {
            'v' => matches!(self.letter, 'w' | 'k'),
            's' => matches!(self.letter, '=' | '>' | '-'),
            'i' => matches!(self.letter, 'i' | 'j'),
            'p' => self.letter == 'p' || self.may_be_path,
            wanted => self.letter == wanted,
        }
    }
}
