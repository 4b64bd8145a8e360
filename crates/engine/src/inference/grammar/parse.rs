//! One parse of a JSON text while it is written.

use super::{
    compile::{ANY, Id, Lengths, Range, Shape, Shapes, WORD},
    scalar::{Integer, Number, Text, TextStep},
};

/// The deepest nesting of values. At that depth nothing but closing brackets is accepted.
const MAX_DEPTH: usize = 64;

/// One way to parse the text so far: the values that are open, outermost first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parse(Vec<Frame>);

#[derive(Clone, Debug, PartialEq)]
enum Frame {
    /// Before a value. A space may precede it if `space`.
    Value {
        shape: Id,
        space: bool,
    },
    Text {
        at: Text,
        /// Characters so far.
        count: usize,
        lengths: Lengths,
    },
    Number(Number),
    Integer {
        at: Integer,
        range: Range,
    },
    /// In one of the literals, of which `read` bytes have come.
    Literal {
        shape: Id,
        choice: usize,
        read: usize,
    },
    Array(Array),
    Object(Object),
    /// In the name of a member that the schema lists, of the object in the frame below.
    Name {
        typed: Vec<u8>,
    },
    /// In the name of another member.
    Free {
        name: Text,
        value: Id,
    },
    Colon,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Array {
    shape: Id,
    /// Items so far.
    count: usize,
    at: Inside,
}

#[derive(Clone, Debug, PartialEq)]
struct Object {
    shape: Id,
    /// The listed members so far, by their index.
    seen: Vec<usize>,
    at: Inside,
}

/// The position between the brackets of an array or object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Inside {
    /// After the opening bracket.
    Open { space: bool },
    /// After an item.
    Item,
    /// After a comma.
    Comma { space: bool },
}

impl Frame {
    fn text(lengths: Lengths) -> Self {
        Self::Text { at: Text::Plain, count: 0, lengths }
    }
}

impl Array {
    fn new(shape: Id) -> Self {
        Self { shape, count: 0, at: Inside::OPEN }
    }
}

impl Object {
    fn new(shape: Id) -> Self {
        Self { shape, seen: Vec::new(), at: Inside::OPEN }
    }
}

impl Inside {
    const OPEN: Self = Self::Open { space: true };
    const COMMA: Self = Self::Comma { space: true };
}

impl Parse {
    pub(super) fn new(root: Id) -> Self {
        Self(vec![Frame::Value { shape: root, space: false }])
    }

