//! Tables of aligned columns.

use std::io::{self, Write};

/// On which side a column's cells are flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells under a header.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    align: [Align; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table with a header only.
    pub(crate) fn new(header: [(&str, Align); COLUMNS]) -> Self {
        Table {
            align: header.map(|(_, align)| align),
            rows: vec![header.map(|(title, _)| title.to_owned())],
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: [String; COLUMNS]) {
        self.rows.push(row);
    }

    /// Prints it, two spaces between columns, none at the end of a line.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), align) in row.iter().zip(widths).zip(self.align) {
                match align {
                    Align::Left => line += &format!("{cell:<width$}  "),
                    Align::Right => line += &format!("{cell:>width$}  "),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = Table::new([("way", Align::Left), ("MB/s", Align::Right)]);
        table.push(["list".into(), "7".into()]);
        table.push(["automatic".into(), "12345".into()]);
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "way         MB/s\nlist           7\nautomatic  12345\n"
        );
    }
}
