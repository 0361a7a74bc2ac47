//! Tables with aligned columns: the first row is the head, the first column holds names.

use std::fmt::Write;

use crate::palette::{BOLD, Palette};

/// Writes the rows, which have as many cells as the head; names to the left, the rest to the right.
pub fn write_rows<S: AsRef<str>>(page: &mut String, rows: &[impl AsRef<[S]>], palette: Palette) {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let length = |row: &[S], at: usize| row[at].as_ref().chars().count();
    let widest = |at: usize| rows.iter().map(|row| length(row.as_ref(), at)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (at, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let cell = cell.as_ref();
            let _ = if at == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
        }
        let line = line.trim_end();
        let _ = writeln!(page, "{}", if number == 0 { palette.paint(BOLD, line) } else { line.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_to_the_left_and_numbers_to_the_right() {
        let mut page = String::new();
        write_rows(&mut page, &[["name", "n"], ["a", "100"]], Palette(false));
        write_rows::<&str>(&mut page, &[] as &[[&str; 0]], Palette(false));
        assert_eq!(page, "name    n\na     100\n");
    }
}
