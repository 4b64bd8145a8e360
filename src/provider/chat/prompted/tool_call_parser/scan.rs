//! Incremental scanners for quoted code and for JSON. Each reads every byte of an answer once.

/// The number of bytes at the start of a value that decide whether it may be a call.
const HEAD_LIMIT: usize = 256;

/// The languages that models write after the opening fence of a call.
const FENCE_LANGUAGES: [&str; 5] = ["json", "tool_call", "tool_code", "tool_use", "function"];

/// Tracks which parts of a Markdown text are quoted as code.
#[derive(Default)]
pub(super) struct CodeSpans {
    /// The number of backticks directly before the current byte.
    ticks: usize,
    /// The line has something other than white space before these backticks.
    midline: bool,
    fenced: bool,
    /// The number of backticks that opened the code span in this line, or 0.
    inline: usize,
}

impl CodeSpans {
    /// Ends a row of backticks if `byte` is not one. Must be called for each byte before [`CodeSpans::is_code`].
    pub(super) fn end_ticks(&mut self, byte: u8) {
        if byte == b'`' || self.ticks == 0 {
            return;
        }
        if self.ticks >= 3 && !self.midline {
            self.fenced = !self.fenced;
        } else if !self.fenced && self.inline == 0 {
            self.inline = self.ticks;
        } else if self.inline == self.ticks {
            self.inline = 0;
        }
        self.ticks = 0;
        self.midline = true;
    }

    /// Adds a byte of text.
    pub(super) fn push(&mut self, byte: u8) {
        match byte {
            b'`' => self.ticks += 1,
            b'\n' => (self.midline, self.inline) = (false, 0),
            byte if !byte.is_ascii_whitespace() => self.midline = true,
            _ => {}
        }
    }

    pub(super) fn is_code(&self) -> bool {
        self.fenced || self.inline > 0
    }
}

/// The end of the body of a tag.
pub(super) enum End {
    /// The end has not arrived yet.
    Open,
    /// The body cannot be a call.
    Never,
    At(BodyEnd),
}

/// The end of a body, in bytes from its start.
#[derive(Clone, Copy)]
pub(super) struct BodyEnd {
    /// The length of the body.
    pub inner: usize,
    /// The start of the text after the closing tag.
    pub after: usize,
}

/// Finds the end of a body: its closing tag outside of JSON strings, or the end of its JSON if there is no closing tag.
#[derive(Default)]
pub(super) struct JsonScanner {
    read: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The body is JSON, so that its strings must be skipped. `None` until the first byte has been seen.
    is_json: Option<bool>,
}

impl JsonScanner {
    pub(super) fn end(&mut self, body: &str, close: &str) -> End {
        while let Some(&byte) = body.as_bytes().get(self.read) {
            if self.is_json.is_none() && !byte.is_ascii_whitespace() {
                // In the forms of `<function=` and of Mistral, a name comes before the object.
                self.is_json = Some(matches!(byte, b'{' | b'['));
            }
            if byte == b'<' && !self.in_string && !close.is_empty() {
                let rest = &body[self.read..];
                if rest.starts_with(close) {
                    return End::At(BodyEnd { inner: self.read, after: self.read + close.len() });
                }
                if close.starts_with(rest) {
                    return End::Open;
                }
            }
            self.read += 1;
            if close == "</function>" && byte == b'>' && self.is_json == Some(false) && self.depth == 0 {
                self.is_json = None; // the body follows the name
            } else if close.is_empty() && self.is_json == Some(false) {
                match byte {
                    b'{' => self.is_json = Some(true),
                    b if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'[' | b']' | b' ') => {}
                    _ => return End::Never,
                }
            }
            if self.is_json == Some(true) && self.value(byte) && close.is_empty() {
                return End::At(BodyEnd { inner: self.read, after: self.read });
            }
        }
        End::Open
    }

    /// Adds a byte of JSON. Returns true if a value has just ended.
    fn value(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

/// Scans an answer that consists of JSON values, each bare or in a code fence.
#[derive(Default)]
pub(super) struct JsonBlocks {
    read: usize,
    json: JsonScanner,
    /// The start of the current value.
    begin: Option<usize>,
    ticks: usize,
    /// The start of the language after a fence. `None` where no language may follow.
    info: Option<usize>,
    whole: Vec<(usize, usize)>,
}

impl JsonBlocks {
    /// Reads the new part of `text`, which is the answer so far. Returns false if it has anything else than JSON values.
    pub(super) fn read(&mut self, text: &str) -> bool {
        while let Some(&byte) = text.as_bytes().get(self.read) {
            self.read += 1;
            if let Some(begin) = self.begin {
                if self.json.value(byte) {
                    self.whole.push((begin, self.read));
                    self.begin = None;
                }
                continue;
            }
            match byte {
                b'{' | b'[' => {
                    self.begin = Some(self.read - 1);
                    self.json.value(byte);
                    (self.ticks, self.info) = (0, None);
                }
                b'`' => {
                    self.ticks += 1;
                    self.info = (self.ticks == 3).then_some(self.read);
                }
                b if b.is_ascii_whitespace() => (self.ticks, self.info) = (0, None),
                _ => {
                    let word = self.info.and_then(|begin| text.get(begin..self.read));
                    if word.is_none_or(|word| FENCE_LANGUAGES.iter().all(|info| !info.starts_with(word))) {
                        return false;
                    }
                }
            }
            if self.ticks > 3 {
                return false;
            }
        }
        true
    }

    /// Returns the beginning of the newest value, or an empty text if there is none yet.
    pub(super) fn head<'a>(&self, text: &'a str) -> &'a str {
        let begin = self.begin.or_else(|| self.whole.last().map(|(begin, _)| *begin)).unwrap_or(text.len());
        let mut end = text.len().min(begin + HEAD_LIMIT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        &text[begin..end]
    }

    /// Returns the text of each value, including a last one that has no end.
    pub(super) fn texts<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let open = self.begin.map(|begin| text[begin..].trim_end().trim_end_matches('`'));
        self.whole.iter().map(|&(begin, end)| &text[begin..end]).chain(open)
    }
}
