//! Largest latency of each CPU over time, in finer columns than a still picture shows, for readers
//! who zoom in.

use std::collections::BTreeMap;

use model::run::Block;
use model::units::{Cpu, Nanos};

/// Limit of columns of time: 24 h in less than a minute each.
const MOST: usize = 2_400;

/// Maxima in columns of whole seconds, doubled in length when there would be too many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peaks {
    start: Option<Nanos>,
    seconds: i64,
    cpus: BTreeMap<Cpu, Vec<Option<Nanos>>>,
}

impl Peaks {
    /// Maxima since this time, the zero of the pictures, or since the first block.
    pub fn new(start: Option<Nanos>) -> Peaks {
        Peaks { start, seconds: 1, cpus: BTreeMap::new() }
    }

    /// Adds a block.
    pub fn add(&mut self, block: &Block) {
        let start = *self.start.get_or_insert(block.mono_ns);
        let Some(max) = block.max_ns else { return };
        // A wake-up of its last slot may end after it: the middle is within it for sure.
        let half = block.span_ns.map_or(Nanos::SECOND.0, |span| span.0.max(0)) / 2;
        let when = block.mono_ns.0.saturating_add(half).saturating_sub(start.0).max(0);
        while when / self.width().0 >= MOST as i64 {
            self.join_pairs();
        }
        let column = (when / self.width().0) as usize;
        let columns = self.cpus.entry(block.cpu).or_default();
        if columns.len() <= column {
            columns.resize(column + 1, None);
        }
        columns[column] = columns[column].max(Some(max));
    }

    fn join_pairs(&mut self) {
        self.seconds = self.seconds.saturating_mul(2);
        for columns in self.cpus.values_mut() {
            *columns = columns.chunks(2).map(|pair| pair.iter().copied().max().flatten()).collect();
        }
    }

    /// Copy with at most this number of values of all CPUs together.
    pub fn limited(&self, values: usize) -> Peaks {
        let mut fewer = self.clone();
        let count = |peaks: &Peaks| peaks.cpus.values().map(Vec::len).sum::<usize>();
        let longest = |peaks: &Peaks| peaks.cpus.values().map(Vec::len).max().unwrap_or(0);
        while count(&fewer) > values && longest(&fewer) > 1 {
            fewer.join_pairs();
        }
        fewer
    }

    /// Time that columns count from.
    pub fn start(&self) -> Option<Nanos> {
        self.start
    }

    /// Length of a column.
    pub fn width(&self) -> Nanos {
        Nanos(self.seconds.max(1).saturating_mul(Nanos::SECOND.0))
    }

    /// CPUs with their columns; a CPU may have fewer than others.
    pub fn cpus(&self) -> impl Iterator<Item = (Cpu, &[Option<Nanos>])> {
        self.cpus.iter().map(|(&cpu, columns)| (cpu, columns.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(second: i64, max: Option<i64>) -> Block {
        Block {
            cpu: Cpu(2),
            mono_ns: Nanos(second * Nanos::SECOND.0),
            max_ns: max.map(Nanos),
            ..Block::default()
        }
    }

    #[test]
    fn joining_columns_loses_no_maximum() {
        let mut peaks = Peaks::new(Some(Nanos(0)));
        for second in 0..86_400 {
            peaks.add(&block(second, Some(if second == 51_234 { 9_000 } else { second % 50 })));
        }
        let (cpu, columns) = peaks.cpus().next().unwrap();
        assert!(cpu == Cpu(2) && columns.len() <= MOST);
        let place = 51_234 / (peaks.width().0 / Nanos::SECOND.0) as usize;
        assert_eq!(columns[place], Some(Nanos(9_000)));
        let few = peaks.limited(100);
        assert!(few.cpus().next().unwrap().1.len() <= 100);
        assert_eq!(few.cpus().next().unwrap().1.iter().max(), Some(&Some(Nanos(9_000))));
    }

    #[test]
    fn a_wake_up_that_ends_behind_its_block_is_in_the_block() {
        let mut peaks = Peaks::new(Some(Nanos(0)));
        for second in 0..10 {
            let end = Some(Nanos((second + 1) * Nanos::SECOND.0 + 5_000_000));
            peaks.add(&Block { max_mono_ns: end, ..block(second, Some(second)) });
        }
        let columns: Vec<_> = peaks.cpus().flat_map(|(_, columns)| columns.to_vec()).collect();
        assert_eq!(columns, (0..10).map(|second| Some(Nanos(second))).collect::<Vec<_>>());
    }

    #[test]
    fn times_from_the_ends_of_the_scale_do_no_harm() {
        let mut peaks = Peaks::new(None);
        for at in [i64::MAX, i64::MIN, 0] {
            peaks.add(&Block { mono_ns: Nanos(at), max_ns: Some(Nanos(at)), ..Block::default() });
        }
        assert_eq!(peaks.cpus().count(), 1);
        peaks.add(&block(1, None));
        assert!(peaks.limited(0).cpus().all(|(_, columns)| columns.len() <= 1));
    }
}
