//! Inserts arguments into a skill template.

use std::fmt::Write as _;

/// Replaces `$ARGUMENTS` and `$0`, `$1` … in one pass, so that inserted text is not searched again.
pub(super) fn render(template: &str, arguments: &str) -> String {
    const ALL: &str = "ARGUMENTS";
    let arguments = arguments.trim();
    let positional = split(arguments);
    let mut rendered = String::with_capacity(template.len() + arguments.len());
    let mut rest = template;
    let mut used = false;
    while let Some(at) = rest.find('$') {
        rendered.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(ALL) {
            rendered.push_str(arguments);
            used = true;
            rest = after;
            continue;
        }
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        // An empty or too large number does not parse, and a missing argument is not found. Both leave the
        // text as it is.
        let value = after[..digits].parse::<usize>().ok().and_then(|index| positional.get(index));
        match value {
            Some(value) => {
                rendered.push_str(value);
                used = true;
            }
            None => {
                rendered.push('$');
                rendered.push_str(&after[..digits]);
            }
        }
        rest = &after[digits..];
    }
    rendered.push_str(rest);
    if !used && !arguments.is_empty() {
        write!(rendered, "\n\nArguments: {arguments}").expect("a String takes everything");
    }
    rendered
}

/// Splits the arguments at white space. Quotes group words and are removed. An empty pair of quotes is an
/// empty argument.
///
/// A single quote groups only at the start of a word, because inside a word it is an apostrophe. A quote
/// that is not closed extends to the end. There are no escapes.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' if c == '"' || word.is_none() => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|inner| *inner != c));
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        for (text, words) in [
            ("", &[][..]),
            ("  a  b ", &["a", "b"]),
            ("a\tb\nc\u{a0}d", &["a", "b", "c", "d"]),
            ("a \"b c\" d", &["a", "b c", "d"]),
            ("a 'b \"c' d", &["a", "b \"c", "d"]),
            ("a \"\" b ''", &["a", "", "b", ""]),
            ("pre\"b c\"post", &["preb cpost"]),
            ("what's new in john's file", &["what's", "new", "in", "john's", "file"]),
            ("a \"b c", &["a", "b c"]),
            ("\"it's\" fine", &["it's", "fine"]),
        ] {
            assert_eq!(split(text), words, "{text:?}");
        }
    }

    #[test]
    fn a_template_is_filled_in_one_pass() {
        let eleven = "a b c d e f g h i j k";
        for (template, arguments, rendered) in [
            ("Do $ARGUMENTS now", "x y", "Do x y now"),
            ("$0-$1", "a \"b c\"", "a-b c"),
            ("$10 and $1", eleven, "k and b"),
            ("$3 costs $100 or $", "a", "$3 costs $100 or $\n\nArguments: a"),
            ("$0 and $3", "a", "a and $3"),
            ("$0", "$1 $ARGUMENTS", "$1"),
            ("$ARGUMENTS", "$0 $ARGUMENTS", "$0 $ARGUMENTS"),
            ("$$0 $x $", "a", "$a $x $"),
            ("$99999999999999999999999 $0", "a", "$99999999999999999999999 a"),
            ("[$0]", "\"\"", "[]"),
            ("no places", "", "no places"),
            ("no places", " a b ", "no places\n\nArguments: a b"),
            ("é$0é", "ü", "éüé"),
        ] {
            assert_eq!(render(template, arguments), rendered, "{template:?} {arguments:?}");
        }
    }
}
