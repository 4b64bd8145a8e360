//! Turns an HTML page into text in one pass.
//!
//! The page is read as a stream of tags and text, and no tree is built from it. So the memory is in proportion
//! to the page, and the time too, whatever its markup is.

mod elements;
mod lists;
#[cfg(test)]
mod memory_tests;
mod row;
#[cfg(test)]
mod tests;
mod writer;

use html5gum::{
    Span, Tokenizer,
    emitters::callback::{Callback, CallbackEmitter, CallbackEvent},
};

use elements::{HiddenElement, Tag};
use kontekst_core::Cancel;
use writer::Writer;

/// The maximum number of attributes of one tag that are looked at.
const MAX_ATTRIBUTES: usize = 64;
/// The maximum length of an attribute that is used, in bytes.
const MAX_VALUE: usize = 2048;
/// The number of events between two looks at the cancel signal.
const EVENTS_PER_CHECK: u32 = 1024;

/// Returns the text of a page, of which everything after about `limit` bytes is left out. Returns `None` after a
/// cancel.
pub(super) fn to_text(html: &str, limit: usize, cancel: &Cancel) -> Option<String> {
    let mut writer = Writer::new(limit);
    let reader = Reader {
        writer: &mut writer,
        cancel,
        tag: Tag::default(),
        attribute: None,
        attributes: 0,
        hidden: None,
        events: 0,
    };
    let mut emitter = CallbackEmitter::new(reader);
    // The content of `script`, `style` and a few others is not markup.
    emitter.naively_switch_states(true);
    match Tokenizer::new_with_emitter(html, emitter).next() {
        None | Some(Ok(Stop::Full)) => Some(writer.finish()),
        Some(Ok(Stop::Cancelled)) => None,
    }
}

/// The reason why a page is not read to its end.
enum Stop {
    Full,
    Cancelled,
}

/// Follows the tags of a page and passes on what is visible.
struct Reader<'a> {
    writer: &'a mut Writer,
    cancel: &'a Cancel,
    /// The start tag that is being read.
    tag: Tag,
    /// The attribute whose value comes next, if it is one that counts.
    attribute: Option<Attribute>,
    /// The number of attributes of the tag so far.
    attributes: usize,
    /// The element that is not shown, while the page is inside of one.
    hidden: Option<HiddenElement>,
    events: u32,
}

#[derive(Clone, Copy)]
enum Attribute {
    Href,
    Alt,
    Style,
    Start,
}

impl Callback<Stop, ()> for Reader<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Stop> {
        self.events = self.events.wrapping_add(1);
        if self.events.is_multiple_of(EVENTS_PER_CHECK) && self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Tag::named(name);
                self.attribute = None;
                self.attributes = 0;
            }
            CallbackEvent::AttributeName { name } => self.attribute_name(name),
            CallbackEvent::AttributeValue { value } => self.attribute_value(value),
            CallbackEvent::CloseStartTag { .. } => self.start(),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } if self.hidden.is_none() => {
                self.writer.text(&String::from_utf8_lossy(value));
            }
            CallbackEvent::String { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        self.writer.is_full().then_some(Stop::Full)
    }
}

impl Reader<'_> {
    fn attribute_name(&mut self, name: &[u8]) {
        self.attributes += 1;
        self.attribute = match name {
            _ if self.attributes > MAX_ATTRIBUTES => None,
            b"href" => Some(Attribute::Href),
            b"alt" => Some(Attribute::Alt),
            b"style" => Some(Attribute::Style),
            b"start" => Some(Attribute::Start),
            b"hidden" => {
                self.tag.is_hidden = true;
                None
            }
            _ => None,
        };
    }

    fn attribute_value(&mut self, value: &[u8]) {
        let Some(attribute) = self.attribute.take().filter(|_| value.len() <= MAX_VALUE) else { return };
        let value = String::from_utf8_lossy(value);
        match attribute {
            // Of two attributes of one name the first one counts.
            Attribute::Href => self.tag.href = self.tag.href.take().or_else(|| Some(value.trim().to_owned())),
            Attribute::Alt => self.tag.alt = self.tag.alt.take().or_else(|| Some(value.trim().to_owned())),
            Attribute::Start => self.tag.start = value.trim().parse().ok(),
            Attribute::Style => {
                let style: String = value.chars().filter(|c| !c.is_whitespace()).collect();
                let style = style.to_ascii_lowercase();
                self.tag.is_hidden |= style.contains("display:none") || style.contains("visibility:hidden");
            }
        }
    }

    fn start(&mut self) {
        let tag = std::mem::take(&mut self.tag);
        if let Some(hidden) = &mut self.hidden {
            if hidden.goes_on_at_start(&tag.name) {
                return;
            }
            self.hidden = None;
        }
        if tag.is_shown() {
            self.writer.start(tag);
        } else {
            self.hidden = HiddenElement::begin(tag);
        }
    }

    fn end(&mut self, name: &[u8]) {
        let name = elements::tag_name(name);
        if let Some(hidden) = &mut self.hidden {
            match hidden.at_end(&name) {
                elements::AtEnd::Hidden => return,
                elements::AtEnd::Last => {
                    self.hidden = None;
                    return;
                }
                elements::AtEnd::Visible => self.hidden = None,
            }
        }
        self.writer.end(&name);
    }
}
