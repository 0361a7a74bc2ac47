//! Histogram text of cyclictest (`-h`, `-H`, `--histfile`), written and read.
//!
//! The text does not state its unit: it is read in microseconds, which is right unless cyclictest
//! was given `-N`. Checked by replaying the rules of rteval's cyclictest module on the output of
//! [`write()`], in both shapes: a row's first number is the bucket, the next ones the counts of its
//! CPUs, and the maxima come from `# Max Latencies:`. Every sample and the exact maxima arrive.

use std::collections::BTreeSet;

use super::micros::{self, Buckets};
use model::error::Result;
use model::run::{CpuRun, Run};
use model::units::Nanos;

/// Maximum number of buckets for which each bucket from 0 on has a row.
const DENSE_ROWS: u64 = 100_000;
/// Maximum number of counts for which each bucket from 0 on has a row.
const DENSE_COUNTS: u64 = 4_000_000;

/// Writes the run as `cyclictest -H` prints it: a column per CPU, ascending, and with several CPUs
/// their sum.
///
/// Rows run from 0 to the last bucket without a gap, for parsers that use the line's number as the
/// bucket, as in rt-tests up to 2.6. If that would be more than 100 000 rows (a maximum over
/// 100 ms) or 4 million counts, empty rows are omitted, as since 2.7. How rows become buckets is
/// described at `micros::microsecond_buckets`; overflows are those of an imported run.
///
/// # Errors
/// Wrong usage: the run has no histogram, or not one of wake-up latencies in microseconds.
pub fn write(run: &Run) -> Result<String> {
    run.require_histogram()?;
    micros::require_cyclictest(run)?;
    let columns: Vec<Buckets> = run.cpus.iter().map(micros::microsecond_buckets).collect();
    let sum = columns.len() > 1;
    let mut text = String::from("# Histogram\n");
    for bucket in rows_of(&columns, end_of(run)) {
        let counts = columns.iter().map(|column| column.get(&bucket).copied().unwrap_or(0));
        text += &format!("{bucket:06}");
        for (column, count) in with_sum(counts, sum).enumerate() {
            text += &format!("{}{count:06}", if column == 0 { ' ' } else { '\t' });
        }
        text.push('\n');
    }
    let totals = columns.iter().map(|column| column.values().fold(0, |sum: u64, &n| sum.saturating_add(n)));
    let overflows = run.cpus.iter().map(|cpu| cpu.overflows.unwrap_or(0));
    let latencies = |of: fn(&CpuRun) -> Option<Nanos>| run.cpus.iter().map(move |cpu| micros::whole(of(cpu)));
    let largest = latencies(|cpu| cpu.max_ns).max().filter(|_| sum);
    text += &comment("Total", with_sum(totals, sum).map(|n| format!("{n:09}")));
    text += &comment("Min Latencies", latencies(|cpu| cpu.min_ns).map(|n| format!("{n:05}")));
    text += &comment("Avg Latencies", latencies(|cpu| cpu.mean_ns).map(|n| format!("{n:05}")));
    text += &comment("Max Latencies", latencies(|cpu| cpu.max_ns).chain(largest).map(|n| format!("{n:05}")));
    text += &comment("Histogram Overflows", with_sum(overflows, sum).map(|n| format!("{n:05}")));
    text += "# Histogram Overflow at cycle number:\n";
    for (thread, cpu) in run.cpus.iter().enumerate() {
        text += &comment(&format!("Thread {thread}"), overflow_cycles(cpu));
    }
    text.push('\n');
    Ok(text)
}

/// The numbers, followed by their sum if it is wanted.
fn with_sum(numbers: impl Iterator<Item = u64> + Clone, wanted: bool) -> impl Iterator<Item = u64> {
    let sum = wanted.then(|| numbers.clone().fold(0u64, |sum, n| sum.saturating_add(n)));
    numbers.chain(sum)
}

fn comment(name: &str, values: impl Iterator<Item = String>) -> String {
    let mut line = format!("# {name}:");
    values.for_each(|value| {
        line.push(' ');
        line += &value;
    });
    line.push('\n');
    line
}

