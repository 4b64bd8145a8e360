//! Tells text from other bytes, and decodes text that is not UTF-8.

use encoding_rs::{Encoding, UTF_8};

/// The bytes at the start of a file that tell if it is text. Source: git, which looks at as many.
pub const TEXT_HEAD: usize = 8000;

/// Returns true if a file that begins with these bytes is no text: it has NUL bytes, and more than one odd place in 16 bytes.
/// An odd place is a row of NUL bytes, of other control characters, or of bytes that are not UTF-8.
///
/// A NUL byte alone says little: a log has a row of them after a crash, and UTF-16 has them everywhere.
pub fn is_binary(head: &[u8]) -> bool {
    let head = &head[..head.len().min(TEXT_HEAD)];
    if !head.contains(&0) || has_utf16_mark(head) {
        return false;
    }
    let (mut odd, mut plain, mut last) = (0, 0, None);
    for chunk in head.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_odd = c.is_control() && !"\t\n\r\u{8}\u{c}\u{1b}".contains(c);
            odd += usize::from(is_odd && last != Some(c));
            plain += if is_odd { 0 } else { c.len_utf8() };
            last = Some(c);
        }
        odd += usize::from(!chunk.invalid().is_empty());
    }
    plain == 0 || odd > 1 && odd * 16 > plain
}

/// Returns true if the bytes begin with the byte order mark of UTF-16.
pub fn has_utf16_mark(bytes: &[u8]) -> bool {
    Encoding::for_bom(bytes).is_some_and(|(encoding, _)| encoding != UTF_8)
}

/// Returns text in UTF-16 that begins with its byte order mark. `None` if it is something else.
pub fn utf16_text(bytes: &[u8]) -> Option<String> {
    let (encoding, _) = Encoding::for_bom(bytes).filter(|(encoding, _)| *encoding != UTF_8)?;
    let (text, has_errors) = encoding.decode_with_bom_removal(bytes);
    (!has_errors).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_a_few_nul_bytes_is_text() {
        let crash = [b"one\n".to_vec(), vec![0; 5000], b"two\n".to_vec()].concat();
        for text in [
            &b"one\nneedle two\nx\0y\n"[..],
            b"a\0b",
            b"needle\0",
            &crash,
            b"caf\xe9",
            b"",
            b"\xff\xfea\0b\0",
        ] {
            assert!(!is_binary(text), "{text:?}");
        }
        for other in [
            &b"\0\0\0\0"[..],
            b"\x7fELF\x02\x01\x01\0\0\0\0",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"\0asm\x01\0\0\0",
            b"a\0b\0c\0",
        ] {
            assert!(is_binary(other), "{other:?}");
        }
    }

    #[test]
    fn utf_16_is_decoded_by_its_mark() {
        assert_eq!(utf16_text(b"\xff\xfeh\0\xe9\0").as_deref(), Some("hé"));
        assert_eq!(utf16_text(b"\xfe\xff\0h\0\xe9").as_deref(), Some("hé"));
        for other in [&b"h\0"[..], b"\xef\xbb\xbfh", b"\xff\xfe\0\xd8", b"\xff\xfeh"] {
            assert_eq!(utf16_text(other), None, "{other:?}");
        }
    }
}
