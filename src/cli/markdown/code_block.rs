//! Finds a block of code in an answer that is complete.

use super::{
    Fence, is_end_of,
    line_start::{Container, LineKind, line_start},
    without_quotes,
};

/// Returns the first fenced block of code without its fences, each line ended by a line feed. `None` if there is no fence.
///
/// Quote marks and the indentation of the fence do not belong to the code. A block without an end goes on to the end of
/// the text.
pub(in crate::cli) fn first_code_block(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let (fence, indent) = lines.by_ref().find_map(fence)?;
    let mut code = String::new();
    for line in lines {
        let (quotes, line) = without_quotes(line, fence.quotes);
        if quotes < fence.quotes || is_end_of(&fence, line) {
            break;
        }
        let space = line.len() - line.trim_start_matches([' ', '\t']).len();
        code.push_str(&line[space.min(indent)..]);
        code.push('\n');
    }
    Some(code)
}

/// Reads a line that may begin a block of code. Returns its fence and the bytes before it, without those of the quotes.
fn fence(line: &str) -> Option<(Fence, usize)> {
    let start = line_start(line, true, false)?;
    let LineKind::Fence(mark, length) = start.kind else { return None };
    let quotes = start.containers.iter().filter(|part| matches!(part, Container::Quote(_))).count();
    let (_, rest) = without_quotes(line, quotes);
    let indent = rest.len().saturating_sub(line.len() - start.text_at);
    Some((Fence { mark, length, quotes, code: None }, indent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_is_found_wherever_it_stands() {
        for (text, code) in [
            ("Run this:\n\n```sh\nls -l\n```\n\nor\n\n```\nnot this\n```\n", Some("ls -l\n")),
            ("```\r\na\r\n\r\nb\r\n```", Some("a\n\nb\n")),
            ("~~~~python\n```\n~~~\n~~~~~\nrest", Some("```\n~~~\n")),
            ("1. Do\n   ```sh\n   if a\n     b\n c\n   ```\n", Some("if a\n  b\nc\n")),
            ("- ```\n  a\n  ```", Some("a\n")),
            ("> said\n> ```\n> a\n>  b\n> ```", Some("a\n b\n")),
            ("> ```\n> a\nno quote", Some("a\n")),
            ("```\ncut off", Some("cut off\n")),
            ("```\n```", Some("")),
            ("an `inline` and ```another``` one", None),
            ("```a``` b\n", None),
            ("", None),
        ] {
            assert_eq!(first_code_block(text).as_deref(), code, "{text:?}");
        }
    }
}
