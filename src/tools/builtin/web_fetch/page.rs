//! Turns a response into text for the model.

use std::{borrow::Cow, fmt::Write};

use super::{super::MAX_OUTPUT, html};
use crate::core::Cancel;

/// A response with its decoded body.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// For example `404 Not Found`.
    pub status: String,
    pub content_type: Option<String>,
    /// A content encoding that could not be decoded.
    pub encoding: Option<String>,
    /// The last URL, if there were redirects.
    pub redirected_to: Option<String>,
    pub body: Vec<u8>,
    /// True if the body was longer than the limit.
    pub truncated: bool,
    /// Something that the model should know about its request.
    pub note: Option<String>,
}

impl Page {
    /// Returns the text for the model. With `raw`, HTML is left as it is. Returns `None` after a cancel.
    pub(super) fn render(&self, raw: bool, cancel: &Cancel) -> Option<String> {
        let text = self.text(raw, cancel)?;
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
        if let Some(note) = &self.note {
            let _ = writeln!(output, "({note})");
        }
        Some(output + "\n" + text)
    }

    fn text(&self, raw: bool, cancel: &Cancel) -> Option<Cow<'_, str>> {
        if self.body.is_empty() {
            return Some(Cow::Borrowed(""));
        }
        if let Some(encoding) = &self.encoding {
            return Some(format!("(not shown: the body is encoded as {encoding})").into());
        }
        let kind = self.media_type();
        if !is_text(&kind, &self.body) {
            return Some(format!("(not shown: {} bytes of binary content)", self.body.len()).into());
        }
        let text = decode(&self.body, self.content_type.as_deref());
        let is_html = kind == "text/html" || kind == "application/xhtml+xml";
        if !is_html || raw {
            return Some(text);
        }
        let visible = html::to_text(&text, MAX_OUTPUT + 1, cancel)?;
        Some(if visible.is_empty() { text } else { visible.into() })
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

/// Decodes the body. A body that is not UTF-8 and declares a charset of the Latin-1 family is read as
/// Latin-1, which is the only other charset that is still common.
fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    let parameters = content_type.unwrap_or_default().to_ascii_lowercase();
    let charset = parameters.split_once("charset=").map(|(_, charset)| charset.trim_matches(['"', ' ', ';']));
    let latin = matches!(charset, Some("iso-8859-1" | "latin1" | "windows-1252" | "us-ascii"));
    match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if latin => body.iter().map(|&byte| char::from(byte)).collect(),
        Err(_) => String::from_utf8_lossy(body),
    }
}

/// Returns the part of the text that the model reads, and whether that is less than all of it.
fn truncate(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(MAX_OUTPUT.min(text.len()));
    (&text[..end], end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: &str, body: impl Into<Vec<u8>>) -> Page {
        Page {
            status: "200 OK".into(),
            content_type: Some(content_type.into()),
            body: body.into(),
            ..Page::default()
        }
    }

    fn render(page: &Page, raw: bool) -> String {
        page.render(raw, &Cancel::new()).unwrap()
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
    fn latin_1_is_decoded_if_it_is_declared() {
        assert!(
            render(&page("text/plain; charset=ISO-8859-1", b"caf\xe9".to_vec()), false).ends_with("café")
        );
        assert!(render(&page("text/plain", b"caf\xe9".to_vec()), false).ends_with("caf\u{FFFD}"));
        assert!(render(&page("text/plain; charset=iso-8859-1", "café"), false).ends_with("café"));
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

    #[test]
    fn a_cancelled_conversion_ends() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert_eq!(page("text/html", "<p>x</p>".repeat(10_000)).render(false, &cancel), None);
        assert_eq!(page("text/html", "<p a=b ".repeat(100_000)).render(false, &cancel), None);
    }
}
