//! jitterdebugger's `results.json`, version 3: a histogram per CPU.

use serde::Deserialize;

use super::decimal;
use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill, preempt_of};
use super::json_read::NumberedEntries;
use super::source::{DocumentShape, SourceText};
use super::{BUCKET_LIMIT, THREAD_LIMIT};
use model::units::{CPU_LIMIT, Cpu, Nanos};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "jitterdebugger-json",
    tool: "jitterdebugger's results.json",
    versions: "0.3.1 (file version 3)",
    origin: "run here",
    carries: "histogram, count, least, mean and largest latency per CPU; kernel; the unit (-N)",
    hides: "samples of 1 ms or more are in count and max, but in no row; the average of zero samples is \
            -nan; interval, priority and duration",
    find,
    reader: Reader::Run(read),
};

/// End of every histogram, in any unit.
const END: Nanos = Nanos::MILLI;

#[derive(Deserialize)]
struct Results {
    version: u32,
    sysinfo: System,
    cpu: NumberedEntries<Counted>,
}

#[derive(Deserialize)]
struct System {
    #[serde(default)]
    release: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    machine: String,
    resolution_in_ns: i64,
}

#[derive(Deserialize)]
struct Counted {
    histogram: NumberedEntries<u64>,
    count: u64,
    min: u64,
    max: u64,
    avg: Option<serde_json::Number>,
}

fn find(source: &SourceText) -> Vec<ResultSpan> {
    let text = source.text();
    let keys = ["\"sysinfo\"", "\"cpus_online\"", "\"resolution_in_ns\"", "\"cpu\""];
    let named = source.shape == DocumentShape::Json && keys.iter().all(|key| text.contains(key));
    // The frame of rt-tests has the same system's keys.
    let alone = named && !text.contains("\"cmdline:\"");
    alone.then(|| ResultSpan::strong(0..source.lines().len())).into_iter().collect()
}

fn read(source: &SourceText, _: &ResultSpan, _: &ImportOptions) -> Result<Imported, ImportError> {
    let text =
        source.text().replace("\"avg\": -nan", "\"avg\": null").replace("\"avg\": nan", "\"avg\": null");
    let results: Results = serde_json::from_str(&text).map_err(|error| {
        ImportError(format!("expected jitterdebugger's results.json: {error}: give the whole file"))
    })?;
    if results.version != 3 {
        let version = results.version;
        return Err(ImportError(format!(
            "invalid version {version}: expected 3, as jitterdebugger 0.3 writes"
        )));
    }
    let unit = match results.sysinfo.resolution_in_ns {
        1 => Nanos(1),
        1000 => Nanos::MICRO,
        other => return Err(ImportError(format!("invalid resolution_in_ns {other}: expected 1 or 1000"))),
    };
    let NumberedEntries(cpus) = results.cpu;
    if cpus.is_empty() || cpus.len() > THREAD_LIMIT {
        let count = cpus.len();
        return Err(ImportError(format!("{count} CPUs in \"cpu\": expected 1 to {THREAD_LIMIT}")));
    }
    if cpus.iter().map(|cpu| cpu.1.histogram.0.len()).sum::<usize>() > BUCKET_LIMIT {
        return Err(ImportError(format!("expected at most {BUCKET_LIMIT} rows that are not empty")));
    }
    let threads = cpus.into_iter().map(|(cpu, counted)| {
        thread_of(cpu, counted, unit).map_err(|what| ImportError(format!("cpu {cpu}: {what}")))
    });
    let threads = threads.collect::<Result<Vec<_>, _>>()?;
    let mut run = empty_run("jitterdebugger");
    run.host.preempt = preempt_of(&results.sysinfo.version);
    run.host.release = results.sysinfo.release;
    run.host.kernel = results.sysinfo.version;
    run.host.machine = results.sysinfo.machine;
    fill(&mut run, threads, unit)?;
    Ok(run.into())
}

