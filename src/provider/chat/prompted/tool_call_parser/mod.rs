//! Finds calls in the text of an answer while it streams, and passes the other text on at once.

mod scan;

use std::collections::HashSet;

use self::scan::{BodyEnd, CodeSpans, JsonBlocks, JsonScanner};
use super::call;
use crate::{
    core::ToolDef,
    provider::{FinishReason, chat::ParsedCall},
};

/// The longest call in bytes: arguments of 1 MiB and their tags. Anything longer is treated as text.
const BUFFER_LIMIT: usize = 1024 * 1024 + 4096;

/// Separates a streamed answer into text and calls. How the stream is cut into pieces makes no difference.
///
/// A call counts only if it is complete, names an existing tool, and is neither in quoted code nor in the model's
/// thoughts. A call in a code fence or without any tag counts only if the answer has nothing else.
pub(crate) struct ToolCallParser {
    tool_names: HashSet<String>,
    /// The prompt explains how to call tools. A call of an unknown tool is then a mistake of the model and not text.
    tools_in_prompt: bool,
    buffer: String,
    state: State,
    code: CodeSpans,
    /// Only white space has arrived since the beginning or since the last call.
    at_start: bool,
    calls: Vec<ParsedCall>,
}

enum State {
    /// Before the first byte that is not white space.
    Start,
    Prose,
    /// Inside `<think>`.
    Thinking,
    /// `buffer` holds a code fence or an object that may be the whole answer.
    WholeAnswer(JsonBlocks),
    /// `buffer[body..]` follows an opening tag.
    InTag {
        tag: Tag,
        body: usize,
        json: JsonScanner,
    },
    /// There are no calls to look for.
    TextOnly,
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

impl ToolCallParser {
    /// Without tools, everything is text. `tools_in_prompt` says that the system text explains how to call them.
    pub(crate) fn new(tools: &[ToolDef], tools_in_prompt: bool) -> Self {
        let known: HashSet<String> = tools.iter().map(|tool| normalized_name(&tool.name)).collect();
        let state = if known.is_empty() { State::TextOnly } else { State::Start };
        let (held, code, found) = (String::new(), CodeSpans::default(), Vec::new());
        Self { tool_names: known, tools_in_prompt, buffer: held, state, code, at_start: true, calls: found }
    }

    /// Returns the number of calls found so far.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Adds a piece of the answer, and appends to `out` what is certainly text.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        self.buffer.push_str(piece);
        while self.step(out) {}
        if self.buffer.len() > BUFFER_LIMIT {
            self.state = State::TextOnly;
            self.step(out);
        }
    }

    /// Ends the answer. What is still buffered becomes a call, or is appended to `out`, or is dropped if the answer was
    /// cut within a call.
    pub(crate) fn finish(mut self, finish: FinishReason, out: &mut String) -> Vec<ParsedCall> {
        let cut = finish == FinishReason::Length;
        match self.state {
            State::WholeAnswer(ref blocks) if !cut => {
                let calls = blocks
                    .texts(&self.buffer)
                    // Other data may look like a call without a tag, so it must also have arguments.
                    .map(|text| {
                        call::calls_in_json(text).filter(|calls| has_arguments(text) && self.all_known(calls))
                    });
                match calls.collect::<Option<Vec<_>>>() {
                    Some(calls) if !calls.is_empty() => self.calls.extend(calls.into_iter().flatten()),
                    _ => out.push_str(&self.buffer),
                }
            }
            // A call that was cut is not what the model meant, and half a call is not worth showing.
            State::InTag { .. } if cut => {}
            State::InTag { tag, body, .. } => {
                // Unbalanced quotes may have hidden the closing tag.
                let close = Some(tag.close()).filter(|close| !close.is_empty());
                let end = close.and_then(|close| self.buffer[body..].find(close));
                let (inner, after) = end.map_or((&self.buffer[body..], ""), |end| {
                    (&self.buffer[body..body + end], &self.buffer[body + end + tag.close().len()..])
                });
                match self.calls(tag, inner, end.is_some()) {
                    Some(calls) => {
                        out.push_str(after.trim_end());
                        self.calls.extend(calls);
                    }
                    None => out.push_str(&self.buffer),
                }
            }
            // Part of a tag.
            State::Prose if cut && self.buffer.trim_start().len() > 3 => {}
            _ if self.at_start && !self.calls.is_empty() => out.push_str(self.buffer.trim()),
            _ => out.push_str(&self.buffer),
        }
        self.calls
    }

    /// Advances until the state changes. Returns false if more input is needed.
    fn step(&mut self, out: &mut String) -> bool {
        match &mut self.state {
            State::TextOnly => {
                out.push_str(&self.buffer);
                self.buffer.clear();
                false
            }
            State::Start => self.start(),
            State::Prose => self.prose(out),
            State::Thinking => self.thinking(out),
            State::WholeAnswer(blocks) => {
                let possible =
                    blocks.read(&self.buffer) && may_be_call(blocks.head(&self.buffer), &self.tool_names);
                if !possible {
                    self.state = State::Prose;
                }
                !possible
            }
            State::InTag { tag, body, json } => {
                let (tag, body) = (*tag, *body);
                match json.end(&self.buffer[body..], tag.close()) {
                    scan::End::Open => false,
                    scan::End::Never => self.reject(body, out),
                    scan::End::At(end) => self.close(tag, body, end, out),
                }
            }
        }
    }

