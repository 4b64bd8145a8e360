//! Tables: a row of data is a line, and one for layout keeps its lines.

use std::rc::Rc;

use htmd::{Node, element_handler::Handlers};
use markup5ever_rcdom::NodeData;

/// A line end within a paragraph, as the converter writes it.
const LINE_BREAK: &str = "  \n";

/// Returns the rows of a table. The converter's own tables have no row headings, and columns as wide as their
/// widest cell.
pub(super) fn table(handlers: &dyn Handlers, table: &Rc<Node>) -> String {
    let mut text = String::new();
    for child in table.children.borrow().iter() {
        match tag(child) {
            "thead" | "tbody" | "tfoot" => {
                child.children.borrow().iter().for_each(|row| add_row(&mut text, handlers, row));
            }
            _ => add_row(&mut text, handlers, child),
        }
    }
    format!("\n\n{}\n\n", text.trim_matches('\n'))
}

/// Adds a row, or the caption of the table.
fn add_row(text: &mut String, handlers: &dyn Handlers, row: &Rc<Node>) {
    let content = |node: &Rc<Node>| handlers.walk_children(node).content.trim().replace(LINE_BREAK, " ");
    let cells: Vec<String> = match tag(row) {
        "tr" => row.children.borrow().iter().filter(|cell| is_cell(cell)).map(content).collect(),
        _ => vec![content(row)],
    };
    if cells.iter().all(String::is_empty) {
        return;
    }
    if cells.iter().any(|cell| cell.contains('\n')) {
        let filled: Vec<String> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        *text += &format!("\n{}\n\n", filled.join("\n\n"));
    } else {
        *text += &format!("{}\n", cells.join(" | "));
    }
}

fn is_cell(node: &Rc<Node>) -> bool {
    matches!(tag(node), "td" | "th")
}

/// Returns the name of an element, or nothing for what is none.
fn tag(node: &Rc<Node>) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}
