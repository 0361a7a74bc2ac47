//! Histograms of a run's five minutes from partial data: the samples of each, the histograms of
//! most, and that of the whole.

use std::collections::BTreeMap;

use model::rows::{RowCounts, RowSums};
use model::units::Cpu;

use crate::records::{CpuRows, SlotPeak};

/// Histograms of each slot by CPU: the given ones, if they have as many samples as the slot. `None`
/// unless their sum is exactly the whole.
///
/// With `may_lack`, a CPU's histogram of one slot may be missing, as after a kill before it was
/// written: it is the remainder of the whole.
pub fn rows_of_slots(
    slots: &[(&[SlotPeak], &BTreeMap<Cpu, RowCounts>)],
    whole: &[CpuRows],
    may_lack: bool,
) -> Option<Vec<Vec<CpuRows>>> {
    let mut left: BTreeMap<Cpu, RowCounts> = BTreeMap::new();
    for cpu in whole {
        // Two of one CPU are not a valid histogram.
        left.insert(cpu.cpu, cpu.rows.clone()).is_none().then_some(())?;
    }
    let given = |cpu: Cpu, n: u64, given: &BTreeMap<Cpu, RowCounts>| match given.get(&cpu) {
        Some(rows) if rows.total() == n => Some(rows.clone()),
        None if n == 0 => Some(RowCounts::default()),
        _ => None,
    };
    let mut sums: BTreeMap<Cpu, RowSums> = BTreeMap::new();
    for (peaks, there) in slots {
        for (cpu, rows) in peaks.iter().filter_map(|peak| Some((peak.cpu, given(peak.cpu, peak.n, there)?))) {
            sums.entry(cpu).or_default().add_all(&rows);
        }
    }
    for (cpu, sums) in &sums {
        let rest = left.get(cpu)?.without(&sums.counts())?;
        left.insert(*cpu, rest);
    }
    let mut found = Vec::new();
    for (peaks, there) in slots {
        let mut cpus = Vec::new();
        for peak in *peaks {
            let rows = match given(peak.cpu, peak.n, there) {
                Some(rows) => rows,
                None => left.insert(peak.cpu, RowCounts::default()).filter(|_| may_lack)?,
            };
            (rows.total() == peak.n).then_some(())?;
            cpus.push(CpuRows { cpu: peak.cpu, rows });
        }
        found.push(cpus);
    }
    left.values().all(RowCounts::is_empty).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Given = Vec<(Vec<SlotPeak>, BTreeMap<Cpu, RowCounts>)>;

    /// Slots of two CPUs, each with counts of three rows.
    fn made(counts: &[[[u64; 3]; 2]]) -> (Given, Vec<CpuRows>) {
        let rows = |of: &[u64; 3]| RowCounts::of_rows([(3, of[0]), (70, of[1]), (900, of[2])]);
        let mut sums = [RowSums::default(), RowSums::default()];
        let mut slots = Given::new();
        for slot in counts {
            let of = [rows(&slot[0]), rows(&slot[1])];
            of.iter().zip(&mut sums).for_each(|(rows, sums)| sums.add_all(rows));
            let cpus = [Cpu(0), Cpu(5)].into_iter();
            let peak =
                |(cpu, rows): (Cpu, &RowCounts)| SlotPeak { cpu, n: rows.total(), ..SlotPeak::default() };
            slots.push((cpus.clone().zip(&of).map(peak).collect(), cpus.zip(of).collect()));
        }
        let whole = |(cpu, sums): (Cpu, &RowSums)| CpuRows { cpu, rows: sums.counts() };
        (slots, [Cpu(0), Cpu(5)].into_iter().zip(&sums).map(whole).collect())
    }

    fn told(given: &Given, whole: &[CpuRows], may_lack: bool) -> Option<Vec<Vec<CpuRows>>> {
        let slots: Vec<_> = given.iter().map(|(peaks, rows)| (peaks.as_slice(), rows)).collect();
        rows_of_slots(&slots, whole, may_lack)
    }

    proptest! {
        #[test]
        fn what_one_slot_lacks_is_told_and_what_two_lack_is_not(
            counts in proptest::collection::vec([[1u64..50, 0..9, 0..9], [1..50, 0..9, 0..9]], 2..8),
            at in 0usize..8, is_cut: bool,
        ) {
            let (given, whole) = made(&counts);
            let wanted: Vec<Vec<CpuRows>> = given
                .iter()
                .map(|(_, rows)| {
                    let one = |(cpu, rows): (&Cpu, &RowCounts)| CpuRows { cpu: *cpu, rows: rows.clone() };
                    rows.iter().map(one).collect()
                })
                .collect();
            prop_assert_eq!(told(&given, &whole, false), Some(wanted.clone()));
            let mut lacks = given.clone();
            let at = at % given.len();
            if is_cut {
                lacks[at].1.clear();
            } else {
                let more = RowCounts::of_rows([(1, 1 + lacks[at].0[1].n)]);
                lacks[at].1.insert(Cpu(5), more);
            }
            prop_assert_eq!(told(&lacks, &whole, true), Some(wanted));
            prop_assert_eq!(told(&lacks, &whole, false), None);
            lacks[at].1.clear();
            lacks[(at + 1) % given.len()].1.clear();
            prop_assert_eq!(told(&lacks, &whole, true), None);
        }

        #[test]
        fn a_sample_that_is_elsewhere_is_found(
            counts in proptest::collection::vec([[1u64..50, 0..9, 0..9], [1..50, 0..9, 0..9]], 1..8),
            at in 0usize..8, may_lack: bool,
        ) {
            let (given, whole) = made(&counts);
            let at = at % given.len();
            let mut other = given.clone();
            // As many samples, in another row.
            let elsewhere = RowCounts::of_rows([(4, other[at].0[0].n)]);
            other[at].1.insert(Cpu(0), elsewhere);
            prop_assert_eq!(told(&other, &whole, may_lack), None);
            let mut more = given.clone();
            more[at].0[0].n += 1;
            prop_assert_eq!(told(&more, &whole, may_lack), None);
            let mut less = whole.clone();
            less.pop();
            prop_assert_eq!(told(&given, &less, may_lack), None);
            let twice = [whole.clone(), whole].concat();
            prop_assert_eq!(told(&given, &twice, may_lack), None);
        }
    }
}
