//! Cuts tool outputs to what the window holds.

/// Cuts the middle out of `output`, so that it has at most `limit` tokens, and returns its tokens. A note in place of the
/// middle says how much is left out; `rest` gets the kept beginning and end, and returns the end of the note, which says
/// how to get the rest. `count` counts the tokens of a text.
pub(crate) fn truncate_output(
    output: &mut String,
    limit: u32,
    rest: &dyn Fn(&str, &str) -> String,
    count: &dyn Fn(&str) -> u32,
) -> u32 {
    let mut tokens = count(output).max(1);
    let whole = std::mem::take(output);
    output.clone_from(&whole);
    let mut kept_bytes = whole.len();
    // Tokens are not spread evenly over the text, so each round cuts a tenth more than in proportion.
    while tokens > limit && kept_bytes > 0 {
        kept_bytes = (kept_bytes as u64 * u64::from(limit) / u64::from(tokens) / 10 * 9) as usize;
        let (head, tail) = head_and_tail(&whole, kept_bytes);
        let left_out = whole.len() - head.len() - tail.len();
        let rest = rest(head, tail);
        *output = format!(
            "{head}\n[cut to fit the window: {left_out} of {} bytes are left out here{rest}]\n{tail}",
            whole.len()
        );
        tokens = count(output).max(1);
    }
    tokens
}

/// Returns the beginning and the end of a text, whole lines where lines are short. Together they have at most `bytes`
/// bytes, of which the beginning has two thirds.
fn head_and_tail(text: &str, bytes: usize) -> (&str, &str) {
    let end = text.floor_char_boundary(bytes / 3 * 2);
    let head = &text[..end];
    let head = head.rfind('\n').filter(|line| line * 2 > end).map_or(head, |line| &head[..=line]);
    let start = text.ceil_char_boundary(text.len() - bytes / 3);
    let tail = &text[start..];
    let tail = tail.find('\n').filter(|line| line * 2 < tail.len()).map_or(tail, |line| &tail[line + 1..]);
    (head, tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_by_four(text: &str) -> u32 {
        u32::try_from(text.len().div_ceil(4)).unwrap()
    }

    fn cut(output: &mut String, limit: u32) -> u32 {
        truncate_output(output, limit, &|_, _| "; ask for less".to_owned(), &bytes_by_four)
    }

    #[test]
    fn the_middle_of_an_output_is_cut_out_at_lines_and_says_so() {
        let mut small = "one\ntwo\n".to_owned();
        assert_eq!((cut(&mut small, 100), small.as_str()), (2, "one\ntwo\n"));

        let mut large: String = (0..1000).map(|number| format!("line number {number}\n")).collect();
        let all = large.len();
        let tokens = cut(&mut large, 200);
        assert!(tokens <= 200 && tokens > 100, "{tokens}");
        assert!(large.starts_with("line number 0\n") && large.ends_with("\nline number 999\n"), "{large}");
        let (head, tail) = large.split_once("\n\n[cut to fit the window: ").unwrap();
        let (note, tail) = tail.split_once("]\n").unwrap();
        assert!(note.ends_with(&format!(" of {all} bytes are left out here; ask for less")), "{note}");
        assert!(head.len() > tail.len() && tail.starts_with("line number "), "{large}");
    }

    #[test]
    fn an_output_without_lines_is_cut_between_characters() {
        let mut dense = "é".repeat(5000);
        assert!(cut(&mut dense, 100) <= 100);
        let mut one = "é".repeat(50);
        assert!(cut(&mut one, 1) > 1, "the note is longer, and nothing else is left");
        assert!(!one.contains('é'), "{one}");
    }
}
