//! Turns HTML pages into Markdown, in a process with limits.

mod shown;
mod table;
#[cfg(test)]
mod tests;

use std::{io, path::Path, thread};

use htmd::{
    Element, HtmlToMarkdown,
    element_handler::{HandlerResult, Handlers},
    options::Options,
};

use kontekst_core::Cancel;
use kontekst_sandbox::{LimitedError, LimitedWork};

use crate::builtin::{MAX_OUTPUT, failure::Failure};

/// The role of an executable that converts.
const ROLE: &str = "convert-page";

/// The address space of the process: of the executable, its stack and a page of a few elements.
const MEMORY: u64 = 1 << 30;

/// The address space for each byte of the page. Pages with text take 20 to 80 bytes for each, and those that
/// consist of tags take 160.
const MEMORY_PER_BYTE: u64 = 200;

/// The processor time. A page of 1 MB takes a fifth of a second.
const CPU_SECONDS: u64 = 5;

/// The stack of the conversion, which calls itself for each element within another one.
const STACK: usize = 512 << 20;

/// Returns a page as Markdown, of which everything after about [`MAX_OUTPUT`] bytes is left out. `launcher`
/// is this program.
pub(super) fn in_process(html: &str, launcher: Option<&Path>, cancel: &Cancel) -> Result<String, Failure> {
    let failed = |reason: String| {
        Failure::other(format!("the page cannot be turned into text: {reason}; `raw` returns its HTML"))
    };
    let launcher = launcher.ok_or_else(|| failed("this program does not know where it is".to_owned()))?;
    let memory = MEMORY.saturating_add(MEMORY_PER_BYTE.saturating_mul(html.len() as u64));
    let work = LimitedWork { launcher, role: ROLE, memory, cpu_seconds: CPU_SECONDS };
    let markdown = work.run(html.as_bytes().to_vec(), cancel).map_err(|error| match error {
        LimitedError::Cancelled => Failure::cancelled(),
        LimitedError::Stopped(reason) | LimitedError::Failed(reason) => failed(reason),
    })?;
    Ok(String::from_utf8_lossy(&markdown).into_owned())
}

/// The work of the role.
///
/// # Errors
///
/// There is no memory for the stack, or the converter panics.
pub fn page_as_markdown(html: &[u8]) -> io::Result<Vec<u8>> {
    let convert = || {
        let mut markdown = to_markdown(&String::from_utf8_lossy(html));
        // One character more than is shown, so that the other side sees that there was more.
        markdown.truncate(markdown.floor_char_boundary(MAX_OUTPUT + 4));
        markdown.into_bytes()
    };
    thread::scope(|scope| {
        let converted = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, convert)?;
        converted.join().map_err(|_| io::Error::other("the converter panicked"))
    })
}

/// Returns all of a page as Markdown.
pub(super) fn to_markdown(html: &str) -> String {
    let options = Options { ul_bullet_spacing: 1, ol_number_spacing: 1, ..Options::default() };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .add_handler(vec!["a"], |handlers: &dyn Handlers, a: Element<'_>| {
            Some(HandlerResult::from(link(handlers, &a)))
        })
        .add_handler(vec!["img"], |_: &dyn Handlers, img: Element<'_>| image(&img).map(HandlerResult::from))
        .add_handler(vec!["table"], |handlers: &dyn Handlers, table: Element<'_>| {
            Some(HandlerResult::from(table::table(handlers, table.node)))
        })
        .build();
    let tree = converter.html_to_tree(html).expect("the page is in memory");
    shown::keep_what_is_shown(&tree);
    let markdown = shown::unescaped(&converter.tree_to_markdown(&tree));
    // The converter puts two spaces before a line break in a paragraph.
    markdown.lines().map(|line| line.trim_end_matches(' ')).collect::<Vec<_>>().join("\n")
}

/// Returns a link with its address, if it leads to another place and has a text.
fn link(handlers: &dyn Handlers, element: &Element<'_>) -> String {
    let content = handlers.walk_children(element.node).content;
    let href = attribute(element, "href").unwrap_or_default();
    let scheme = href.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let leads_on = !href.is_empty() && !href.starts_with('#') && scheme != "javascript" && scheme != "data";
    if !leads_on || content.trim().is_empty() {
        return content;
    }
    format!("[{content}]({href})")
}

/// Returns the text that stands for an image.
fn image(element: &Element<'_>) -> Option<String> {
    let text = attribute(element, "alt").filter(|text| !text.is_empty())?;
    Some(format!("[{text}]"))
}

/// Returns the value of an attribute, without white space around it.
fn attribute(element: &Element<'_>, name: &str) -> Option<String> {
    let attribute = element.attrs.iter().find(|attribute| &*attribute.name.local == name)?;
    Some(attribute.value.trim().to_owned())
}