    /// Returns true if the text is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the parses after `byte` to `next`. There are none if it does not fit, and several where alternatives begin
    /// alike.
    pub(super) fn step(mut self, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let Some(frame) = self.0.pop() else { return };
        match frame {
            Frame::Value { shape, space: true } if byte == b' ' => {
                self.0.push(Frame::Value { shape, space: false });
                next.push(self);
            }
            Frame::Value { shape, .. } => self.value(shape, byte, shapes, next),
            Frame::Text { at: Text::Plain, count, lengths } if byte != b'"' && count >= lengths.max => {}
            Frame::Text { at, count, lengths } => match at.step(byte) {
                Some(TextStep::Inside(at)) => {
                    let count = count + usize::from(at == Text::Plain);
                    next.push(self.with(Frame::Text { at, count, lengths }));
                }
                Some(TextStep::End) if count >= lengths.min => next.push(self),
                Some(TextStep::End) | None => {}
            },
            Frame::Number(at) => {
                if let Some(at) = at.step(byte) {
                    next.push(self.with(Frame::Number(at)));
                } else if at.may_end() {
                    // A byte that does not continue the number ends it, and belongs to what is around it.
                    self.step(byte, shapes, next);
                }
            }
            Frame::Integer { at, range } => {
                if let Some(at) = at.step(byte, range.min, range.max) {
                    next.push(self.with(Frame::Integer { at, range }));
                } else if at.may_end(range.min, range.max) {
                    // A byte that does not continue the number ends it, and belongs to what is around it.
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
            Frame::Array(array) => self.array(array, byte, shapes, next),
            Frame::Object(object) => self.object(object, byte, shapes, next),
            Frame::Name { typed } => self.name(typed, byte, shapes, next),
            Frame::Free { name, value } => match name.step(byte) {
                Some(TextStep::Inside(name)) => next.push(self.with(Frame::Free { name, value })),
                Some(TextStep::End) => {
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
        let full = self.0.len() >= MAX_DEPTH;
        match shapes.get(shape) {
            Shape::Either(either) => {
                for &shape in either {
                    self.clone().value(shape, byte, shapes, next);
                }
            }
            Shape::Any => match byte {
                b'"' => next.push(self.with(Frame::text(Lengths::ANY))),
                b'-' | b'0'..=b'9' => self.number(byte, next),
                b'{' if !full => {
                    next.push(self.with(Frame::Object(Object::new(shape))));
                }
                b'[' if !full => next.push(self.with(Frame::Array(Array::new(shape)))),
                _ => self.value(WORD, byte, shapes, next),
            },
            Shape::Text(lengths) if byte == b'"' => next.push(self.with(Frame::text(*lengths))),
            Shape::Number => self.number(byte, next),
            Shape::Integer(range) => {
                if let Some(at) = Integer::default().step(byte, range.min, range.max) {
                    next.push(self.with(Frame::Integer { at, range: *range }));
                }
            }
            Shape::Literal(texts) => {
                for (choice, text) in texts.iter().enumerate().filter(|(_, text)| text.first() == Some(&byte))
                {
                    let parse = self.clone();
                    next.push(match text.len() {
                        1 => parse,
                        _ => parse.with(Frame::Literal { shape, choice, read: 1 }),
                    });
                }
            }
            Shape::Array { .. } if byte == b'[' && !full => {
                next.push(self.with(Frame::Array(Array::new(shape))));
            }
            Shape::Object { .. } if byte == b'{' && !full => {
                next.push(self.with(Frame::Object(Object::new(shape))));
            }
            Shape::Text(_) | Shape::Array { .. } | Shape::Object { .. } => {}
        }
    }

    fn number(self, byte: u8, next: &mut Vec<Self>) {
        if let Some(at) = Number::Start.step(byte) {
            next.push(self.with(Frame::Number(at)));
        }
    }

    fn array(self, array: Array, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let Array { shape, count, at } = array;
        let (items, min, max) = match shapes.get(shape) {
            Shape::Array { items, min, max } => (*items, *min, *max),
            _ => (ANY, 0, usize::MAX),
        };
        let frame = |at| Frame::Array(Array { shape, count, at });
        match (at, byte) {
            (Inside::Open { space: true }, b' ') => {
                next.push(self.with(frame(Inside::Open { space: false })));
            }
            (Inside::Comma { space: true }, b' ') => {
                next.push(self.with(frame(Inside::Comma { space: false })));
            }
            (Inside::Open { .. } | Inside::Item, b']') if count >= min => next.push(self),
            (Inside::Item, b',') if count < max => next.push(self.with(frame(Inside::COMMA))),
            (Inside::Open { .. } | Inside::Comma { .. }, _) if count < max => {
                self.with(Frame::Array(Array { shape, count: count + 1, at: Inside::Item }))
                    .value(items, byte, shapes, next);
            }
            _ => {}
        }
    }

    fn object(self, object: Object, byte: u8, shapes: &Shapes, next: &mut Vec<Self>) {
        let Object { shape, seen, at } = object;
        let (members, others) = match shapes.get(shape) {
            Shape::Object { members, others } => (members.as_slice(), *others),
            _ => (&[][..], Some(ANY)),
        };
        let may_end = || (0..members.len()).all(|at| !members[at].required || seen.contains(&at));
        let more = seen.len() < members.len() || others.is_some();
        match (at, byte) {
            (Inside::Open { space: true }, b' ') => {
                next.push(self.with(Frame::Object(Object {
                    shape,
                    seen,
                    at: Inside::Open { space: false },
                })));
            }
            (Inside::Comma { space: true }, b' ') => {
                next.push(self.with(Frame::Object(Object {
                    shape,
                    seen,
                    at: Inside::Comma { space: false },
                })));
            }
            (Inside::Open { .. } | Inside::Item, b'}') if may_end() => next.push(self),
            (Inside::Item, b',') if more => {
                next.push(self.with(Frame::Object(Object { shape, seen, at: Inside::COMMA })));
            }
            (Inside::Open { .. } | Inside::Comma { .. }, b'"') => {
                let listed = seen.len() < members.len();
                let inside = self.with(Frame::Object(Object { shape, seen, at: Inside::Item }));
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
        let Some(Frame::Object(Object { shape, seen, .. })) = self.0.last_mut() else { return };
        let Shape::Object { members, .. } = shapes.get(*shape) else { return };
        let open = |at: &usize| !seen.contains(at);
        if byte == b'"'
            && let Some(at) = (0..members.len()).filter(open).find(|&at| members[at].name == typed)
        {
            seen.push(at);
            next.push(self.with(Frame::Value { shape: members[at].value, space: true }).with(Frame::Colon));
            return;
        }
        typed.push(byte);
        if (0..members.len()).filter(open).any(|at| members[at].name.starts_with(&typed)) {
            next.push(self.with(Frame::Name { typed }));
        }
    }
}
