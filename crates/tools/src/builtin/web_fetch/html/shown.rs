//! Takes what is hidden out of a page, and keeps the characters of its text as they are.

use std::rc::Rc;

use htmd::Node;
use markup5ever_rcdom::NodeData;

/// Elements whose content is not the text of the page.
const NEVER_SHOWN: &[&str] = &[
    "script", "style", "title", "template", "noscript", "iframe", "noembed", "noframes", "svg", "audio",
    "video", "canvas", "object", "datalist",
];

/// The characters that the converter writes with a backslash before them, so that Markdown does not take them
/// for marks. The model reads the text as it is. It would copy the backslashes with the names.
const MARKS: &str = "\\*_`[]<>=~-+#.";

/// The first of the characters that stand for [`MARKS`] in the tree. Unicode keeps them for use within a
/// program.
const FIRST_STAND_IN: u32 = 0xFDD0;

/// Takes the elements that are not shown out of a tree, and puts characters that the converter leaves alone
/// in the place of [`MARKS`].
pub(super) fn keep_what_is_shown(tree: &Rc<Node>) {
    let mut open = vec![Rc::clone(tree)];
    while let Some(node) = open.pop() {
        node.children.borrow_mut().retain(is_shown);
        if let NodeData::Text { contents } = &node.data {
            let text: String = contents.borrow().chars().map(stand_in).collect();
            contents.replace(text.into());
        }
        open.extend(node.children.borrow().iter().cloned());
    }
}

/// Returns the text with the characters that others stand for.
pub(super) fn unescaped(text: &str) -> String {
    let mark = |c: char| MARKS.chars().nth(u32::from(c).checked_sub(FIRST_STAND_IN)? as usize);
    text.chars().map(|c| mark(c).unwrap_or(c)).collect()
}

fn stand_in(c: char) -> char {
    let number = MARKS.chars().position(|mark| mark == c);
    number.and_then(|number| char::from_u32(FIRST_STAND_IN + number as u32)).unwrap_or(c)
}

fn is_shown(node: &Rc<Node>) -> bool {
    let NodeData::Element { name, attrs, .. } = &node.data else { return true };
    let is_hidden = attrs.borrow().iter().any(|attribute| match &*attribute.name.local {
        "hidden" => true,
        "style" => {
            let style: String = attribute.value.chars().filter(|c| !c.is_whitespace()).collect();
            let style = style.to_ascii_lowercase();
            style.contains("display:none") || style.contains("visibility:hidden")
        }
        _ => false,
    });
    !is_hidden && !NEVER_SHOWN.contains(&&*name.local)
}
