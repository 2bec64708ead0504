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

/// Text without what a terminal acts upon: names belong to other users.
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match acts(character) {
            true => clean.extend(character.escape_unicode()),
            false => clean.push(character),
        }
    }
    clean
}

/// The same for a JSON document, whose own newlines stay: such characters stand in its strings
/// only.
pub fn harmless_json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character != '\n' && acts(character) {
            true => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    clean += &format!("\\u{unit:04x}");
                }
            }
            false => clean.push(character),
        }
    }
    clean
}

/// Whether a character controls what is around it instead of being seen: control characters (Cc),
/// format characters (Cf: direction, joining, invisible marks), and the separators of lines and
/// paragraphs.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
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

    #[test]
    fn direction_and_invisible_marks() {
        let hostile = "a\u{9b}b\u{202e}c\u{200b}d\u{2028}e\u{e0041}f\ng";
        assert_eq!(
            harmless(hostile),
            "a\\u{9b}b\\u{202e}c\\u{200b}d\\u{2028}e\\u{e0041}f\\u{a}g"
        );
        let json = harmless_json(&serde_json::to_string(hostile).unwrap());
        assert!(json.is_ascii(), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
