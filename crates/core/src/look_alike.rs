//! Names and lines that look the same and are not.

use icu_normalizer::ComposingNormalizerBorrowed;

/// Returns the text in a form that is equal for texts that look the same: composed characters, plain blanks, quotation marks
/// and hyphens, and nothing that takes no space.
pub fn visible_form(text: &str) -> String {
    let composed = ComposingNormalizerBorrowed::new_nfkc().normalize(text);
    let plain = composed.chars().filter(|c| !is_invisible(*c)).map(|c| match c {
        '\u{2018}'..='\u{201B}' | '\u{2032}' | '\u{2BC}' | '`' | '´' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c if c.is_whitespace() => ' ',
        c => c,
    });
    plain.collect()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

/// Returns the only existing path that looks like `path`, which does not exist. `names` lists a directory; the empty path is
/// the one in which `path` begins.
pub fn look_alike(path: &str, names: impl Fn(&str) -> Vec<String>) -> Option<String> {
    let mut found = String::new();
    for part in path.split('/') {
        if !found.is_empty() || path.starts_with('/') {
            let of_root = found.is_empty() && part.is_empty();
            found.push_str(if of_root || !found.ends_with('/') { "/" } else { "" });
        }
        if part.is_empty() || part == "." || part == ".." {
            found.push_str(part);
            continue;
        }
        let listed = names(&found);
        let form = visible_form(part);
        let mut alike = listed.iter().filter(|name| visible_form(name) == form);
        let name = match listed.iter().find(|name| *name == part) {
            Some(same) => same,
            None => alike.next().filter(|_| alike.next().is_none())?,
        };
        found.push_str(name);
    }
    (found != path).then_some(found)
}

/// Returns what `actual` has that `given` does not have, for example `U+202F` or `U+0301 in place of U+00E9`. `None` if that
/// is nothing but letters and digits.
pub fn invisible_difference(given: &str, actual: &str) -> Option<String> {
    let only_in = |one: &str, other: &str| {
        let mut points: Vec<String> = one
            .chars()
            .filter(|c| !c.is_ascii_alphanumeric() && !other.contains(*c))
            .map(|c| format!("U+{:04X}", u32::from(c)))
            .collect();
        points.sort_unstable();
        points.dedup();
        points.join(" ")
    };
    match (only_in(actual, given), only_in(given, actual)) {
        (has, lacks) if has.is_empty() && lacks.is_empty() => None,
        (has, lacks) if lacks.is_empty() => Some(has),
        (has, lacks) if has.is_empty() => Some(format!("no {lacks}")),
        (has, lacks) => Some(format!("{has} in place of {lacks}")),
    }
}

/// Returns `actual` with the characters that `given` does not have as escapes of JSON, so that it can be copied.
pub fn with_escapes(given: &str, actual: &str) -> String {
    let shown = |c: char| match u16::try_from(u32::from(c)) {
        Ok(unit) if !c.is_ascii() && !given.contains(c) => format!("\\u{unit:04x}"),
        _ => c.to_string(),
    };
    actual.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_name_that_looks_the_same_is_found() {
        let names = |dir: &str| {
            let names: &[&str] = match dir {
                "" | "/" => &["a\u{301}", "b\u{a0}c", "b\u{202f}c", "x"],
                "a\u{301}/" => &["Shot 1\u{202f}AM.txt", "it\u{2019}s", "soft\u{ad}"],
                _ => &[],
            };
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let find = |path: &str| look_alike(path, names);
        assert_eq!(find("á").as_deref(), Some("a\u{301}"));
        assert_eq!(find("/á").as_deref(), Some("/a\u{301}"));
        assert_eq!(find("á/Shot 1 AM.txt").as_deref(), Some("a\u{301}/Shot 1\u{202f}AM.txt"));
        assert_eq!(find("a\u{301}/it's").as_deref(), Some("a\u{301}/it\u{2019}s"));
        assert_eq!(find("á/soft").as_deref(), Some("a\u{301}/soft\u{ad}"));
        for other in ["b c", "x", "y", "x/y", "b\u{a0}c", "á/shot 1 AM.txt"] {
            assert_eq!(find(other), None, "{other}");
        }
    }

    #[test]
    fn a_difference_is_named_by_its_code_points() {
        for (given, actual, want) in [
            ("a b c", "a\u{202f}b c", Some("U+202F")),
            ("caf\u{e9}", "cafe\u{301}", Some("U+0301 in place of U+00E9")),
            ("it's", "it\u{2019}s", Some("U+2019 in place of U+0027")),
            ("a\u{ad}b", "ab", Some("no U+00AD")),
            ("total", "totals", None),
        ] {
            assert_eq!(invisible_difference(given, actual).as_deref(), want);
        }
        assert_eq!(with_escapes("café x", "cafe\u{301}\u{202f}x"), "cafe\\u0301\\u202fx");
    }
}
