//! Samples by rows of a heat map, which are a few dozen: a sorted list finds a row faster than a
//! tree.

/// Two ends of a row.
type Row = (i64, i64);

/// Counts of rows, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatCounts(Vec<(Row, u64)>);

impl HeatCounts {
    /// Adds to a row.
    pub fn add(&mut self, row: Row, n: u64) {
        match self.place(row) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(n),
            Err(at) => self.0.insert(at, (row, n)),
        }
    }

    fn place(&self, row: Row) -> Result<usize, usize> {
        self.0.binary_search_by(|(there, _)| there.cmp(&row))
    }

    /// True if the row has a count.
    pub fn has(&self, row: Row) -> bool {
        self.place(row).is_ok()
    }

    /// Count of a row; 0 if it has none.
    #[cfg(test)]
    pub fn of(&self, row: Row) -> u64 {
        self.place(row).map_or(0, |at| self.0[at].1)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// Rows with their counts, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Row, u64)> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_add_up() {
        let mut counts = HeatCounts::default();
        for (row, n) in [((5, 9), 1), ((0, 5), 2), ((5, 7), 3), ((5, 9), u64::MAX)] {
            counts.add(row, n);
        }
        assert_eq!(counts.iter().collect::<Vec<_>>(), [((0, 5), 2), ((5, 7), 3), ((5, 9), u64::MAX)]);
        assert_eq!(
            (counts.rows(), counts.has((5, 7)), counts.has((5, 8)), counts.of((0, 4))),
            (3, true, false, 0)
        );
    }
}
