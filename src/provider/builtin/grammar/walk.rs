//! One way to read a JSON text while it is written.

use super::compile::{ANY, Id, Shape, Shapes, WORD};

/// Values within values. Beyond that nothing is accepted but their ends.
const DEPTH: usize = 64;

/// Digits before and behind the point, and of an exponent.
const DIGITS: (u8, u8, u8) = (18, 17, 3);

/// What is open, outermost first.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack(Vec<Frame>);

#[derive(Clone, Debug, PartialEq)]
enum Frame {
    /// A value is next. A space may come before it if `space`.
    Value {
        shape: Id,
        space: bool,
    },
    Text(Text),
    Number {
        fraction: bool,
        at: Number,
    },
    /// `read` bytes of one of the texts have come.
    Literal {
        shape: Id,
        choice: usize,
        read: usize,
    },
    Array {
        shape: Id,
        count: usize,
        at: Inside,
    },
    /// `seen` are the listed members that are there.
    Object {
        shape: Id,
        seen: Vec<usize>,
        at: Inside,
    },
    /// In the name of a listed member of the object beneath.
    Name {
        typed: Vec<u8>,
    },
    /// In the name of a member that is not listed.
    Free {
        name: Text,
        value: Id,
    },
    Colon,
}

/// Where in a list of items or members.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Inside {
    /// Behind the opening bracket.
    Open { space: bool },
    /// Behind an item.
    Item,
    /// Behind a comma.
    Comma { space: bool },
}

impl Inside {
    const OPEN: Self = Self::Open { space: true };
    const COMMA: Self = Self::Comma { space: true };
}

/// Where in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Text {
    Plain,
    /// Behind a backslash.
    Escape,
    /// So many digits of `\uXXXX` are missing; `low` says that it must be the second half of a pair.
    Unicode {
        left: u8,
        value: u16,
        low: bool,
    },
    /// Behind the first half of a pair, which needs the second: `\` and `u` are next.
    Pair {
        backslash: bool,
    },
    /// So many bytes of a character are missing; the next one lies in this range.
    Utf8 {
        left: u8,
        from: u8,
        to: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Start,
    Minus,
    Zero,
    Whole(u8),
    Point,
    Fraction(u8),
    E,
    Sign,
    Exponent(u8),
}

