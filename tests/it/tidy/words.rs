//! Words that names in this project must not have.

use std::collections::BTreeSet;

use super::{assert_none, files, source};

/// Words that a reader would have to learn first, because the field has others for the same things.
#[rustfmt::skip]
const PRIVATE: &[&str] = &[
    "anchor", "crew", "crowd", "desk", "emitter", "fleet", "grounds", "hear", "heard", "hears",
    "intake", "lab", "likest", "mourn", "news", "obituary", "purse", "seat", "settle", "shelf", "shun",
    "sieve", "spot", "standing", "stretch", "surplus", "surroundings", "tell", "told", "vitals",
    "voice", "yard",
];

/// Two words that only mean something private together.
const PRIVATE_PAIRS: &[(&str, &str)] = &[("by", "heart")];

/// The places where such a word is still there, or means what it says: a path, or the beginning of one, and the word.
const ALLOWED: &[(&str, &str)] = &[("crates/tools/src/builtin/web_fetch/html/mod.rs", "emitter")];

#[test]
fn names_have_no_private_words() {
    let mut found = BTreeSet::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let allowed = |word: &str| {
            ALLOWED.iter().any(|(path, allowed)| file.path.starts_with(path) && *allowed == word)
        };
        let code = source::code(&file.text);
        let names = code.split(|c: char| !c.is_alphanumeric() && c != '_').chain(file.path.split(['/', '.']));
        for name in names.filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_')) {
            let words = words(name);
            let single = words.iter().find(|word| PRIVATE.contains(&word.as_str()) && !allowed(word));
            let pair = words.windows(2).find(|pair| {
                PRIVATE_PAIRS.iter().any(|(first, second)| pair[0] == *first && pair[1] == *second)
                    && !allowed(&pair.join("_"))
            });
            if single.is_some() || pair.is_some() {
                found.insert(format!("{}: {name}", file.path));
            }
        }
    }
    assert_none("private words", &found.into_iter().collect::<Vec<_>>());
}

/// Takes a name such as `TokenBudget` or `token_budget` apart, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut after_small = false;
    for c in name.chars() {
        if c.is_uppercase() && after_small {
            spaced.push('_');
        }
        spaced.extend(c.to_lowercase());
        after_small = c.is_lowercase();
    }
    spaced.split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn names_are_taken_apart() {
    assert_eq!(words("TokenBudget"), ["token", "budget"]);
    assert_eq!(words("_by_heart"), ["by", "heart"]);
    assert_eq!(words("WORDS_OF_2"), ["words", "of", "2"]);
}
