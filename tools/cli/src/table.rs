// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text in columns.

use std::fmt::{self, Display, Write};

/// Rows of cells below a head.
pub struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(head: &'static [&'static str]) -> Self {
        Self {
            head,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.head.len());
        self.rows
            .push(cells.iter().map(|cell| harmless(cell)).collect());
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head: Vec<String> = self.head.iter().map(|&cell| cell.into()).collect();
        let lines = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| {
            lines()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for line in lines() {
            let mut text = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                write!(text, "{cell:<width$}  ")?;
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// Text without control characters: names belong to other users and must not drive the terminal.
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => clean.extend(character.escape_default()),
            false => clean.push(character),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_hostile_names() {
        let mut table = Table::new(&["ID", "NAME"]);
        table.row(["1".into(), "\\x\u{1b}[2J".into()]);
        table.row(["1000".into(), "é".into()]);
        assert_eq!(
            table.to_string(),
            "ID    NAME\n1     \\x\\u{1b}[2J\n1000  é\n"
        );
    }
}