/// Last bucket of the histogram to which an imported run was cut: overflows are beyond this one.
fn end_of(run: &Run) -> Option<u64> {
    let end = run.cpus.iter().filter_map(|cpu| cpu.overflows_from_ns).min()?;
    u64::try_from(end.0 / Nanos::MICRO.0 - 1).ok()
}

fn rows_of(columns: &[Buckets], end: Option<u64>) -> Box<dyn Iterator<Item = u64>> {
    let mut used: BTreeSet<u64> = columns.iter().flat_map(|column| column.keys().copied()).collect();
    used.extend(end);
    match used.last() {
        Some(&last) if last < DENSE_ROWS && (last + 1) * columns.len() as u64 <= DENSE_COUNTS => {
            Box::new(0..=last)
        }
        _ => Box::new(used.into_iter()),
    }
}

/// Overflows with a known cycle, and after a second `#` the number of the others.
fn overflow_cycles(cpu: &CpuRun) -> impl Iterator<Item = String> {
    let listed: Vec<String> = cpu.listed_overflows().map(|cycle| format!("{cycle:05}")).collect();
    let others = cpu.overflows.unwrap_or(0).saturating_sub(listed.len() as u64);
    listed.into_iter().chain((others > 0).then(|| format!("# {others:05} others")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::{fixture, import_one, run_of, sample_sets};
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_those_of_cyclictest() {
        // Output of rt-tests 2.4 without its preamble; the empty rows at the end show where the
        // overflows begin.
        let captured = fixture("smp-H60.txt");
        let text = captured.split_once('\n').unwrap().1;
        assert_eq!(write(&import_one(captured)).unwrap(), text);
        let single = fixture("single-h20.txt");
        let comments: String =
            single.split_inclusive('\n').filter(|line| line.starts_with("# ")).skip(2).collect();
        assert!(write(&import_one(single)).unwrap().contains(&comments));
    }

    #[test]
    fn a_single_cpu_has_no_sum() {
        let text = write(&run_of(&[vec![1_500, 1_600, 3_000]])).unwrap();
        assert_eq!(
            text,
            "# Histogram\n000000 000000\n000001 000002\n000002 000000\n000003 000001\n# Total: 000000003\n\
             # Min Latencies: 00001\n# Avg Latencies: 00002\n# Max Latencies: 00003\n\
             # Histogram Overflows: 00000\n# Histogram Overflow at cycle number:\n# Thread 0:\n\n"
        );
    }

    #[test]
    fn long_tails_leave_empty_rows_out() {
        let text = write(&run_of(&[vec![5_000, 10_000_000_000], vec![-7_000, 5_000]])).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            rows,
            [
                "000000 000000\t000001\t000001",
                "000005 000001\t000001\t000002",
                "10000000 000001\t000000\t000001",
                ""
            ]
        );
        let back = import_one(&text);
        assert_eq!(back.cpus[0].max_ns, Some(Nanos(10_000_000_000)));
        assert_eq!(back.cpus[1].min_ns, Some(Nanos(-7_000)));
    }

    const CASES: u32 = if option_env!("ONBEAT_NIGHT").is_some() { 256 } else { 48 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]
        #[test]
        fn counts_and_extremes_survive_the_round_trip(sets in sample_sets()) {
            let run = run_of(&sets);
            let back = import_one(&write(&run).unwrap());
            prop_assert_eq!(back.check(), Ok(()));
            prop_assert_eq!(back.cpus.len(), run.cpus.len());
            for (there, here) in back.cpus.iter().zip(&run.cpus) {
                prop_assert_eq!((there.cycles, there.overflows), (here.cycles, None));
                let close = |a: Option<Nanos>, b: Option<Nanos>| (0..1000).contains(&(b.unwrap() - a.unwrap()).0);
                prop_assert!(there.min_ns.is_none() || close(there.min_ns, here.min_ns));
                prop_assert!(close(there.max_ns, here.max_ns));
            }
            // Once in microseconds, a further conversion loses nothing.
            prop_assert_eq!(import_one(&write(&back).unwrap()), back);
        }
    }
}
