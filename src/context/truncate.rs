//! Cuts tool outputs to what the window holds.

/// Cuts `output` to at most `limit` tokens and returns its tokens. A note at the end says how much is left.
/// `count` counts the tokens of a text.
pub(crate) fn truncate_output(output: &mut String, limit: u32, count: &dyn Fn(&str) -> u32) -> u32 {
    let mut tokens = count(output).max(1);
    let whole = std::mem::take(output);
    output.clone_from(&whole);
    let mut kept_bytes = whole.len();
    // Tokens are not spread evenly over the text, so each round cuts a tenth more than in proportion.
    while tokens > limit && kept_bytes > 0 {
        kept_bytes = (kept_bytes as u64 * u64::from(limit) / u64::from(tokens) / 10 * 9) as usize;
        kept_bytes = whole.floor_char_boundary(kept_bytes);
        kept_bytes = whole[..kept_bytes].rfind('\n').map_or(kept_bytes, |end| end + 1);
        *output = format!(
            "{}\n[cut to fit the window: {kept_bytes} of {} bytes; ask for a smaller part]",
            &whole[..kept_bytes],
            whole.len()
        );
        tokens = count(output).max(1);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::truncate_output;

    fn bytes_by_four(text: &str) -> u32 {
        u32::try_from(text.len().div_ceil(4)).unwrap()
    }

    #[test]
    fn an_output_is_cut_at_a_line_and_says_so() {
        let mut small = "one\ntwo\n".to_owned();
        assert_eq!((truncate_output(&mut small, 100, &bytes_by_four), small.as_str()), (2, "one\ntwo\n"));

        let mut large = "a line of text\n".repeat(1000);
        let tokens = truncate_output(&mut large, 200, &bytes_by_four);
        assert!(tokens <= 200 && tokens > 100, "{tokens}");
        assert!(
            large.contains("text\n\n[cut to fit the window: ")
                && large.ends_with("15000 bytes; ask for a smaller part]")
        );

        let mut dense = "é".repeat(5000);
        assert!(truncate_output(&mut dense, 100, &bytes_by_four) <= 100);
    }
}
