//! The marks within a line: emphasis, code, links.
//!
//! Text is passed on as it comes. From a mark that may begin something, it is kept until the mark is resolved. If that does
//! not happen within the line or within [`MAX_KEPT`] bytes, the mark is shown as it was written.

use std::{collections::VecDeque, mem::take};

use super::{
    flow::Flow,
    mark::{Mark, MarkKind},
    style::Style,
    token::{MAX_KEPT, Token, next_token},
};

/// A part of the line with one style.
struct Piece {
    text: String,
    style: Style,
    /// The text is a mark that has not been resolved.
    mark: Option<Mark>,
}

/// The text of one line.
pub(super) struct Inline {
    /// The style of all of the line.
    style: Style,
    /// Text whose meaning depends on what follows it.
    unread: String,
    /// One of these has to come, or `unread` cannot be understood.
    wanted: &'static str,
    /// The character before `unread`.
    before: char,
    /// The text that is kept. Its first piece is an unresolved mark.
    pieces: VecDeque<Piece>,
    /// The size of `pieces` in bytes.
    kept: usize,
}

impl Inline {
    pub(super) fn new(style: Style) -> Self {
        Self { style, unread: String::new(), wanted: "", before: ' ', pieces: VecDeque::new(), kept: 0 }
    }

    /// Adds text of the line and writes what is certain.
    pub(super) fn push(&mut self, text: &str, flow: &mut Flow) {
        self.unread.push_str(text);
        let is_wanted = self.wanted.is_empty() || text.contains(|c| self.wanted.contains(c));
        if is_wanted || self.unread.len() > MAX_KEPT {
            self.read(false, flow);
        }
    }

    /// Ends the line: what is not resolved was text.
    pub(super) fn finish(&mut self, flow: &mut Flow) {
        self.read(true, flow);
        self.release(flow);
        self.before = ' ';
    }

    fn read(&mut self, is_whole: bool, flow: &mut Flow) {
        let unread = take(&mut self.unread);
        let mut rest = &*unread;
        self.wanted = "";
        while !rest.is_empty() {
            let (token, len) = match next_token(rest, self.before, is_whole) {
                _ if rest.starts_with(']') && self.open_bracket().is_none() => (Token::Text("]"), 1),
                Ok(found) => found,
                Err(wanted) => {
                    self.wanted = wanted;
                    break;
                }
            };
            let source = &rest[..len];
            self.before = source.chars().next_back().unwrap_or(self.before);
            rest = &rest[len..];
            match token {
                Token::Text(text) => self.add(text, Style::PLAIN, None),
                Token::Code(text) => self.add(text, Style::CODE, None),
                Token::Address(text) => self.add(text, Style::LINK, None),
                Token::Mark(mark) => self.add_mark(source, mark),
                Token::Close(address) => self.close_bracket(address),
                Token::LineBreak => {
                    self.release(flow);
                    flow.break_line();
                }
            }
            self.pass_on(flow);
        }
        rest.clone_into(&mut self.unread);
    }

    fn add(&mut self, text: &str, style: Style, mark: Option<Mark>) {
        self.kept += text.len();
        let style = self.style | style;
        self.pieces.push_back(Piece { text: text.to_owned(), style, mark });
    }

    /// Adds a run of marks. What of it closes earlier marks is resolved.
    fn add_mark(&mut self, source: &str, mut mark: Mark) {
        while mark.can_close && mark.count > 0 {
            let opener = self.pieces.iter().rposition(|piece| {
                piece.mark.as_ref().is_some_and(|opener| opener.can_open && opener.matches(&mark))
            });
            let Some(at) = opener else { break };
            if mark.kind == MarkKind::Underscore && mark.count >= 2 && self.is_name_since(at) {
                // `__init__` is a name.
                (self.pieces[at].mark, mark.can_open) = (None, false);
                break;
            }
            let used = self.close_emphasis(at, &mark);
            mark.count -= used;
        }
        if mark.count > 0 {
            let text = &source[..mark.count];
            let mark = Some(mark).filter(|mark| mark.can_open);
            self.add(text, Style::PLAIN, mark);
        }
    }

    /// Returns true if what follows the piece `at` is one name, as programs have them.
    fn is_name_since(&self, at: usize) -> bool {
        let mut name = self.pieces.iter().skip(at + 1).flat_map(|piece| piece.text.chars());
        name.all(|c| c.is_alphanumeric() || c == '_')
    }

    /// Resolves the mark in the piece `at` with the end of its text. Returns how many characters of both marks that takes.
    fn close_emphasis(&mut self, at: usize, closer: &Mark) -> usize {
        let opener = self.pieces[at].mark.as_mut().expect("the piece was found by its mark");
        let used = if opener.count >= 2 && closer.count >= 2 { 2 } else { 1 };
        let style = match (opener.kind, used) {
            (MarkKind::Tilde, _) => Style::STRUCK,
            (_, 1) => Style::ITALIC,
            _ => Style::BOLD,
        };
        opener.count -= used;
        let is_used_up = opener.count == 0;
        self.pieces[at].text.drain(..used);
        self.kept -= used;
        for piece in self.pieces.iter_mut().skip(at + 1) {
            piece.mark = None;
            piece.style = piece.style | style;
        }
        if is_used_up {
            self.pieces[at].mark = None;
        }
        used
    }

    /// Returns the place of the last open bracket.
    fn open_bracket(&self) -> Option<usize> {
        let is_bracket =
            |piece: &Piece| piece.mark.as_ref().is_some_and(|mark| mark.kind == MarkKind::Bracket);
        self.pieces.iter().rposition(is_bracket)
    }

    /// Ends what the last open bracket began: a link, if an address follows.
    fn close_bracket(&mut self, address: Option<&str>) {
        let at = self.open_bracket().expect("without an open bracket the token is text");
        let opener = &mut self.pieces[at];
        opener.mark = None;
        let Some(address) = address else { return self.add("]", Style::PLAIN, None) };
        self.kept -= opener.text.len();
        opener.text = if opener.text.starts_with('!') { "image: ".to_owned() } else { String::new() };
        self.kept += opener.text.len();
        let mut shown = String::new();
        for piece in self.pieces.iter_mut().skip(at + 1) {
            piece.mark = None;
            piece.style = piece.style | Style::LINK;
            shown.push_str(&piece.text);
        }
        if shown != address {
            let space = if shown.is_empty() { "" } else { " " };
            self.add(&format!("{space}({address})"), Style::DIM, None);
        }
    }

    /// Passes on the pieces before the first unresolved mark. A mark behind which more than [`MAX_KEPT`] bytes are kept is
    /// text.
    fn pass_on(&mut self, flow: &mut Flow) {
        while let Some(piece) = self.pieces.pop_front() {
            if piece.mark.is_some() && self.kept <= MAX_KEPT {
                return self.pieces.push_front(piece);
            }
            self.kept -= piece.text.len();
            flow.text(piece.style, &piece.text);
        }
    }

    /// Passes on all pieces, with the marks as they were written.
    fn release(&mut self, flow: &mut Flow) {
        for piece in take(&mut self.pieces) {
            flow.text(piece.style, &piece.text);
        }
        self.kept = 0;
    }
}
