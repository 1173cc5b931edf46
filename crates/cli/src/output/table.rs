//! Tables of aligned columns.

use std::io::{self, Write};

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells under a header.
#[derive(Debug)]
pub(crate) struct Table {
    align: Vec<Align>,
    /// Titles of several columns each, with their number, above the header.
    groups: Vec<(String, usize)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a header only.
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = (T, Align)>) -> Self {
        let (titles, align) = header
            .into_iter()
            .map(|(title, align)| (title.into(), align))
            .unzip();
        Table {
            align,
            groups: Vec::new(),
            rows: vec![titles],
        }
    }

    /// A table whose first column has words and the others numbers.
    pub(crate) fn of_numbers<T: Into<String>>(titles: impl IntoIterator<Item = T>) -> Self {
        let align = std::iter::once(Align::Left).chain(std::iter::repeat(Align::Right));
        Table::new(titles.into_iter().zip(align))
    }

    /// Titles above the header, each for a number of columns.
    pub(crate) fn grouped(mut self, groups: impl IntoIterator<Item = (String, usize)>) -> Self {
        self.groups = groups.into_iter().collect();
        self
    }

    pub(crate) fn push<T: Into<String>>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Prints it, two spaces between columns, none at the end of a line.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let mut widths = vec![0; self.align.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        if !self.groups.is_empty() {
            writeln!(out, "{}", self.group_line(&widths).trim_end())?;
        }
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), align) in row.iter().zip(&widths).zip(&self.align) {
                match align {
                    Align::Left => line += &format!("{cell:<width$}  "),
                    Align::Right => line += &format!("{cell:>width$}  "),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn group_line(&self, widths: &[usize]) -> String {
        let (mut line, mut rest) = (String::new(), widths);
        for (title, columns) in &self.groups {
            let (own, later) = rest.split_at((*columns).min(rest.len()));
            let width = own.iter().map(|it| it + 2).sum::<usize>().max(2) - 2;
            let title: String = title.chars().take(width).collect();
            line += &format!("{title:^width$}  ");
            rest = later;
        }
        line
    }
}

/// A cell that may be empty.
pub(crate) fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &Table) -> String {
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn columns_align() {
        let mut table = Table::of_numbers(["method", "MB/s"]);
        table.push(["list", "7"]);
        table.push(["automatic", "12345"]);
        assert_eq!(
            printed(&table),
            "method      MB/s\nlist           7\nautomatic  12345\n"
        );
    }

    #[test]
    fn groups_are_centred_over_their_columns() {
        let groups = [(String::new(), 1), ("long".to_owned(), 2)];
        let mut table = Table::of_numbers(["", "a", "b"]).grouped(groups);
        table.push(["x", "1000", "2000"]);
        assert_eq!(
            printed(&table),
            "      long\n      a     b\nx  1000  2000\n"
        );
    }
}
