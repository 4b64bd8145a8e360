//! Turns a response into text for the model.

use std::{borrow::Cow, fmt::Write};

use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

use crate::builtin::{MAX_OUTPUT, failure::Failure};

/// The bytes of markup in which its encoding is named. Source: the HTML standard.
const MARKUP_HEAD: usize = 1024;

/// A response with its decoded body.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// For example `404 Not Found`.
    pub(crate) status: String,
    pub(crate) content_type: Option<String>,
    /// A content encoding that could not be decoded.
    pub(crate) encoding: Option<String>,
    /// The last URL, if there were redirects.
    pub(crate) redirected_to: Option<String>,
    pub(crate) body: Vec<u8>,
    /// True if the body was longer than the limit.
    pub(crate) truncated: bool,
    /// Something that the model should know about its request.
    pub(crate) note: Option<String>,
}

impl Page {
    /// Returns the text for the model. HTML becomes what `convert` makes of it.
    pub(super) fn render(
        &self,
        convert: impl FnOnce(&str) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let (text, is_lossy) = self.text(convert)?;
        let (text, shortened) = truncate(&text);
        let mut output = format!("Status: {}\n", self.status);
        if let Some(url) = &self.redirected_to {
            let _ = writeln!(output, "URL: {url}");
        }
        let _ = writeln!(output, "Content-Type: {}", self.content_type.as_deref().unwrap_or("unknown"));
        let _ = writeln!(output, "Content-Length: {}", self.body.len());
        if self.truncated || shortened {
            output.push_str("(Response truncated due to size limit)\n");
        }
        if is_lossy {
            output.push_str("(What is no text in the encoding of the page is shown as \u{FFFD})\n");
        }
        if let Some(note) = &self.note {
            let _ = writeln!(output, "({note})");
        }
        Ok(output + "\n" + text)
    }

    /// Returns the text, and true if not all of the body is text in its encoding.
    fn text(
        &self,
        convert: impl FnOnce(&str) -> Result<String, Failure>,
    ) -> Result<(Cow<'_, str>, bool), Failure> {
        let whole = |text| Ok((text, false));
        if self.body.is_empty() {
            return whole(Cow::Borrowed(""));
        }
        if let Some(encoding) = &self.encoding {
            return whole(format!("(not shown: the body is encoded as {encoding})").into());
        }
        let kind = self.media_type();
        let charset = self.charset(&kind);
        if !is_text(&kind, &self.body) && !is_utf16(charset) {
            return whole(format!("(not shown: {} bytes of binary content)", self.body.len()).into());
        }
        let (text, _, is_lossy) = charset.decode(&self.body);
        let is_html = kind == "text/html" || kind == "application/xhtml+xml";
        if !is_html {
            return Ok((text, is_lossy));
        }
        let visible = convert(&text)?;
        Ok((if visible.is_empty() { text } else { visible.into() }, is_lossy))
    }

    /// Returns the encoding of the body: that of its byte order mark, or the one that the header or the markup names. A
    /// body that is UTF-8 is taken as such whatever they say, because servers often name another one.
    fn charset(&self, kind: &str) -> &'static Encoding {
        if let Some((marked, _)) = Encoding::for_bom(&self.body) {
            return marked;
        }
        let parameters = self.content_type.as_deref().unwrap_or_default();
        let is_markup = kind.contains("html") || kind.contains("xml");
        let head = String::from_utf8_lossy(&self.body[..self.body.len().min(MARKUP_HEAD)]);
        let in_markup = || if is_markup { named_in_markup(&head) } else { None };
        let named = label_after("charset", parameters).or_else(in_markup).unwrap_or(UTF_8);
        // The bytes of these two can be UTF-8 by chance.
        let is_certain = is_utf16(named) || named == ISO_2022_JP;
        if !is_certain && std::str::from_utf8(&self.body).is_ok() { UTF_8 } else { named }
    }

    /// Returns the media type in lower case and without its parameters.
    fn media_type(&self) -> String {
        let kind = self.content_type.as_deref().unwrap_or_default();
        kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

fn is_text(kind: &str, body: &[u8]) -> bool {
    let is_markup = kind.ends_with("+xml") || kind.ends_with("+json");
    let binary = ["image/", "audio/", "video/", "font/"].iter().any(|family| kind.starts_with(family))
        || matches!(kind, "application/pdf" | "application/zip" | "application/gzip" | "application/wasm");
    (is_markup || !binary) && !body.contains(&0)
}

fn is_utf16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// Returns the encoding that a `<meta>` element or the XML declaration names. Markup that can be read so far is not UTF-16.
fn named_in_markup(head: &str) -> Option<&'static Encoding> {
    let mut tags = head.split('<').filter_map(|tag| tag.split('>').next());
    let named = tags.find_map(|tag| match tag.get(..4)?.to_ascii_lowercase().as_str() {
        "meta" => label_after("charset", tag),
        "?xml" => label_after("encoding", tag),
        _ => None,
    });
    named.filter(|encoding| !is_utf16(encoding))
}

/// Returns the encoding whose label stands after `name` and `=` in the text.
fn label_after(name: &str, text: &str) -> Option<&'static Encoding> {
    let at = text.to_ascii_lowercase().find(name)?;
    let value = text[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let label = value
        .trim_start_matches(['"', '\''])
        .split(|c: char| c.is_whitespace() || "\"';/".contains(c))
        .next()?;
    Encoding::for_label(label.as_bytes())
}

/// Returns the part of the text that the model reads, and whether that is less than all of it.
fn truncate(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(MAX_OUTPUT.min(text.len()));
    (&text[..end], end < text.len())
}

