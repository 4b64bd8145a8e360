//! Counts tokens with llama-server's `/tokenize`: one request for all new texts, none for texts counted before.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    mem,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use kontekst_core::{Cancel, Mutex};

use super::http::ServerClient;

/// The time limit for a count. After that an estimate is used.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The number of counts in each of the two generations of the cache.
const GENERATION_SIZE: usize = 1024;

/// Counts tokens and caches the counts by a keyed hash of the text, so that the system text and the tools are counted
/// once.
#[derive(Default)]
pub(super) struct TokenCounter {
    hash: RandomState,
    seen: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<u64, u32>,
    old: HashMap<u64, u32>,
}

#[derive(Serialize)]
struct TokenizeRequest<'a> {
    /// A llama.cpp router needs it to choose a tokenizer.
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    content: Vec<ContentPart<'a>>,
    /// False, because the texts are untrusted: `<|im_end|>` in one of them is plain text.
    parse_special: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentPart<'a> {
    Text(&'a str),
    /// Marks the end of a text. llama-server passes numbers through as tokens, and -1 is not a token.
    End(i64),
}

#[derive(Deserialize)]
struct TokenizeResponse {
    tokens: Vec<i64>,
}

/// Estimates the tokens of a text that could not be counted: bytes / 4.
///
/// Source: architecture of the first kontekst.
pub(super) fn estimate(text: &str) -> u32 {
    u32::try_from(text.len() / 4).unwrap_or(u32::MAX)
}

impl TokenCounter {
    /// Returns the number of tokens of each text, in order. `path` is the server's `/tokenize`.
    pub(super) fn count(
        &self,
        client: &ServerClient,
        path: &str,
        model: &str,
        texts: &[&str],
        cancel: &Cancel,
    ) -> Vec<u32> {
        let keys: Vec<u64> = texts.iter().map(|text| self.hash.hash_one(text)).collect();
        let mut counts: Vec<Option<u32>> = {
            let mut seen = self.seen.lock();
            texts
                .iter()
                .zip(&keys)
                .map(|(text, &key)| if text.is_empty() { Some(0) } else { seen.find(key) })
                .collect()
        };
        let new: Vec<usize> = (0..texts.len()).filter(|&at| counts[at].is_none()).collect();
        if !new.is_empty() {
            let asked: Vec<&str> = new.iter().map(|&at| texts[at]).collect();
            if let Some(found) = tokenize(client, path, model, &asked, cancel) {
                let mut seen = self.seen.lock();
                for (&at, count) in new.iter().zip(found) {
                    counts[at] = Some(count);
                    seen.keep(keys[at], count);
                }
            }
        }
        counts.iter().zip(texts).map(|(count, text)| count.unwrap_or_else(|| estimate(text))).collect()
    }
}

fn tokenize(
    client: &ServerClient,
    path: &str,
    model: &str,
    texts: &[&str],
    cancel: &Cancel,
) -> Option<Vec<u32>> {
    let content = texts.iter().flat_map(|&text| [ContentPart::Text(text), ContentPart::End(-1)]).collect();
    let request = TokenizeRequest { model, content, parse_special: false };
    let body = serde_json::to_vec(&request).expect("strings and numbers are JSON");
    let (status, answer) = client.request(path, Some(&body), cancel, TIMEOUT).ok()?;
    let answer: TokenizeResponse = serde_json::from_slice(&answer).ok().filter(|_| status == 200)?;
    let mut counts: Vec<u32> = answer
        .tokens
        .split(|&token| token == -1)
        .map(|tokens| u32::try_from(tokens.len()).unwrap_or(u32::MAX))
        .collect();
    counts.pop(); // the empty rest after the last mark
    (counts.len() == texts.len()).then_some(counts)
}

impl Generations {
    fn find(&mut self, key: u64) -> Option<u32> {
        if let Some(&count) = self.young.get(&key) {
            return Some(count);
        }
        let count = self.old.remove(&key)?;
        self.keep(key, count);
        Some(count)
    }

    fn keep(&mut self, key: u64, count: u32) {
        if self.young.len() == GENERATION_SIZE {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_use_stay_cached_and_memory_is_bounded() {
        let mut seen = Generations::default();
        seen.keep(0, 7);
        for key in 1..10_000 {
            seen.keep(key, 1);
            assert_eq!(seen.find(0), Some(7));
        }
        assert!(seen.young.len() + seen.old.len() <= 2 * GENERATION_SIZE);
        assert_eq!(seen.find(1), None);
    }
}