fn thread_of(cpu: u64, counted: Counted, unit: Nanos) -> Result<ImportedThread, ImportError> {
    let number = u32::try_from(cpu).ok().filter(|&n| n < CPU_LIMIT);
    let number =
        number.ok_or_else(|| ImportError(format!("expected the number of a CPU below {CPU_LIMIT}")))?;
    let Counted { histogram: NumberedEntries(mut buckets), count, min, max, avg } = counted;
    buckets.retain(|bucket| bucket.1 > 0);
    let end = (END.0 / unit.0) as u64;
    let held = buckets.iter().try_fold(0u64, |sum, bucket| sum.checked_add(bucket.1));
    let overflows = held.and_then(|held| count.checked_sub(held));
    let overflows =
        overflows.ok_or_else(|| ImportError(format!("the rows hold more samples than count, {count}")))?;
    let (first, last) = (buckets.first().map(|row| row.0), buckets.last().map(|row| row.0));
    // A lost row would count as beyond the end: the extremes reveal it.
    let is_whole = match (first, last) {
        _ if count == 0 => true,
        (None, _) | (_, None) => min >= end,
        (Some(first), Some(last)) => {
            first == min && last < end && if overflows == 0 { last == max } else { max >= end }
        }
    };
    if !is_whole {
        return Err(ImportError(format!(
            "count is {count}, min {min} and max {max}, which the rows contradict: give the whole file"
        )));
    }
    Ok(ImportedThread {
        cpu: Some(Cpu(number)),
        buckets,
        overflows,
        end: Some(end),
        min: Some(min.into()),
        max: Some(max.into()),
        mean_ns: avg.and_then(|avg| decimal::in_ns(&avg.to_string(), unit)),
        ..ImportedThread::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::import;
    use crate::foreign::testing::import_one;
    use model::vocabulary::Preempt;
    use proptest::prelude::*;

    macro_rules! results {
        ($name:literal) => {
            include_str!(concat!(
                "../../../../tests/fixtures/foreign/jitterdebugger/",
                $name,
                "/results.json"
            ))
        };
    }

    fn refusal(text: &str) -> String {
        import(text.as_bytes(), &ImportOptions::default()).unwrap_err().0
    }

    #[test]
    fn every_file_agrees_with_the_tools_own_totals() {
        let us = |n: i64| Some(Nanos(n * 1000));
        type Truth = (u32, u64, u64, i64, i64, i64);
        let check = |text: &str, truth: &[Truth], scale: i64| {
            let run = import_one(text);
            assert_eq!(run.check(), Ok(()));
            let ns = |n: i64| us(n).map(|ns| Nanos(ns.0 / 1000 * scale));
            for (cpu, &(number, count, held, min, mean_of_100, max)) in run.cpus.iter().zip(truth) {
                assert_eq!((cpu.cpu, cpu.cycles), (Some(Cpu(number)), Some(count)));
                assert_eq!((cpu.min_ns, cpu.max_ns), (ns(min), ns(max)));
                assert_eq!(cpu.mean_ns, Some(Nanos(mean_of_100 * scale / 100)));
                assert_eq!(cpu.histogram.iter().map(|row| row.count).sum::<u64>(), held);
                assert_eq!(cpu.overflows, Some(count - held).filter(|&n| n > 0));
                assert_eq!(cpu.overflows_from_ns, cpu.overflows.map(|_| Nanos::MILLI));
            }
            assert_eq!(run.cpus.len(), truth.len());
            assert_eq!((run.host.release.as_str(), run.plan.tool.as_str()), ("6.18.44", "jitterdebugger"));
            assert_eq!(run.host.preempt, Preempt::Unknown, "PREEMPT_DYNAMIC is a choice at boot");
        };
        let truth = [(0, 7959, 7956, 12, 2289, 1319), (1, 7932, 7885, 8, 5369, 9599)];
        check(results!("0.3.1-interval"), &truth, 1000);
        let truth = [(0, 500, 500, 16, 3026, 251), (1, 500, 500, 15, 3025, 97)];
        check(results!("0.3.1-loops"), &truth, 1000);
        check(results!("0.3.1-one"), &[(0, 1889, 1884, 15926, 3_681_249, 3_242_912)], 1);
        let truth = [(0, 485, 483, 15, 4069, 3985), (1, 463, 460, 15, 4342, 3754)];
        check(results!("0.3.1-samples"), &truth, 1000);
        let truth = [(0, 1, 1, 34, 3400, 34), (1, 1, 1, 37, 3700, 37)];
        check(results!("0.3.1-short"), &truth, 1000);
        let truth = [(0, 2994, 2994, 16, 2745, 828), (1, 2990, 2974, 11, 4233, 4056)];
        check(results!("0.3.1-two"), &truth, 1000);
        let truth = [(0, 992, 992, 14, 3168, 66), (1, 992, 992, 15, 3028, 842)];
        check(results!("0.3.1-verbose"), &truth, 1000);
    }

    #[test]
    fn a_run_without_samples_has_no_latency() {
        let run = import_one(results!("0.3.1-none"));
        for cpu in &run.cpus {
            assert_eq!((cpu.cycles, cpu.min_ns, cpu.mean_ns, cpu.max_ns), (Some(0), None, None, None));
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let whole = results!("0.3.1-loops");
        for (from, to, wanted) in [
            ("\"251\": 1", "\"251\": 0", "the rows contradict"),
            ("\"count\": 500", "\"count\": 501", "the rows contradict"),
            ("\"count\": 500", "\"count\": 5", "more samples than count"),
            ("\"16\": 2,", "", "the rows contradict"),
            ("\"16\": 2,", "\"16\": 2, \"16\": 2,", "duplicate"),
            ("\"version\": 3", "\"version\": 4", "expected 3"),
            ("\"resolution_in_ns\": 1000", "\"resolution_in_ns\": 7", "expected 1 or 1000"),
            ("\"0\": {", "\"9999999\": {", "number of a CPU"),
        ] {
            let error = refusal(&whole.replacen(from, to, 1));
            assert!(error.contains(wanted) && !error.contains('\n'), "{from}: {error}");
        }
        let error = refusal(&whole[..whole.len() - 9]);
        assert!(error.contains("give the whole file") && error.contains("line"), "{error}");
    }

    proptest! {
        #[test]
        fn a_file_cut_anywhere_is_refused(end in 300..1700usize) {
            let cut = &results!("0.3.1-loops").as_bytes()[..end];
            prop_assert!(import(cut, &ImportOptions::default()).is_err());
        }

        #[test]
        fn any_counts_are_consistent_or_refused(
            rows in proptest::collection::btree_map(0u64..1200, 0u64..9, 0..6),
            count in 0u64..40, min in 0u64..1200, max in 0u64..3000,
        ) {
            let rows: Vec<String> = rows.iter().map(|(row, n)| format!("\"{row}\": {n}")).collect();
            let text = format!(
                "{{\"version\": 3, \"sysinfo\": {{\"cpus_online\": 1, \"resolution_in_ns\": 1000}}, \"cpu\": \
                 {{\"3\": {{\"histogram\": {{{}}}, \"count\": {count}, \"min\": {min}, \"max\": {max}, \
                 \"avg\": 1.0}}}}}}", rows.join(", "));
            if let Ok(runs) = import(text.as_bytes(), &ImportOptions::default()) {
                prop_assert_eq!(runs[0].run.samples(), Some(count));
            }
        }
    }
}
