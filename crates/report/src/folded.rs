//! Tables whose cells are folded to the width of the terminal.

use std::fmt::Write;

use crate::palette::{BOLD, Palette, Style};

/// Column: its heading, its least width, and its cells.
pub struct FoldedColumn {
    pub head: &'static str,
    pub least: usize,
    pub cells: Vec<String>,
}

/// Writes the columns that have content; `style` is that of each row.
pub fn write_columns(
    page: &mut String,
    mut columns: Vec<FoldedColumn>,
    width: usize,
    style: &dyn Fn(usize) -> Style,
    palette: Palette,
) {
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    let widths = widths(&columns, width);
    let heads: Vec<String> = columns.iter().map(|column| column.head.to_owned()).collect();
    row(page, &heads, &widths, &|line| palette.paint(BOLD, line));
    for at in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let cells: Vec<String> = columns.iter().map(|column| column.cells[at].clone()).collect();
        row(page, &cells, &widths, &|line| palette.paint(style(at), line));
    }
}

/// Width of the widest cell of each column, reduced from the widest on until all fit.
fn widths(columns: &[FoldedColumn], width: usize) -> Vec<usize> {
    let natural = |column: &FoldedColumn| {
        let cells = column.cells.iter().map(|cell| cell.chars().count());
        cells.chain([column.head.len()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = columns.iter().map(natural).collect();
    loop {
        let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let slack = |at: &usize| widths[*at].saturating_sub(columns[*at].least);
        let widest = (0..widths.len()).max_by_key(slack);
        match widest.filter(|at| total > width && slack(at) > 0) {
            Some(at) => widths[at] -= 1,
            None => return widths,
        }
    }
}

/// Row of as many lines as its longest cell takes.
fn row(page: &mut String, cells: &[String], widths: &[usize], paint: &dyn Fn(&str) -> String) {
    let cells: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, &width)| folded(cell, width)).collect();
    for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
        let mut text = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(text, "{:<width$}  ", cell.get(line).map_or("", String::as_str));
        }
        let _ = writeln!(page, "{}", paint(text.trim_end()));
    }
}

/// Cell in lines: broken after blanks and commas, and elsewhere if there are none.
fn folded(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([' ', ',']) {
        let length = word.trim_end().chars().count();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + length > width {
            lines.push(String::new());
        }
        for c in word.chars() {
            let full = lines.last().is_some_and(|line| line.chars().count() >= width);
            if full && c != ' ' {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut().filter(|_| !full || c != ' ') {
                line.push(c);
            }
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_fold_at_commas_and_anywhere_if_need_be() {
        assert_eq!(folded("0-3,32-35 *", 5), ["0-3,", "32-35", "*"]);
        assert_eq!(folded("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(folded("", 3), [""]);
    }
}