    fn start(&mut self) -> bool {
        let text = self.buffer.trim_start();
        self.state = match text.as_bytes() {
            [] | [b'['] => return false,
            [b'[', b'T', ..] => State::Prose,
            [b'{' | b'[' | b'`', ..] => State::WholeAnswer(JsonBlocks::default()),
            _ => State::Prose,
        };
        true
    }

    fn prose(&mut self, out: &mut String) -> bool {
        let mut at = 0;
        let mut next = None;
        while let Some(&byte) = self.buffer.as_bytes().get(at) {
            self.code.end_ticks(byte);
            if matches!(byte, b'<' | b'[') && !self.code.is_code() {
                let rest = &self.buffer[at..];
                if let Some((tag, opening)) = TAGS.iter().find(|(_, opening)| rest.starts_with(opening)) {
                    next = Some((*tag, opening.len()));
                    break;
                }
                if TAGS.iter().any(|(_, opening)| opening.starts_with(rest)) {
                    break; // may be the beginning of a tag
                }
            }
            self.code.push(byte);
            self.at_start &= byte.is_ascii_whitespace();
            at += 1;
        }
        // White space around calls is dropped with them.
        let kept = if self.at_start { 0 } else { at };
        out.push_str(&self.buffer[..kept]);
        self.buffer.drain(..kept);
        match next {
            None => false,
            Some((Tag::Think, length)) => {
                out.push_str(&self.buffer[..at - kept + length]);
                self.buffer.drain(..at - kept + length);
                self.state = State::Thinking;
                true
            }
            Some((tag, length)) => {
                self.state = State::InTag { tag, body: at - kept + length, json: JsonScanner::default() };
                true
            }
        }
    }

    fn thinking(&mut self, out: &mut String) -> bool {
        let close = Tag::Think.close();
        let (end, done) = match self.buffer.find(close) {
            Some(at) => (at + close.len(), true),
            None => (self.buffer.len() - partial_tag_len(&self.buffer, close), false),
        };
        out.push_str(&self.buffer[..end]);
        self.buffer.drain(..end);
        if done {
            self.state = State::Start;
            self.at_start = true;
        }
        done
    }

    fn close(&mut self, tag: Tag, body: usize, end: BodyEnd, out: &mut String) -> bool {
        match self.calls(tag, &self.buffer[body..body + end.inner], true) {
            Some(calls) => {
                self.calls.extend(calls);
                self.buffer.drain(..body + end.after);
                self.at_start = true;
                self.state = State::Prose;
                true
            }
            None => self.reject(body + end.after, out),
        }
    }

    /// Treats `buffer[..end]` as text.
    fn reject(&mut self, end: usize, out: &mut String) -> bool {
        out.push_str(&self.buffer[..end]);
        self.buffer.drain(..end);
        self.at_start = false;
        self.state = State::Prose;
        true
    }

    /// Returns the calls between two tags, or `None` if anything else is between them.
    fn calls(&self, tag: Tag, inner: &str, closed: bool) -> Option<Vec<ParsedCall>> {
        let calls = match tag {
            Tag::Call if closed => call::calls_in_tag(inner),
            // A call without its closing tag must at least be valid JSON.
            Tag::Call => call::calls_in_json(inner.trim()),
            Tag::Function => {
                let (name, body) = inner.split_once('>')?;
                call::call_in_function(name, body).map(|found| vec![found]).filter(|_| closed)
            }
            Tag::Mistral => call::calls_in_mistral(inner),
            Tag::Think => None,
        }?;
        let invented = self.tools_in_prompt && tag == Tag::Call && closed;
        (invented || self.all_known(&calls)).then_some(calls)
    }

    fn all_known(&self, calls: &[ParsedCall]) -> bool {
        !calls.is_empty() && calls.iter().all(|call| self.tool_names.contains(&normalized_name(&call.name)))
    }
}

/// Returns a name without differences in case, `-` and `_`, because models are not exact about them.
fn normalized_name(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Returns true if the JSON text has arguments, which a call without a tag needs.
fn has_arguments(text: &str) -> bool {
    text.contains("arguments") || text.contains("parameters")
}

/// Returns the number of bytes at the end of `text` that may be the beginning of `tag`.
fn partial_tag_len(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&length| text.ends_with(&tag[..length])).unwrap_or(0)
}

/// Returns true if an object that begins with `head` may be a call. Only then is it buffered.
fn may_be_call(head: &str, known: &HashSet<String>) -> bool {
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
        Some((name, None)) => known.iter().any(|known| known.starts_with(&normalized_name(&name))),
        Some((name, Some(_))) => known.contains(&normalized_name(&name)),
    }
}
