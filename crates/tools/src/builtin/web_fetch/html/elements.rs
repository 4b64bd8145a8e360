//! Facts about HTML elements: those that are never shown, and the ends of hidden ones.

/// The maximum length of a tag name that is kept, in bytes. The longest name of HTML has ten.
const MAX_NAME: usize = 16;

/// Elements whose content is not the text of the page.
const NEVER_SHOWN: &[&str] = &[
    "script", "style", "title", "template", "noscript", "iframe", "noembed", "noframes", "svg", "audio",
    "video", "canvas", "object", "datalist",
];

/// Elements that have no content and no end tag.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];

/// Elements whose end tag may be left out.
const OPTIONAL_END: &[&str] =
    &["p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup"];

/// A start tag, with the attributes that count.
#[derive(Debug, Default)]
pub(super) struct Tag {
    pub(crate) name: String,
    pub(crate) href: Option<String>,
    pub(crate) alt: Option<String>,
    /// The number of the first item of an ordered list.
    pub(crate) start: Option<i64>,
    pub(crate) is_hidden: bool,
}

impl Tag {
    pub(super) fn named(name: &[u8]) -> Self {
        Self { name: tag_name(name), ..Self::default() }
    }

    pub(super) fn is_shown(&self) -> bool {
        !self.is_hidden && !NEVER_SHOWN.contains(&self.name.as_str())
    }
}

/// Returns the name as text. A name that is too long for any element is cut.
pub(super) fn tag_name(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]).into_owned()
}

/// An element that is not shown, from its start tag on.
pub(super) struct HiddenElement {
    name: String,
    /// The number of elements that were opened in it and must be closed before it ends: those of its own name,
    /// or, if its end tag may be left out, all that need one.
    depth: usize,
}

/// The meaning of an end tag in a hidden element.
pub(super) enum AtEnd {
    /// It belongs to something in the element.
    Hidden,
    /// It ends the element.
    Last,
    /// It ends an element around the hidden one, which has no end tag of its own.
    Visible,
}

impl HiddenElement {
    /// Returns the element of a start tag, or `None` if it has no content that could be hidden.
    pub(super) fn begin(tag: Tag) -> Option<Self> {
        let has_content = !VOID.contains(&tag.name.as_str());
        has_content.then_some(Self { name: tag.name, depth: 0 })
    }

    fn may_lack_its_end(&self) -> bool {
        OPTIONAL_END.contains(&self.name.as_str())
    }

    /// Returns true if a start tag belongs to the element, and false if the element ends before it.
    pub(super) fn goes_on_at_start(&mut self, name: &str) -> bool {
        if self.may_lack_its_end() {
            if name == self.name && self.depth == 0 {
                return false;
            }
            self.depth += usize::from(!VOID.contains(&name) && !OPTIONAL_END.contains(&name));
        } else {
            self.depth += usize::from(name == self.name);
        }
        true
    }

    pub(super) fn at_end(&mut self, name: &str) -> AtEnd {
        let is_own = name == self.name;
        if is_own && self.depth == 0 {
            return AtEnd::Last;
        }
        if self.may_lack_its_end() && !OPTIONAL_END.contains(&name) && !VOID.contains(&name) {
            if self.depth == 0 {
                return AtEnd::Visible;
            }
            self.depth -= 1;
        } else if is_own && !self.may_lack_its_end() {
            self.depth -= 1;
        }
        AtEnd::Hidden
    }
}
