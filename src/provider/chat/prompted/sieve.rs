//! Takes calls out of an answer while it arrives, and lets the rest through at once.

mod scan;

use std::collections::HashSet;

use self::scan::{Blocks, Code, Json};
use super::call::{self, Found};
use crate::{core::ToolDef, provider::Finish};

/// Bytes that may be held back for one call; what is longer is text. A call's arguments may have 1 MiB.
const HELD_LIMIT: usize = 1024 * 1024 + 4096;

/// Separates an answer that comes in pieces into text and calls. How it is cut makes no difference.
///
/// A call counts only when it is whole and names a tool that exists, outside of quoted code and of what
/// the model thinks; a call in a code fence or without any tag only when it is all there is.
pub struct Sieve {
    known: HashSet<String>,
    /// The model was told to call this way, so that a call of a tool that does not exist is a mistake of
    /// its own and no text.
    told: bool,
    held: String,
    state: State,
    code: Code,
    /// Nothing but white space has come since the beginning, or since the last call.
    fresh: bool,
    found: Vec<Found>,
}

enum State {
    /// Before the first byte that says something.
    Start,
    Prose,
    /// Within `<think>`.
    Thought,
    /// `held` is a code fence or an object that may be all of the answer.
    Whole(Blocks),
    /// `held[body..]` is what follows an opening tag.
    Inside {
        tag: Tag,
        body: usize,
        json: Json,
    },
    /// Everything is text.
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Call,
    Function,
    Mistral,
    Think,
}

const TAGS: [(Tag, &str); 4] = [
    (Tag::Call, "<tool_call>"),
    (Tag::Function, "<function="),
    (Tag::Mistral, "[TOOL_CALLS]"),
    (Tag::Think, "<think>"),
];

impl Tag {
    fn close(self) -> &'static str {
        match self {
            Self::Call => "</tool_call>",
            Self::Function => "</function>",
            Self::Mistral => "",
            Self::Think => "</think>",
        }
    }
}

impl Sieve {
    /// Without tools everything is text. `told` says that the system text explains how to call.
    pub fn new(tools: &[ToolDef], told: bool) -> Self {
        let known: HashSet<String> = tools.iter().map(|tool| plain(&tool.name)).collect();
        let state = if known.is_empty() { State::Off } else { State::Start };
        let (held, code, found) = (String::new(), Code::default(), Vec::new());
        Self { known, told, held, state, code, fresh: true, found }
    }

    /// The calls so far.
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// Takes a piece and appends to `out` what is text for certain.
    pub fn push(&mut self, piece: &str, out: &mut String) {
        self.held.push_str(piece);
        while self.step(out) {}
        if self.held.len() > HELD_LIMIT {
            self.state = State::Off;
            self.step(out);
        }
    }

    /// The answer is over: what is still held is a call, or text, or was cut.
    pub fn finish(mut self, finish: Finish, out: &mut String) -> Vec<Found> {
        let cut = finish == Finish::Length;
        match self.state {
            State::Whole(ref blocks) if !cut => {
                let calls = blocks
                    .texts(&self.held)
                    // Without a tag around it, data may look like a call: it must have arguments.
                    .map(|text| {
                        call::in_json(text).filter(|calls| calls_alone(text) && self.all_known(calls))
                    });
                match calls.collect::<Option<Vec<_>>>() {
                    Some(calls) if !calls.is_empty() => self.found.extend(calls.into_iter().flatten()),
                    _ => out.push_str(&self.held),
                }
            }
            // What was cut is not what the model meant to call, and half a call is nothing to read.
            State::Inside { .. } if cut => {}
            State::Inside { tag, body, .. } => {
                // Quotes that do not match may have hidden the end.
                let close = Some(tag.close()).filter(|close| !close.is_empty());
                let end = close.and_then(|close| self.held[body..].find(close));
                let (inner, after) = end.map_or((&self.held[body..], ""), |end| {
                    (&self.held[body..body + end], &self.held[body + end + tag.close().len()..])
                });
                match self.calls(tag, inner, end.is_some()) {
                    Some(calls) => {
                        out.push_str(after.trim_end());
                        self.found.extend(calls);
                    }
                    None => out.push_str(&self.held),
                }
            }
            // A half tag.
            State::Prose if cut && self.held.trim_start().len() > 3 => {}
            _ if self.fresh && !self.found.is_empty() => out.push_str(self.held.trim()),
            _ => out.push_str(&self.held),
        }
        self.found
    }

    /// Goes on as far as one state leads. `false` when more has to come.
    fn step(&mut self, out: &mut String) -> bool {
        match &mut self.state {
            State::Off => {
                out.push_str(&self.held);
                self.held.clear();
                false
            }
            State::Start => self.start(),
            State::Prose => self.prose(out),
            State::Thought => self.thought(out),
            State::Whole(blocks) => {
                let possible = blocks.read(&self.held) && plausible(blocks.head(&self.held), &self.known);
                if !possible {
                    self.state = State::Prose;
                }
                !possible
            }
            State::Inside { tag, body, json } => {
                let (tag, body) = (*tag, *body);
                match json.end(&self.held[body..], tag.close()) {
                    scan::End::Open => false,
                    scan::End::Never => self.reject(body, out),
                    scan::End::At { inner, after } => self.close(tag, body, (inner, after), out),
                }
            }
        }
    }

