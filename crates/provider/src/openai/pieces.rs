//! Text that arrives in pieces, which may be cut within a surrogate pair: some servers cut where UTF-16 lets them.

use std::borrow::Cow;

/// Puts a text together from pieces of WTF-8. U+FFFD stands for half of a pair whose other half does not follow.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The first half of a pair, with which the last piece ended.
    high: Option<u32>,
}

impl Pieces {
    /// Adds a piece. Returns the text that is certain now.
    pub(super) fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, str> {
        if self.high.is_none()
            && let Ok(text) = str::from_utf8(piece)
        {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(piece.len() + 3);
        let mut rest = piece;
        while !rest.is_empty() {
            let length = match (half(rest), self.high) {
                (Some(low @ 0xdc00..), Some(high)) => {
                    self.high = None;
                    let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    text.extend(char::from_u32(code));
                    3
                }
                (Some(high @ ..0xdc00), before) => {
                    text.push_str(if before.is_some() { LOST } else { "" });
                    self.high = Some(high);
                    3
                }
                (Some(_), None) => {
                    text.push_str(LOST);
                    3
                }
                (None, _) => {
                    text.push_str(self.end());
                    let end = (1..rest.len()).find(|&at| half(&rest[at..]).is_some()).unwrap_or(rest.len());
                    text.push_str(&String::from_utf8_lossy(&rest[..end]));
                    end
                }
            };
            rest = &rest[length..];
        }
        Cow::Owned(text)
    }

    /// Returns what stands for half of a pair at the end of the text.
    pub(super) fn end(&mut self) -> &'static str {
        if self.high.take().is_some() { LOST } else { "" }
    }
}

const LOST: &str = "\u{fffd}";

/// Returns the half of a surrogate pair at the beginning of `bytes`.
fn half(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | (u32::from(second & 0x3f) << 6) | u32::from(third & 0x3f))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_joined_over_pieces() {
        let [high, low] = [&b"\xed\xa0\xbd"[..], b"\xed\xb8\x80"];
        let text = |pieces: &[&[u8]]| {
            let mut joined = Pieces::default();
            let mut text: String = pieces.iter().map(|piece| joined.push(piece)).collect();
            text.push_str(joined.end());
            text
        };
        assert_eq!(text(&[b"a ", high, b"", low, b" b"]), "a 😀 b");
        assert_eq!(text(&[&[b"a", high].concat(), &[low, b"b"].concat()]), "a😀b");
        assert_eq!(text(&[&[high, low].concat()]), "😀");
        assert_eq!(text(&[high, high, low]), "\u{fffd}😀");
        assert_eq!(text(&[low, "ü".as_bytes(), high, b"x", high]), "\u{fffd}ü\u{fffd}x\u{fffd}");
    }
}