#[cfg(test)]
mod tests {
    use super::{super::html, *};

    fn page(content_type: &str, body: impl Into<Vec<u8>>) -> Page {
        Page {
            status: "200 OK".into(),
            content_type: Some(content_type.into()),
            body: body.into(),
            ..Page::default()
        }
    }

    fn render(page: &Page, raw: bool) -> String {
        let convert = |html: &str| if raw { html.to_owned() } else { html::to_markdown(html) };
        page.render(|html| Ok(convert(html))).unwrap()
    }

    #[test]
    fn a_rendered_page_starts_with_status_and_headers() {
        let mut page = page("text/plain; charset=utf-8", "hello");
        assert_eq!(
            render(&page, false),
            "Status: 200 OK\nContent-Type: text/plain; charset=utf-8\nContent-Length: 5\n\nhello"
        );
        page.truncated = true;
        page.status = "404 Not Found".into();
        page.redirected_to = Some("https://b.example/".into());
        assert_eq!(
            render(&page, false),
            "Status: 404 Not Found\nURL: https://b.example/\nContent-Type: text/plain; charset=utf-8\n\
             Content-Length: 5\n(Response truncated due to size limit)\n\nhello"
        );
    }

    #[test]
    fn html_becomes_text_unless_raw_is_set() {
        let html = "<html><head><title>T</title><style>p{color:red}</style></head><body><h1>Head</h1>\
                    <p>One <a href='https://x.example/a'>link</a>.<script>alert(1)</script>\
                    <ul><li>first<li>second</ul></body></html>";
        let text = render(&page("text/html; charset=UTF-8", html), false);
        for part in ["# Head", "One [link]", "https://x.example/a", "* first", "* second"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        for part in ["alert", "color:red", "<p>"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
        assert!(render(&page("text/html", html), true).ends_with("</html>"));
        assert!(render(&page("text/plain", html), false).ends_with("</html>"));
    }

    #[test]
    fn binary_content_is_not_shown() {
        for (kind, body) in [
            ("image/png", b"x".to_vec()),
            ("application/pdf", b"%PDF".to_vec()),
            ("application/octet-stream", vec![0; 10]),
            ("", vec![1, 0, 2]),
            ("text/plain", vec![b'a', 0]),
        ] {
            let text = render(&page(kind, body), false);
            assert!(text.contains("bytes of binary content"), "{kind}: {text}");
        }
        for kind in ["image/svg+xml", "application/octet-stream", "application/json", "", "nonsense"] {
            assert!(render(&page(kind, "plain"), false).ends_with("\n\nplain"), "{kind}");
        }
        let odd = Page { encoding: Some("br".into()), ..page("text/html", "x") };
        assert!(render(&odd, false).contains("encoded as br"));
    }

    #[test]
    fn the_body_is_decoded_as_it_is_marked_or_declared() {
        let meta =
            |name: &str, body: &[u8]| [format!("<meta charset='{name}'><p>").as_bytes(), body].concat();
        let sjis = b"\x93\xfa\x96\x7b\x8c\xea";
        let http_equiv =
            b"<!doctype html><META http-equiv=x content=\"text/html; charset=EUC-KR\"><p>\xc7\xd1";
        for (kind, body, want) in [
            ("text/plain; charset=ISO-8859-1", b"caf\xe9".to_vec(), "café"),
            ("text/plain; charset=iso-8859-1", "café".into(), "café"),
            ("text/html; charset=\"Shift_JIS\"", sjis.to_vec(), "日本語"),
            ("text/html", meta("shift_jis", sjis), "日本語"),
            ("text/html; charset=klingon", meta("Shift_JIS", sjis), "日本語"),
            ("text/html", http_equiv.to_vec(), "한"),
            ("text/plain; Charset = gbk ; x=y", b"\xd6\xd0\xce\xc4".to_vec(), "中文"),
            ("text/plain;charset=windows-1251", b"\xcf\xf0\xe8".to_vec(), "При"),
            ("text/plain; charset=iso-2022-jp", b"\x1b$BF|K\\\x1b(B".to_vec(), "日本"),
            ("application/xml", b"<?xml version='1.0' encoding='koi8-r'?><a>\xc4</a>".to_vec(), "<a>д</a>"),
            ("text/html; charset=utf-16", b"\xff\xfeh\0\xe9\0".to_vec(), "hé"),
            ("text/plain; charset=utf-16be", b"\0h\0\xe9".to_vec(), "hé"),
            ("text/plain; charset=gbk", b"\xef\xbb\xbfcaf\xc3\xa9".to_vec(), "\ncafé"),
        ] {
            let text = render(&page(kind, body), false);
            assert!(text.ends_with(want) && !text.contains('\u{FFFD}'), "{kind}: {text}");
        }
        let lossy = render(&page("text/plain", b"caf\xe9".to_vec()), false);
        assert!(lossy.ends_with("encoding of the page is shown as \u{FFFD})\n\ncaf\u{FFFD}"), "{lossy}");
    }

    #[test]
    fn long_text_is_truncated_with_a_note() {
        let text = render(&page("text/plain", "é".repeat(MAX_OUTPUT)), false);
        assert!(text.len() < MAX_OUTPUT + 200 && text.contains("truncated"));
    }

    #[test]
    fn a_page_without_visible_text_is_shown_as_it_is() {
        let html = "<html><script>render()</script><div hidden>x</div></html>";
        assert!(render(&page("text/html", html), false).ends_with(html));
    }
}