    fn start(&mut self) -> bool {
        let text = self.held.trim_start();
        self.state = match text.as_bytes() {
            [] | [b'['] => return false,
            [b'[', b'T', ..] => State::Prose,
            [b'{' | b'[' | b'`', ..] => State::Whole(Blocks::default()),
            _ => State::Prose,
        };
        true
    }

    fn prose(&mut self, out: &mut String) -> bool {
        let mut at = 0;
        let mut next = None;
        while let Some(&byte) = self.held.as_bytes().get(at) {
            self.code.before(byte);
            if matches!(byte, b'<' | b'[') && !self.code.is_code() {
                let rest = &self.held[at..];
                if let Some((tag, opening)) = TAGS.iter().find(|(_, opening)| rest.starts_with(opening)) {
                    next = Some((*tag, opening.len()));
                    break;
                }
                if TAGS.iter().any(|(_, opening)| opening.starts_with(rest)) {
                    break; // may become a tag
                }
            }
            self.code.see(byte);
            self.fresh &= byte.is_ascii_whitespace();
            at += 1;
        }
        // White space around calls belongs to them.
        let kept = if self.fresh { 0 } else { at };
        out.push_str(&self.held[..kept]);
        self.held.drain(..kept);
        match next {
            None => false,
            Some((Tag::Think, length)) => {
                out.push_str(&self.held[..at - kept + length]);
                self.held.drain(..at - kept + length);
                self.state = State::Thought;
                true
            }
            Some((tag, length)) => {
                self.state = State::Inside { tag, body: at - kept + length, json: Json::default() };
                true
            }
        }
    }

    fn thought(&mut self, out: &mut String) -> bool {
        let close = Tag::Think.close();
        let (end, done) = match self.held.find(close) {
            Some(at) => (at + close.len(), true),
            None => (self.held.len() - half(&self.held, close), false),
        };
        out.push_str(&self.held[..end]);
        self.held.drain(..end);
        if done {
            self.state = State::Start;
            self.fresh = true;
        }
        done
    }

    fn close(&mut self, tag: Tag, body: usize, (inner, after): (usize, usize), out: &mut String) -> bool {
        match self.calls(tag, &self.held[body..body + inner], true) {
            Some(calls) => {
                self.found.extend(calls);
                self.held.drain(..body + after);
                self.fresh = true;
                self.state = State::Prose;
                true
            }
            None => self.reject(body + after, out),
        }
    }

    /// `held[..end]` is text after all.
    fn reject(&mut self, end: usize, out: &mut String) -> bool {
        out.push_str(&self.held[..end]);
        self.held.drain(..end);
        self.fresh = false;
        self.state = State::Prose;
        true
    }

    /// The calls between two tags; `None` when it is not calls and nothing else.
    fn calls(&self, tag: Tag, inner: &str, closed: bool) -> Option<Vec<Found>> {
        let calls = match tag {
            Tag::Call if closed => call::in_tag(inner),
            // Without its end a call must at least be readable.
            Tag::Call => call::in_json(inner.trim()),
            Tag::Function => {
                let (name, body) = inner.split_once('>')?;
                call::in_function(name, body).map(|found| vec![found]).filter(|_| closed)
            }
            Tag::Mistral => call::in_mistral(inner),
            Tag::Think => None,
        }?;
        let invented = self.told && tag == Tag::Call && closed;
        (invented || self.all_known(&calls)).then_some(calls)
    }

    fn all_known(&self, calls: &[Found]) -> bool {
        !calls.is_empty() && calls.iter().all(|call| self.known.contains(&plain(&call.name)))
    }
}

/// Names that differ only in case, `-` and `_` are one: models are not exact about them.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Whether JSON has what a call without a tag needs.
fn calls_alone(text: &str) -> bool {
    text.contains("arguments") || text.contains("parameters")
}

/// Bytes at the end of `text` that may be the beginning of `tag`.
fn half(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&length| text.ends_with(&tag[..length])).unwrap_or(0)
}

/// Whether an object that begins like this may be a call: only then is it worth holding back.
fn plausible(head: &str, known: &HashSet<String>) -> bool {
    const KEYS: [&str; 5] = ["name", "arguments", "parameters", "function", "type"];
    let quoted = |text: &'_ str| {
        let text = text.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let rest = &text[1..];
        Some(
            rest.split_once(quote)
                .map_or((rest.to_owned(), None), |(word, rest)| (word.to_owned(), Some(rest.to_owned()))),
        )
    };
    let head = head.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '[' | '{'));
    let Some((key, rest)) = quoted(head) else { return head.is_empty() };
    let Some(rest) = rest else { return KEYS.iter().any(|known| known.starts_with(&key)) };
    if !matches!(key.as_str(), "name" | "type") {
        return KEYS.contains(&key.as_str());
    }
    let rest = rest.trim_start();
    let Some(value) = rest.strip_prefix(':') else { return rest.is_empty() };
    match quoted(value) {
        None => value.trim_start().is_empty(),
        Some((kind, None)) if key == "type" => "function".starts_with(&kind),
        Some((kind, Some(_))) if key == "type" => kind == "function",
        Some((name, None)) => known.iter().any(|known| known.starts_with(&plain(&name))),
        Some((name, Some(_))) => known.contains(&plain(&name)),
    }
}
