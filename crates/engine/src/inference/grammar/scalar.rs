//! Parses JSON strings and numbers byte by byte.

/// The most digits before the point, after it, and of an exponent.
const MAX_INTEGER_DIGITS: u8 = 18;
const MAX_FRACTION_DIGITS: u8 = 17;
const MAX_EXPONENT_DIGITS: u8 = 2;

/// The least and the greatest integer that can be written.
pub(super) const MIN_INTEGER: i64 = -MAX_INTEGER;
pub(super) const MAX_INTEGER: i64 = 999_999_999_999_999_999;

/// The state of a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Text {
    Plain,
    /// After a backslash.
    Escape,
    /// In the digits of `\uXXXX`, of which `left` are missing. `low` says that it must be the second half of a surrogate
    /// pair.
    Unicode {
        left: u8,
        value: u16,
        low: bool,
    },
    /// After the first half of a surrogate pair. The second half must follow: `\` and `u` are next.
    Pair {
        backslash: bool,
    },
    /// Within a character, of which `left` bytes are missing. The next one must be in this range.
    Utf8 {
        left: u8,
        from: u8,
        to: u8,
    },
}

/// The state of an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Integer {
    negative: bool,
    digits: u8,
    /// The digits so far.
    magnitude: i64,
}

/// The state of a number. Counts are of digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
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

/// The state after one more byte of a string.
pub(super) enum TextStep {
    Inside(Text),
    /// The closing quote.
    End,
}

impl Text {
    /// Returns the state after `byte`, or `None` if it may not follow.
    pub(super) fn step(self, byte: u8) -> Option<TextStep> {
        if self == Self::Plain && byte == b'"' {
            return Some(TextStep::End);
        }
        self.inside(byte).map(TextStep::Inside)
    }

    fn inside(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
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
                    // Half of a pair is not a character.
                    (_, 0xdc00..=0xdfff) => return None,
                    _ if low => return None,
                    _ => Self::Plain,
                }
            }
            _ => return None,
        })
    }

    fn utf8(left: u8) -> Self {
        Self::Utf8 { left, from: 0x80, to: 0xbf }
    }
}

impl Integer {
    /// Returns the state after `byte`, or `None` if no integer from `min` to `max` begins so.
    pub(super) fn step(self, byte: u8, min: i64, max: i64) -> Option<Self> {
        let next = match byte {
            b'-' if self == Self::default() => Self { negative: true, ..self },
            // No digit may follow a zero at the beginning.
            b'0'..=b'9' if self.digits < MAX_INTEGER_DIGITS && (self.magnitude > 0 || self.digits == 0) => {
                Self {
                    digits: self.digits + 1,
                    magnitude: self.magnitude * 10 + i64::from(byte - b'0'),
                    ..self
                }
            }
            _ => return None,
        };
        next.can_become(min, max).then_some(next)
    }

    /// Returns true if the integer is complete.
    pub(super) fn may_end(self, min: i64, max: i64) -> bool {
        let value = if self.negative { -self.magnitude } else { self.magnitude };
        self.digits > 0 && (min..=max).contains(&value)
    }

    /// Returns true if more digits, or none, make an integer from `min` to `max`.
    fn can_become(self, min: i64, max: i64) -> bool {
        let (min, max) = if self.negative { (-max, -min) } else { (min, max) };
        if self.digits == 0 {
            return max >= 0;
        }
        if self.magnitude == 0 {
            return min <= 0 && max >= 0;
        }
        // The integers that begin with these digits, for each number of digits that can follow.
        let (mut least, mut most) = (self.magnitude, self.magnitude);
        for _ in self.digits..=MAX_INTEGER_DIGITS {
            if least <= max && most >= min {
                return true;
            }
            (least, most) = (least.saturating_mul(10), most.saturating_mul(10).saturating_add(9));
        }
        false
    }
}

impl Number {
    /// Returns the state after `byte`, or `None` if it does not continue the number.
    pub(super) fn step(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Start, b'-') => Self::Minus,
            (Self::Start | Self::Minus, b'0') => Self::Zero,
            (Self::Start | Self::Minus, b'1'..=b'9') => Self::Whole(1),
            (Self::Whole(count), b'0'..=b'9') if count < MAX_INTEGER_DIGITS => Self::Whole(count + 1),
            (Self::Zero | Self::Whole(_), b'.') => Self::Point,
            (Self::Point, b'0'..=b'9') => Self::Fraction(1),
            (Self::Fraction(count), b'0'..=b'9') if count < MAX_FRACTION_DIGITS => Self::Fraction(count + 1),
            (Self::Zero | Self::Whole(_) | Self::Fraction(_), b'e' | b'E') => Self::E,
            (Self::E, b'+' | b'-') => Self::Sign,
            (Self::E | Self::Sign, b'0'..=b'9') => Self::Exponent(1),
            (Self::Exponent(count), b'0'..=b'9') if count < MAX_EXPONENT_DIGITS => Self::Exponent(count + 1),
            _ => return None,
        })
    }

    /// Returns true if the number is complete.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole(_) | Self::Fraction(_) | Self::Exponent(_))
    }
}
