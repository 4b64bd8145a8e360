//! Breaks a text into lines.

use unicode_width::UnicodeWidthStr as _;

/// Breaks `text` between words, so that no line is wider than `width` columns if its words allow that. Line ends that the
/// text has stay. A width of 0 means that the terminal does not say how wide it is.
pub(super) fn wrap(text: &str, width: usize) -> String {
    if width == 0 {
        return text.to_owned();
    }
    let mut wrapped = String::with_capacity(text.len());
    let mut column = 0;
    for piece in text.split_inclusive([' ', '\n']) {
        let word = piece.trim_end_matches([' ', '\n']);
        if column > 0 && column + word.width() > width {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            column = 0;
        }
        wrapped.push_str(piece);
        column = if piece.ends_with('\n') { 0 } else { column + piece.width() };
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_end_between_words() {
        for (width, expect) in [
            (0, "one two three\nfour five"),
            (80, "one two three\nfour five"),
            (8, "one two\nthree\nfour\nfive"),
            (9, "one two\nthree\nfour five"),
            (1, "one\ntwo\nthree\nfour\nfive"),
        ] {
            assert_eq!(wrap("one two three\nfour five", width), expect, "{width}");
        }
        assert_eq!(wrap("日本 語", 4), "日本\n語");
        assert_eq!(wrap("", 4), "");
    }
}
