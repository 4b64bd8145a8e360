//! Tables, fitted to the width of the terminal.

use unicode_width::UnicodeWidthStr as _;

use crate::cli::output::Palette;

use super::{flow::Flow, inline::Inline, style::Style};

/// The columns that a cell gets at least. If the terminal is too narrow for that, each row is a list of its cells.
const MIN_CELL_WIDTH: usize = 6;
const SEPARATOR: &str = " │ ";
const SEPARATOR_WIDTH: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alignment {
    Left,
    Center,
    Right,
}

/// Returns true if the second row of a table says that it is one: as many cells as the first has, of hyphens.
pub(super) fn is_table(rows: &[String]) -> bool {
    let [header, delimiter, ..] = rows else { return false };
    alignments(delimiter).is_some_and(|alignments| alignments.len() == cells(header).len())
}

/// Formats a table whose second row has been checked by [`is_table`]. No line is wider than `width`, unless it is 0.
pub(super) fn format_table(rows: &[String], width: usize, palette: Palette) -> Vec<String> {
    let alignments = alignments(&rows[1]).unwrap_or_default();
    let columns = alignments.len();
    let table: Vec<Vec<String>> = (0..rows.len())
        .filter(|number| *number != 1)
        .map(|number| {
            let mut row: Vec<String> = cells(&rows[number]).into_iter().map(str::to_owned).collect();
            // The last column shows the cells that are too many.
            if row.len() > columns {
                row[columns - 1] = row[columns - 1..].join(" | ");
            }
            row.resize(columns, String::new());
            row
        })
        .collect();
    let styled = |cell: &str, width, style| format_cell(cell, width, style, palette);
    let natural = |column: usize| {
        let cells = table.iter().map(|row| styled(&row[column], 0, Style::PLAIN));
        cells.map(|lines| lines.iter().map(|line| visible_width(line)).max().unwrap_or(0)).max().unwrap_or(0)
    };
    let natural: Vec<usize> = (0..columns).map(natural).collect();
    let room = if width == 0 { usize::MAX } else { width.saturating_sub((columns - 1) * SEPARATOR_WIDTH) };
    if room / columns < MIN_CELL_WIDTH.min(natural.iter().copied().max().unwrap_or(0)) {
        return as_lists(&table, width, palette);
    }
    let widths = fit(&natural, room);
    let mut lines = Vec::new();
    for (number, row) in table.iter().enumerate() {
        let style = if number == 0 { Style::BOLD } else { Style::PLAIN };
        let cells: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, width)| styled(cell, *width, style)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        lines.extend((0..height).map(|line| format_line(&cells, line, &widths, &alignments, palette)));
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(palette.dim(&rule.join("─┼─")));
        }
    }
    lines
}

fn format_line(
    cells: &[Vec<String>],
    number: usize,
    widths: &[usize],
    alignments: &[Alignment],
    palette: Palette,
) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let text = cell.get(number).map_or("", |text| text);
        let space = width.saturating_sub(visible_width(text));
        let before = match alignments[column] {
            Alignment::Left => 0,
            Alignment::Center => space / 2,
            Alignment::Right => space,
        };
        if column > 0 {
            line.push_str(&palette.dim(SEPARATOR));
        }
        if column + 1 == cells.len() && text.is_empty() {
            break;
        }
        line.extend(std::iter::repeat_n(' ', before));
        line.push_str(text);
        if column + 1 < cells.len() {
            line.extend(std::iter::repeat_n(' ', space - before));
        }
    }
    line
}

/// Formats each row as a list of its cells, for a terminal that is too narrow for the columns.
fn as_lists(table: &[Vec<String>], width: usize, palette: Palette) -> Vec<String> {
    let mut lines = Vec::new();
    let Some((header, rows)) = table.split_first() else { return lines };
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            lines.push(palette.dim("──"));
        }
        for (name, cell) in header.iter().zip(row) {
            let mut flow = Flow::narrow(width, palette);
            write_inline(name, Style::BOLD, &mut flow);
            flow.text(Style::BOLD, ": ");
            write_inline(cell, Style::PLAIN, &mut flow);
            flow.end_line();
            lines.extend(flow.take().lines().map(str::to_owned));
        }
    }
    lines
}

fn write_inline(text: &str, style: Style, flow: &mut Flow) {
    let mut inline = Inline::new(style);
    inline.push(&text.replace("\\|", "|"), flow);
    inline.finish(flow);
}

fn format_cell(cell: &str, width: usize, style: Style, palette: Palette) -> Vec<String> {
    let mut flow = Flow::narrow(width, palette);
    write_inline(cell, style, &mut flow);
    flow.end_line();
    flow.take().lines().map(str::to_owned).collect()
}

/// Makes the widest columns narrower until all fit into `room`.
fn fit(natural: &[usize], room: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
    while excess > 0 {
        let widest = widths.iter().copied().max().unwrap_or(0);
        let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(1);
        let count = widths.iter().filter(|width| **width == widest).count();
        let step = (widest - next).min(excess.div_ceil(count)).max(1);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            let less = step.min(excess);
            *width -= less;
            excess -= less;
        }
        if widest <= 1 {
            break;
        }
    }
    widths
}

/// Splits a row at the bars that are not escaped.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = Vec::new();
    let (mut begin, mut is_escaped) = (0, false);
    for (at, c) in row.char_indices() {
        if c == '|' && !is_escaped {
            cells.push(row[begin..at].trim());
            begin = at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    if begin < row.len() {
        cells.push(row[begin..].trim());
    }
    cells
}

fn alignments(row: &str) -> Option<Vec<Alignment>> {
    let alignment = |cell: &str| {
        let hyphens = cell.trim_start_matches(':').trim_end_matches(':');
        let is_valid =
            !hyphens.is_empty() && hyphens.chars().all(|c| c == '-') && cell.len() - hyphens.len() <= 2;
        is_valid.then(|| match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Alignment::Center,
            (false, true) => Alignment::Right,
            _ => Alignment::Left,
        })
    };
    let alignments: Option<Vec<_>> = cells(row).into_iter().map(alignment).collect();
    alignments.filter(|alignments| !alignments.is_empty())
}

/// Returns the columns of a line that contains attributes of the palette.
pub(super) fn visible_width(line: &str) -> usize {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().width();
    let after_attribute = |part: &str| part.split_once('m').map_or(0, |(_, text)| text.width());
    first + parts.map(after_attribute).sum::<usize>()
}
