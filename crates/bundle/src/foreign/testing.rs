//! Helpers for the tests of the formats: runs from samples, and the captured files.

use model::histogram::{Counts, bucket_of, buckets_of};
use model::run::{CpuRun, Run};
use model::units::{Cpu, Nanos};
use proptest::prelude::*;

/// A run with a CPU per list of latencies in nanoseconds, like a measured one.
pub(super) fn run_of(sets: &[Vec<i64>]) -> Run {
    let cpu_run = |(index, samples): (usize, &Vec<i64>)| {
        let mut counts = Counts::default();
        samples.iter().for_each(|&ns| counts.add(bucket_of(Nanos(ns)), 1));
        let min = samples.iter().min().copied().map(Nanos);
        let sum: i64 = samples.iter().sum();
        CpuRun {
            cpu: Some(Cpu(index as u32 * 2)),
            cycles: Some(samples.len() as u64),
            min_ns: min,
            max_ns: samples.iter().max().copied().map(Nanos),
            mean_ns: min.map(|_| Nanos(sum / samples.len() as i64)),
            histogram: buckets_of(&counts, min.unwrap_or_default()),
            ..CpuRun::default()
        }
    };
    Run { cpus: sets.iter().enumerate().map(cpu_run).collect(), ..Run::default() }
}

/// One to three CPUs of latencies up to 3 ms.
pub(super) fn sample_sets() -> impl Strategy<Value = Vec<Vec<i64>>> {
    proptest::collection::vec(proptest::collection::vec(0i64..3_000_000, 1..60), 1..4)
}

/// Imports the only result of a text.
pub(super) fn import_one(text: &str) -> Run {
    let mut results = super::import(text.as_bytes(), &super::ImportOptions::default()).unwrap();
    assert_eq!(results.len(), 1, "{text}");
    results.remove(0).run
}

/// A file of `tests/fixtures/cyclictest`.
pub(super) fn fixture(name: &str) -> &'static str {
    macro_rules! files {
        ($($name:literal)*) => {
            match name {
                $($name => include_str!(concat!("../../../../tests/fixtures/cyclictest/", $name)),)*
                _ => panic!("no fixture {name}"),
            }
        };
    }
    files!("smp-H60.json" "smp-H60.txt" "smp-H60-2.7.txt" "single-h20.txt" "single-H60-2.7.txt" "single-N.json"
        "summary.json" "summary.txt" "quoted.json" "histfile.txt" "live.txt" "break.txt")
}
