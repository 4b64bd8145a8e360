//! Hostile command lines for the parser.

use super::*;
use crate::hostile_input::{Random, rounds};

const VALID: &str =
    "for f in *.txt; do\n  if [[ -f $f ]]; then echo \"${f%.txt}\"; fi\ndone\ncat <<EOF\n$(date) '\nEOF\n";

#[test]
fn a_large_or_deep_text_is_not_parsed_for_long() {
    assert!(Language::Bash.tree(&"(".repeat(1_000_000)).is_none());
    for (open, close) in [("(", ")"), ("f(", ""), ("{", "}"), ("[", ""), ("$(", ""), ("if(x)", "")] {
        let count = (256 << 10) / (open.len() + close.len());
        Language::Bash.tree(&format!("{}{}", open.repeat(count), close.repeat(count)));
    }
}

#[test]
fn random_changes_of_source_code_are_parsed_without_harm() {
    let mut random = Random::new(17);
    for _ in 0..rounds(100, 10_000) {
        let mut bytes = VALID.as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            let (at, end) = (random.below(bytes.len()), random.below(bytes.len()));
            match random.below(4) {
                0 => bytes[at] = random.byte(),
                1 => drop(bytes.drain(at.min(end)..end)),
                2 => bytes.insert(at, b"(){}[]<>'\"`\\\n\t $#;:,=\0"[random.below(22)]),
                _ => bytes.extend_from_within(at.min(end)..end),
            }
            bytes.push(b'\n');
        }
        Language::Bash.tree(&String::from_utf8_lossy(&bytes));
    }
}
