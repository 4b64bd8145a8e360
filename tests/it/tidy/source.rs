//! A rough reading of Rust source: what is code, what is only for tests, and which brackets belong together.

/// Returns `text` with comments and the contents of literals replaced by spaces. Line breaks stay, so that a
/// position is still in the same line.
pub(super) fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + find(rest, b"*/").map_or(rest.len(), |found| found + 2)
        } else if let Some(hashes) = raw_string(rest).filter(|_| at == 0 || !is_word(bytes[at - 1])) {
            let open = rest.iter().position(|&byte| byte == b'"').expect("a raw string has a quote") + 1;
            let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
            at + open + find(&rest[open..], &close).map_or(rest.len() - open, |found| found + close.len())
        } else if rest[0] == b'"' {
            at + string_end(rest)
        } else if rest[0] == b'\'' {
            match char_end(rest) {
                Some(end) => at + end,
                None => at + 1, // a lifetime
            }
        } else {
            at += 1;
            continue;
        };
        // A literal keeps its ends, so that it still is a value there.
        let inner = if rest[0] == b'/' || end - at < 2 { at..end } else { at + 1..end - 1 };
        for byte in &mut code[inner] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        if rest[0] == b'\'' && end == at + 1 {
            code[at] = b'\'';
        }
        at = end;
    }
    String::from_utf8(code).expect("only whole characters are replaced, or whole literals")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Returns the number of `#` if a raw string starts here.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let rest = rest.strip_prefix(b"b").unwrap_or(rest).strip_prefix(b"r")?;
    let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
    (rest.get(hashes) == Some(&b'"')).then_some(hashes)
}

/// Returns the length of the string literal that starts here.
fn string_end(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Returns the length of the character literal that starts here, or `None` for a lifetime.
fn char_end(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return rest[3.min(rest.len())..].iter().position(|&byte| byte == b'\'').map(|found| found + 4);
    }
    // A character has at most four bytes.
    (2..=5)
        .find(|&at| rest.get(at) == Some(&b'\''))
        .filter(|&at| std::str::from_utf8(&rest[1..at]).is_ok_and(|inner| inner.chars().count() == 1))
        .map(|at| at + 1)
}

/// Returns [`code`] with everything that is compiled for tests only replaced by spaces.
pub(super) fn code_without_tests(text: &str) -> String {
    let mut code = code(text);
    while let Some(start) = code.find(TEST_ONLY) {
        let end = item_end(&code, start);
        let blank: String = code[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(start..end, &blank);
    }
    code
}

/// Returns [`code`] with everything but the items that are compiled for tests only replaced by spaces.
pub(super) fn test_code(text: &str) -> String {
    let all = code(text);
    let production = code_without_tests(text);
    let test = all.bytes().zip(production.bytes()).map(|(all, production)| match (all, production) {
        (b'\n', _) => b'\n',
        (all, b' ') => all,
        _ => b' ',
    });
    String::from_utf8_lossy(&test.collect::<Vec<_>>()).into_owned()
}

/// Returns the number of lines of a file, comments included, without what is compiled for tests only.
pub(super) fn lines_without_tests(text: &str) -> usize {
    let mut code = code(text);
    let mut lines = text.lines().count();
    while let Some(start) = code.find(TEST_ONLY) {
        let end = item_end(&code, start);
        lines -= code[start..end].matches('\n').count() + 1;
        code.replace_range(start..end, "");
    }
    lines
}

/// The attribute of an item that is compiled for tests only.
const TEST_ONLY: &str = "#[cfg(test)]";

/// Returns where the item that begins at `start` ends: after its `;` or its closing brace.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' if depth == 0 => return start + at + 1,
            '{' if depth == 0 => {
                let end = start + at + block(&code[start + at..]).len();
                // `use a::{b, c};` has both.
                return if code[end..].starts_with(';') { end + 1 } else { end };
            }
            _ => {}
        }
    }
    code.len()
}

/// Returns the text from the opening bracket at the start of `code` to its closing bracket.
pub(super) fn block(code: &str) -> &str {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &code[..at + c.len_utf8()];
        }
    }
    code
}

/// Returns true for a Rust file of the program: of the crate at the top or of one in `crates/`.
pub(super) fn is_product(path: &str) -> bool {
    let in_crate = |rest: &str| !rest.starts_with("starter/training/") && rest.contains("/src/");
    path.ends_with(".rs") && (path.starts_with("src/") || path.strip_prefix("crates/").is_some_and(in_crate))
}

/// Returns true for a file whose whole content is for tests.
pub(super) fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.contains("_tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

/// Returns the line, counted from 1, of a position in `text`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[test]
fn comments_literals_and_tests_are_no_code() {
    let text = "let a = \"x // y\"; // z\nlet b: &'static str = r#\"\"q\" {\"#; let c = '{'; let d = '\\'';\n\
                #[cfg(test)]\nmod tests {\n    fn f() { }\n}\nfn g() {}\n";
    assert_eq!(
        code(text).lines().take(2).map(str::trim_end).collect::<Vec<_>>(),
        ["let a = \"      \";", "let b: &'static str = r        #; let c = ' '; let d = '  ';"]
    );
    let production = code_without_tests(text);
    assert!(production.contains("fn g() {}") && !production.contains("fn f"), "{production}");
    assert_eq!(production.lines().count(), text.lines().count());
}
