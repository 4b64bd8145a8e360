//! Reads along with an answer, each byte once.

/// Bytes of a block that are looked at to tell whether it may be a call.
const HEAD_LIMIT: usize = 256;

/// What models write behind the three ticks of a fence that holds a call.
const FENCE_LANGUAGES: [&str; 5] = ["json", "tool_call", "tool_code", "tool_use", "function"];

/// Where a text is quoted as code, in Markdown.
#[derive(Default)]
pub struct CodeSpans {
    /// Ticks in a row that have just come.
    ticks: usize,
    /// Something other than white space stood in this line before them.
    midline: bool,
    fenced: bool,
    /// Ticks that opened a quotation in this line.
    inline: usize,
}

impl CodeSpans {
    /// To be told of each byte before it is judged.
    pub fn end_ticks(&mut self, byte: u8) {
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

    /// To be told of each byte that is text.
    pub fn push(&mut self, byte: u8) {
        match byte {
            b'`' => self.ticks += 1,
            b'\n' => (self.midline, self.inline) = (false, 0),
            byte if !byte.is_ascii_whitespace() => self.midline = true,
            _ => {}
        }
    }

    pub fn is_code(&self) -> bool {
        self.fenced || self.inline > 0
    }
}

/// Where what an opening tag began is over.
pub enum End {
    /// Not yet.
    Open,
    /// It cannot be a call.
    Never,
    /// Its body has `inner` bytes; the text goes on at `after`.
    At { inner: usize, after: usize },
}

/// The end of a body: its closing tag outside of texts, or the end of its JSON where there is none.
#[derive(Default)]
pub struct JsonScanner {
    read: usize,
    depth: usize,
    text: bool,
    escaped: bool,
    /// The body is JSON, so that its texts are told from tags.
    json: Option<bool>,
}

impl JsonScanner {
    pub fn end(&mut self, body: &str, close: &str) -> End {
        while let Some(&byte) = body.as_bytes().get(self.read) {
            if self.json.is_none() && !byte.is_ascii_whitespace() {
                // A function's name and a Mistral's stand before the object.
                self.json = Some(matches!(byte, b'{' | b'['));
            }
            if byte == b'<' && !self.text && !close.is_empty() {
                let rest = &body[self.read..];
                if rest.starts_with(close) {
                    return End::At { inner: self.read, after: self.read + close.len() };
                }
                if close.starts_with(rest) {
                    return End::Open;
                }
            }
            self.read += 1;
            if close == "</function>" && byte == b'>' && self.json == Some(false) && self.depth == 0 {
                self.json = None; // behind the name comes the body
            } else if close.is_empty() && self.json == Some(false) {
                match byte {
                    b'{' => self.json = Some(true),
                    b if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'[' | b']' | b' ') => {}
                    _ => return End::Never,
                }
            }
            if self.json == Some(true) && self.value(byte) && close.is_empty() {
                return End::At { inner: self.read, after: self.read };
            }
        }
        End::Open
    }

    /// Takes a byte of JSON; `true` when a value has just ended.
    fn value(&mut self, byte: u8) -> bool {
        if self.text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.text = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.text = true,
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

/// An answer that is nothing but JSON values, each bare or in a code fence.
#[derive(Default)]
pub struct JsonBlocks {
    read: usize,
    json: JsonScanner,
    /// Where the value that is being read begins.
    begin: Option<usize>,
    ticks: usize,
    /// Where the word behind a fence begins; `None` where none may stand.
    info: Option<usize>,
    whole: Vec<(usize, usize)>,
}

impl JsonBlocks {
    /// Reads on in `text`, the answer so far. `false` when there is something else in it.
    pub fn read(&mut self, text: &str) -> bool {
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

    /// How the newest value begins; empty before there is one.
    pub fn head<'a>(&self, text: &'a str) -> &'a str {
        let begin = self.begin.or_else(|| self.whole.last().map(|(begin, _)| *begin)).unwrap_or(text.len());
        let mut end = text.len().min(begin + HEAD_LIMIT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        &text[begin..end]
    }

    /// The values; one that has no end is not told by anything but the missing bracket.
    pub fn texts<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let open = self.begin.map(|begin| text[begin..].trim_end().trim_end_matches('`'));
        self.whole.iter().map(|&(begin, end)| &text[begin..end]).chain(open)
    }
}
