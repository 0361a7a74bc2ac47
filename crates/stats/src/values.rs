//! Values in the order of time, read from a compact column: as plain numbers, millions of them
//! would take four times the memory.

use std::ops::Range;

use model::column::Column;

/// Number of values that are read at once.
const CHUNK: usize = 1 << 12;
/// Number of sums that are added up in parallel, because each waits for its last addition.
const BESIDE: usize = 4;

/// Values of a list, or of a part of it, with or without a gap.
#[derive(Clone, Copy, Debug)]
pub struct SeriesValues<'a> {
    list: ListedValues<'a>,
    from: usize,
    /// Number of values before the gap.
    before: usize,
    /// Length of the gap.
    gap: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
enum ListedValues<'a> {
    Real(&'a [f64]),
    Whole(&'a Column),
}

impl<'a> From<&'a Column> for SeriesValues<'a> {
    fn from(all: &'a Column) -> SeriesValues<'a> {
        SeriesValues { list: ListedValues::Whole(all), from: 0, before: all.len(), gap: 0, len: all.len() }
    }
}

impl<'a> From<&'a [f64]> for SeriesValues<'a> {
    fn from(all: &'a [f64]) -> SeriesValues<'a> {
        SeriesValues { list: ListedValues::Real(all), from: 0, before: all.len(), gap: 0, len: all.len() }
    }
}

impl<'a> From<&'a Vec<f64>> for SeriesValues<'a> {
    fn from(all: &'a Vec<f64>) -> SeriesValues<'a> {
        SeriesValues::from(&all[..])
    }
}

impl<'a, const N: usize> From<&'a [f64; N]> for SeriesValues<'a> {
    fn from(all: &'a [f64; N]) -> SeriesValues<'a> {
        SeriesValues::from(&all[..])
    }
}

impl<'a> SeriesValues<'a> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Values at the given places.
    pub fn part(&self, places: Range<usize>) -> SeriesValues<'a> {
        let passed = if places.start >= self.before { self.gap } else { 0 };
        SeriesValues {
            from: self.from + passed + places.start,
            before: if passed > 0 { places.len() } else { self.before - places.start.min(self.before) },
            gap: self.gap - passed,
            len: places.len(),
            ..*self
        }
    }

    /// Values before a place, and from there on.
    pub fn split_at(&self, at: usize) -> (SeriesValues<'a>, SeriesValues<'a>) {
        (self.part(0..at), self.part(at..self.len))
    }

    /// All values but those at the given places; `self` must have no gap.
    pub fn without(&self, places: Range<usize>) -> SeriesValues<'a> {
        debug_assert_eq!(self.gap, 0);
        let (before, gap) = (places.start, places.len());
        SeriesValues { before, gap, len: self.len - gap, ..*self }
    }

    /// Appends the values at the given places.
    pub fn read(&self, places: Range<usize>, into: &mut Vec<f64>) {
        let edge = self.before.clamp(places.start, places.end);
        for (part, gap) in [(places.start..edge, 0), (edge..places.end, self.gap)] {
            let part = part.start + self.from + gap..part.end + self.from + gap;
            match self.list {
                ListedValues::Real(all) => into.extend_from_slice(&all[part]),
                ListedValues::Whole(all) => all.read(part, into, |value| value as f64),
            }
        }
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = f64> + use<'a> {
        let values = *self;
        in_chunks(self.len, move |places, into| values.read(places, into))
    }

    /// All values as a vector; for short lists.
    pub fn to_vec(&self) -> Vec<f64> {
        let mut all = Vec::with_capacity(self.len);
        self.read(0..self.len, &mut all);
        all
    }

    /// Sums of the products of two values about a centre, at distances from 0 to `lags`.
    pub fn products(&self, centre: f64, lags: usize) -> Vec<f64> {
        let mut sums = vec![0.0; lags + 1];
        let mut near: Vec<f64> = Vec::with_capacity(CHUNK + lags);
        for from in (0..self.len).step_by(CHUNK) {
            near.clear();
            self.read(from..(from + CHUNK + lags).min(self.len), &mut near);
            near.iter_mut().for_each(|value| *value -= centre);
            for (k, sums) in sums.chunks_mut(BESIDE).enumerate() {
                add_products(&near, k * BESIDE, sums);
            }
        }
        sums
    }
}

/// Adds the products of each value of a chunk with later ones, at distances from `apart` on.
fn add_products(near: &[f64], apart: usize, sums: &mut [f64]) {
    let pairs = |apart: usize| near.len().saturating_sub(apart).min(CHUNK);
    let mut done = 0;
    if let [a, b, c, d] = sums {
        done = pairs(apart + 3);
        let later = near[apart.min(near.len())..].windows(BESIDE);
        for (value, later) in near.iter().zip(later).take(done) {
            *a += value * later[0];
            *b += value * later[1];
            *c += value * later[2];
            *d += value * later[3];
        }
    }
    for (more, sum) in sums.iter_mut().enumerate() {
        (done..pairs(apart + more)).for_each(|at| *sum += near[at] * near[at + apart + more]);
    }
}

/// Iterates over `len` numbers in order, which are read a chunk at a time.
pub fn in_chunks(len: usize, read: impl Fn(Range<usize>, &mut Vec<f64>)) -> impl Iterator<Item = f64> {
    let (mut chunk, mut at, mut next) = (Vec::new(), 0, 0);
    std::iter::from_fn(move || {
        if at == chunk.len() {
            chunk.clear();
            read(next..(next + CHUNK).min(len), &mut chunk);
            (at, next) = (0, (next + CHUNK).min(len));
        }
        at += 1;
        chunk.get(at - 1).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn parts_are_those_of_a_list(seed in 1i64..99, n in 0usize..20_000, ends: [u16; 4], lags in 0usize..12) {
            let list: Vec<f64> = (0..n as i64).map(|at| (at * at * seed % 70_001) as f64).collect();
            let mut column = Column::default();
            list.iter().for_each(|&value| column.push(value as i64));
            let range = |a: u16, b: u16, n: usize| {
                let (a, b) = (usize::from(a) % (n + 1), usize::from(b) % (n + 1));
                a.min(b)..a.max(b)
            };
            let cut = range(ends[0], ends[1], n);
            let rest = [&list[..cut.start], &list[cut.end..]].concat();
            let part = range(ends[2], ends[3], rest.len());
            for all in [SeriesValues::from(&list), SeriesValues::from(&column)] {
                let whole: Vec<f64> = all.without(cut.clone()).iter().collect();
                prop_assert_eq!(&whole, &rest);
                let found = all.without(cut.clone()).part(part.clone());
                prop_assert_eq!(found.iter().collect::<Vec<f64>>(), &rest[part.clone()]);
                let (x, centre) = (&rest[part.clone()], 17.5);
                let of = |apart: usize| -> f64 {
                    let later = x.get(apart..).unwrap_or_default();
                    let products = x.iter().zip(later).map(|(a, b)| (a - centre) * (b - centre));
                    products.fold(0.0, |sum, one| sum + one)
                };
                let expected: Vec<f64> = (0..=lags).map(of).collect();
                prop_assert_eq!(found.products(centre, lags), expected, "to the last bit");
            }
        }
    }
}
