//! Tables on the terminal.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr as _;

use super::printable::printable;

/// A table of left-aligned columns with two spaces between them.
#[derive(Clone, Debug)]
pub struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub fn new(headings: [&str; COLUMNS]) -> Self {
        Self { rows: vec![headings.map(str::to_owned)] }
    }

    /// Adds a row. Each cell becomes one line: its escape sequences are removed, and each run of white space
    /// becomes one space.
    pub fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| printable(&cell).split_whitespace().collect::<Vec<_>>().join(" ")));
    }

    /// Writes the table, each column as wide as its widest cell.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                line.push_str(cell);
                // `{:<w$}` would count characters, but 日 takes two cells of a terminal.
                line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        let mut table = Table::new(["", "NAME", "NOTE"]);
        table.row(["*".to_owned(), "日本".to_owned(), "x".to_owned()]);
        table.row([String::new(), "abcdefg".to_owned(), "two\nlines\x1b[31m".to_owned()]);
        table.row([String::new(), "é".to_owned(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        expect![[r#"
               NAME     NOTE
            *  日本     x
               abcdefg  two lines
               é
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
