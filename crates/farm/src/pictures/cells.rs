//! Rows of a histogram as the cells of a picture: eight per octave.

use std::collections::BTreeMap;

use model::rows::{EARLY_ROW, row_edges};
use report::words::several;

/// Number of histogram rows in one cell.
const ROWS_PER_CELL: usize = 4;

/// Counts by cell, from rows with their counts. Early wake-ups have no cell.
pub fn cells(rows: impl Iterator<Item = (usize, u64)>) -> BTreeMap<usize, u64> {
    let mut cells = BTreeMap::new();
    for (row, count) in rows.filter(|(row, _)| *row != EARLY_ROW) {
        let sum: &mut u64 = cells.entry((row - 1) / ROWS_PER_CELL).or_default();
        *sum = sum.saturating_add(count);
    }
    cells
}

/// The latencies of a cell in ns, the upper edge not included.
pub fn edges(cell: usize) -> (i64, i64) {
    let first = 1 + cell * ROWS_PER_CELL;
    (row_edges(first).0.0, row_edges(first + ROWS_PER_CELL - 1).1.0)
}

/// Note on samples that have no place on a logarithmic axis; `None` without any.
pub fn early_note(rows: impl Iterator<Item = (usize, u64)>) -> Option<String> {
    let counts = rows.filter(|(row, _)| *row == EARLY_ROW).map(|(_, count)| count);
    let early = counts.fold(0, u64::saturating_add);
    (early > 0).then(|| format!("{} before the time not drawn.", several(early, "wake-up", "wake-ups")))
}