impl Stack {
    pub fn new(root: Id) -> Self {
        Self(vec![Frame::Value { shape: root, space: false }])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what is left of this way after `byte` to `next`: nothing if it does not fit.
    pub fn step(mut self, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let Some(frame) = self.0.pop() else { return };
        match frame {
            Frame::Value { shape, space: true } if byte == b' ' => {
                self.0.push(Frame::Value { shape, space: false });
                next.push(self);
            }
            Frame::Value { shape, .. } => self.value(shape, byte, shapes, next),
            Frame::Text(text) => match text.step(byte) {
                Some(Some(text)) => next.push(self.with(Frame::Text(text))),
                Some(None) => next.push(self),
                None => {}
            },
            Frame::Number { fraction, at } => {
                if let Some(at) = at.step(byte, fraction) {
                    next.push(self.with(Frame::Number { fraction, at }));
                } else if at.may_end() {
                    // A number is over when something else comes, which is for what is around it.
                    self.step(byte, shapes, next);
                }
            }
            Frame::Literal { shape, choice, read } => {
                let Shape::Literal(texts) = shapes.get(shape) else { return };
                if texts[choice].get(read) == Some(&byte) {
                    if read + 1 < texts[choice].len() {
                        self.0.push(Frame::Literal { shape, choice, read: read + 1 });
                    }
                    next.push(self);
                }
            }
            Frame::Array { shape, count, at } => self.array((shape, count), at, byte, shapes, next),
            Frame::Object { shape, seen, at } => self.object((shape, seen), at, byte, shapes, next),
            Frame::Name { typed } => self.name(typed, byte, shapes, next),
            Frame::Free { name, value } => match name.step(byte) {
                Some(Some(name)) => next.push(self.with(Frame::Free { name, value })),
                Some(None) => {
                    next.push(self.with(Frame::Value { shape: value, space: true }).with(Frame::Colon));
                }
                None => {}
            },
            Frame::Colon if byte == b':' => next.push(self),
            Frame::Colon => {}
        }
    }

    fn with(mut self, frame: Frame) -> Self {
        self.0.push(frame);
        self
    }

    fn value(self, shape: Id, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let full = self.0.len() >= DEPTH;
        match shapes.get(shape) {
            Shape::Either(either) => {
                for &shape in either {
                    self.clone().value(shape, byte, shapes, next);
                }
            }
            Shape::Any => match byte {
                b'"' => next.push(self.with(Frame::Text(Text::Plain))),
                b'-' | b'0'..=b'9' => self.number(true, byte, next),
                b'{' if !full => {
                    next.push(self.with(Frame::Object { shape, seen: Vec::new(), at: Inside::OPEN }));
                }
                b'[' if !full => next.push(self.with(Frame::Array { shape, count: 0, at: Inside::OPEN })),
                _ => self.value(WORD, byte, shapes, next),
            },
            Shape::Text if byte == b'"' => next.push(self.with(Frame::Text(Text::Plain))),
            Shape::Number { fraction } => self.number(*fraction, byte, next),
            Shape::Literal(texts) => {
                for (choice, text) in texts.iter().enumerate().filter(|(_, text)| text.first() == Some(&byte))
                {
                    let way = self.clone();
                    next.push(match text.len() {
                        1 => way,
                        _ => way.with(Frame::Literal { shape, choice, read: 1 }),
                    });
                }
            }
            Shape::Array { .. } if byte == b'[' && !full => {
                next.push(self.with(Frame::Array { shape, count: 0, at: Inside::OPEN }));
            }
            Shape::Object { .. } if byte == b'{' && !full => {
                next.push(self.with(Frame::Object { shape, seen: Vec::new(), at: Inside::OPEN }));
            }
            Shape::Text | Shape::Array { .. } | Shape::Object { .. } => {}
        }
    }
    fn number(self, fraction: bool, byte: u8, next: &mut Vec<Self>) {
        if let Some(at) = Number::Start.step(byte, fraction) {
            next.push(self.with(Frame::Number { fraction, at }));
        }
    }

    fn array(self, (shape, count): (Id, usize), at: Inside, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let (items, least, most) = match shapes.get(shape) {
            Shape::Array { items, least, most } => (*items, *least, *most),
            _ => (ANY, 0, usize::MAX),
        };
        let frame = |at| Frame::Array { shape, count, at };
        match (at, byte) {
            (Inside::Open { space: true }, b' ') => {
                next.push(self.with(frame(Inside::Open { space: false })));
            }
            (Inside::Comma { space: true }, b' ') => {
                next.push(self.with(frame(Inside::Comma { space: false })));
            }
            (Inside::Open { .. } | Inside::Item, b']') if count >= least => next.push(self),
            (Inside::Item, b',') if count < most => next.push(self.with(frame(Inside::COMMA))),
            (Inside::Open { .. } | Inside::Comma { .. }, _) if count < most => {
                self.with(Frame::Array { shape, count: count + 1, at: Inside::Item })
                    .value(items, byte, shapes, next);
            }
            _ => {}
        }
    }

    fn object(
        self,
        (shape, seen): (Id, Vec<usize>),
        at: Inside,
        byte: u8,
        shapes: &Shapes,
        next: &mut Vec<Self>,
    ) {
        let (members, others) = match shapes.get(shape) {
            Shape::Object { members, others } => (members.as_slice(), *others),
            _ => (&[][..], Some(ANY)),
        };
        let may_end = || (0..members.len()).all(|at| !members[at].1 || seen.contains(&at));
        let more = seen.len() < members.len() || others.is_some();
        match (at, byte) {
            (Inside::Open { space: true }, b' ') => {
                next.push(self.with(Frame::Object { shape, seen, at: Inside::Open { space: false } }));
            }
            (Inside::Comma { space: true }, b' ') => {
                next.push(self.with(Frame::Object { shape, seen, at: Inside::Comma { space: false } }));
            }
            (Inside::Open { .. } | Inside::Item, b'}') if may_end() => next.push(self),
            (Inside::Item, b',') if more => {
                next.push(self.with(Frame::Object { shape, seen, at: Inside::COMMA }));
            }
            (Inside::Open { .. } | Inside::Comma { .. }, b'"') => {
                let listed = seen.len() < members.len();
                let inside = self.with(Frame::Object { shape, seen, at: Inside::Item });
                if let Some(value) = others {
                    next.push(inside.clone().with(Frame::Free { name: Text::Plain, value }));
                }
                if listed {
                    next.push(inside.with(Frame::Name { typed: Vec::new() }));
                }
            }
            _ => {}
        }
    }

    fn name(mut self, mut typed: Vec<u8>, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let Some(Frame::Object { shape, seen, .. }) = self.0.last_mut() else { return };
        let Shape::Object { members, .. } = shapes.get(*shape) else { return };
        let open = |at: &usize| !seen.contains(at);
        if byte == b'"'
            && let Some(at) = (0..members.len()).filter(open).find(|&at| members[at].0 == typed)
        {
            seen.push(at);
            next.push(self.with(Frame::Value { shape: members[at].2, space: true }).with(Frame::Colon));
            return;
        }
        typed.push(byte);
        if (0..members.len()).filter(open).any(|at| members[at].0.starts_with(&typed)) {
            next.push(self.with(Frame::Name { typed }));
        }
    }
}

impl Text {
    /// Where `byte` leads: on, or to the end of the text. `None` where it may not stand.
    fn step(self, byte: u8) -> Option<Option<Self>> {
        Some(Some(match (self, byte) {
            (Self::Plain, b'"') => return Some(None),
            (Self::Plain, b'\\') => Self::Escape,
            (Self::Plain, 0x20..=0x7f) => Self::Plain,
            // Source: the table of well-formed UTF-8 of the Unicode standard, 3.9.
            (Self::Plain, 0xc2..=0xdf) => Self::utf8(1),
            (Self::Plain, 0xe0) => Self::Utf8 { left: 2, from: 0xa0, to: 0xbf },
            (Self::Plain, 0xe1..=0xec | 0xee | 0xef) => Self::utf8(2),
            (Self::Plain, 0xed) => Self::Utf8 { left: 2, from: 0x80, to: 0x9f },
            (Self::Plain, 0xf0) => Self::Utf8 { left: 3, from: 0x90, to: 0xbf },
            (Self::Plain, 0xf1..=0xf3) => Self::utf8(3),
            (Self::Plain, 0xf4) => Self::Utf8 { left: 3, from: 0x80, to: 0x8f },
            (Self::Utf8 { left, from, to }, byte) if (from..=to).contains(&byte) => match left {
                1 => Self::Plain,
                left => Self::utf8(left - 1),
            },
            (Self::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Self::Plain,
            (Self::Escape, b'u') => Self::Unicode { left: 4, value: 0, low: false },
            (Self::Pair { backslash: false }, b'\\') => Self::Pair { backslash: true },
            (Self::Pair { backslash: true }, b'u') => Self::Unicode { left: 4, value: 0, low: true },
            (Self::Unicode { left, value, low }, byte) => {
                let digit = u16::try_from(char::from(byte).to_digit(16)?).ok()?;
                let value = value << 4 | digit;
                match (left, value) {
                    (2.., _) => Self::Unicode { left: left - 1, value, low },
                    (_, 0xdc00..=0xdfff) if low => Self::Plain,
                    (_, 0xd800..=0xdbff) if !low => Self::Pair { backslash: false },
                    // Half of a pair means nothing.
                    (_, 0xdc00..=0xdfff) => return None,
                    _ if low => return None,
                    _ => Self::Plain,
                }
            }
            _ => return None,
        }))
    }

    fn utf8(left: u8) -> Self {
        Self::Utf8 { left, from: 0x80, to: 0xbf }
    }
}

impl Number {
    /// Where `byte` leads, if it goes on with the number.
    fn step(self, byte: u8, fraction: bool) -> Option<Self> {
        let (whole, part, exponent) = DIGITS;
        Some(match (self, byte) {
            (Self::Start, b'-') => Self::Minus,
            (Self::Start | Self::Minus, b'0') => Self::Zero,
            (Self::Start | Self::Minus, b'1'..=b'9') => Self::Whole(1),
            (Self::Whole(count), b'0'..=b'9') if count < whole => Self::Whole(count + 1),
            (Self::Zero | Self::Whole(_), b'.') if fraction => Self::Point,
            (Self::Point, b'0'..=b'9') => Self::Fraction(1),
            (Self::Fraction(count), b'0'..=b'9') if count < part => Self::Fraction(count + 1),
            (Self::Zero | Self::Whole(_) | Self::Fraction(_), b'e' | b'E') if fraction => Self::E,
            (Self::E, b'+' | b'-') => Self::Sign,
            (Self::E | Self::Sign, b'0'..=b'9') => Self::Exponent(1),
            (Self::Exponent(count), b'0'..=b'9') if count < exponent - 1 => Self::Exponent(count + 1),
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole(_) | Self::Fraction(_) | Self::Exponent(_))
    }
}
