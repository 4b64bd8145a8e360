//! Turns a response into text for the model.

use std::fmt::Write;

use super::super::MAX_OUTPUT;

/// The line width of HTML that is turned into text, in columns.
const WIDTH: usize = 100;
/// The maximum size of HTML that is turned into text, in bytes. The work grows faster than the size.
const MAX_HTML: usize = 2 * 1024 * 1024;
/// The maximum nesting of HTML that is turned into text.
const MAX_NESTING: usize = 1000;

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
    /// Returns the text for the model. With `raw`, HTML is left as it is.
    pub(super) fn render(&self, raw: bool) -> String {
        let (text, shortened) = truncate(self.text(raw));
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
        output + "\n" + &text
    }

    fn text(&self, raw: bool) -> String {
        if self.body.is_empty() {
            return String::new();
        }
        if let Some(encoding) = &self.encoding {
            return format!("(not shown: the body is encoded as {encoding})");
        }
        let kind = self.media_type();
        if !is_text(&kind, &self.body) {
            return format!("(not shown: {} bytes of binary content)", self.body.len());
        }
        let text = decode(&self.body, self.content_type.as_deref());
        let is_html = kind == "text/html" || kind == "application/xhtml+xml";
        if !is_html || raw { text } else { html_to_text(&text).unwrap_or(text) }
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
fn decode(body: &[u8], content_type: Option<&str>) -> String {
    let parameters = content_type.unwrap_or_default().to_ascii_lowercase();
    let charset = parameters.split_once("charset=").map(|(_, charset)| charset.trim_matches(['"', ' ', ';']));
    let latin = matches!(charset, Some("iso-8859-1" | "latin1" | "windows-1252" | "us-ascii"));
    match std::str::from_utf8(body) {
        Ok(text) => text.to_owned(),
        Err(_) if latin => body.iter().map(|&byte| char::from(byte)).collect(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// Returns the text of an HTML page, or `None` if it has no text or could take too long to convert.
fn html_to_text(html: &str) -> Option<String> {
    if html.len() > MAX_HTML || nesting(html) > MAX_NESTING {
        return None;
    }
    let text = html2text::config::plain()
        .link_footnotes(true)
        .no_link_wrapping()
        .allow_width_overflow()
        .string_from_read(html.as_bytes(), WIDTH)
        .ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    Some(text.trim_matches('\n').to_owned()).filter(|text| !text.trim().is_empty())
}

/// Estimates how deep the elements are nested, without parsing the page.
fn nesting(html: &str) -> usize {
    // These elements have no end tag, or it is often left out.
    const UNCLOSED: [&str; 27] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "html",
        "body",
    ];
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        let closes = tag.starts_with('/');
        let name = tag.trim_start_matches('/');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())];
        if name.is_empty() || UNCLOSED.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        deepest = deepest.max(depth);
    }
    deepest
}

fn truncate(mut text: String) -> (String, bool) {
    let end = text.floor_char_boundary(MAX_OUTPUT.min(text.len()));
    let shortened = end < text.len();
    text.truncate(end);
    (text, shortened)
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

    #[test]
    fn a_rendered_page_starts_with_status_and_headers() {
        let mut page = page("text/plain; charset=utf-8", "hello");
        assert_eq!(
            page.render(false),
            "Status: 200 OK\nContent-Type: text/plain; charset=utf-8\nContent-Length: 5\n\nhello"
        );
        page.truncated = true;
        page.status = "404 Not Found".into();
        page.redirected_to = Some("https://b.example/".into());
        assert_eq!(
            page.render(false),
            "Status: 404 Not Found\nURL: https://b.example/\nContent-Type: text/plain; charset=utf-8\n\
             Content-Length: 5\n(Response truncated due to size limit)\n\nhello"
        );
    }

    #[test]
    fn html_becomes_text_unless_raw_is_set() {
        let html = "<html><head><title>T</title><style>p{color:red}</style></head><body><h1>Head</h1>\
                    <p>One <a href='https://x.example/a'>link</a>.<script>alert(1)</script>\
                    <ul><li>first<li>second</ul></body></html>";
        let text = page("text/html; charset=UTF-8", html).render(false);
        for part in ["# Head", "One [link]", "https://x.example/a", "* first", "* second"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        for part in ["alert", "color:red", "<p>"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
        assert!(page("text/html", html).render(true).ends_with("</html>"));
        assert!(page("text/plain", html).render(false).ends_with("</html>"));
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
            let text = page(kind, body).render(false);
            assert!(text.contains("bytes of binary content"), "{kind}: {text}");
        }
        for kind in ["image/svg+xml", "application/octet-stream", "application/json", "", "nonsense"] {
            assert!(page(kind, "plain").render(false).ends_with("\n\nplain"), "{kind}");
        }
        let odd = Page { encoding: Some("br".into()), ..page("text/html", "x") };
        assert!(odd.render(false).contains("encoded as br"));
    }

    #[test]
    fn latin_1_is_decoded_if_it_is_declared() {
        assert!(page("text/plain; charset=ISO-8859-1", b"caf\xe9".to_vec()).render(false).ends_with("café"));
        assert!(page("text/plain", b"caf\xe9".to_vec()).render(false).ends_with("caf\u{FFFD}"));
        assert!(page("text/plain; charset=iso-8859-1", "café").render(false).ends_with("café"));
    }

    #[test]
    fn long_text_is_truncated_with_a_note() {
        let text = page("text/plain", "é".repeat(MAX_OUTPUT)).render(false);
        assert!(text.len() < MAX_OUTPUT + 200 && text.contains("truncated"));
    }

    #[test]
    fn malicious_html_does_not_take_long() {
        let tags =
            ["<div>", "<table><tr><td>", "<b>", "<blockquote>", "<a href=x>", "<b><p>", "<svg>", "<!--", "<"];
        crate::tools::workspace::tests::returns(move || {
            for tag in tags {
                let text = page("text/html", tag.repeat(100_000)).render(false);
                assert!(text.starts_with("Status"), "{tag}");
            }
        });
    }

    #[test]
    fn unclosed_paragraphs_do_not_count_as_nesting() {
        assert!(nesting(&"<p>x<li>y<br>".repeat(5000)) < 10);
        assert_eq!(nesting(&"<div>".repeat(7)), 7);
        assert_eq!(nesting("<div><b></b></div><div></div>"), 2);
    }
}
