//! Reads the JSON of rt-tests: the frame that its programs share, and cyclictest's threads, which
//! [`super::cyclictest_json`] describes.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::error::ImportError;
use super::format::{Confidence, ResultSpan};
use super::imported::{ImportedThread, RowEdges, TOO_LARGE, empty_run, fill, preempt_of};
use super::source::{DocumentShape, SourceText};
use super::{BUCKET_LIMIT, THREAD_LIMIT, command_line, date};
use model::run::{Plan, Run};
use model::sort::CompactSort;
use model::units::{CPU_LIMIT, Cpu, Nanos};
use model::vocabulary::Preempt;

/// Frame that all programs of rt-tests write around their threads.
#[derive(serde::Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(super) struct RtTestsFrame<T> {
    #[serde(rename = "cmdline:", default)]
    pub command_line: String,
    #[serde(rename = "rt_test_version:", default)]
    version: String,
    #[serde(default)]
    start_time: String,
    #[serde(default)]
    end_time: String,
    #[serde(default)]
    sysinfo: ReadSysInfo,
    num_threads: Option<usize>,
    #[serde(default)]
    pub resolution_in_ns: u32,
    thread: Option<NumberedEntries<T>>,
    #[serde(default)]
    schema: serde_json::Value,
}

impl<T: for<'de> Deserialize<'de>> RtTestsFrame<T> {
    /// Parses a document of this tool; two errors that the programs write are corrected.
    pub(super) fn parse(bytes: &[u8], tool: &str) -> Result<RtTestsFrame<T>, ImportError> {
        serde_json::from_slice(bytes)
            .or_else(|error| serde_json::from_str(&repaired(bytes)).map_err(|_| error))
            .map_err(|error| ImportError(format!("expected {tool}'s JSON: {error}: give the whole file")))
    }

    /// Builds a run without its threads: the machine, start and end.
    pub(super) fn run(&self, tool: &str) -> Run {
        let mut run = empty_run(tool);
        run.host.release.clone_from(&self.sysinfo.release);
        run.host.kernel.clone_from(&self.sysinfo.version);
        run.host.machine.clone_from(&self.sysinfo.machine);
        // `realtime` is 0 if the kernel has no /sys/kernel/realtime, as 7.3.
        run.host.preempt = preempt_of(&run.host.kernel);
        if self.sysinfo.realtime == 1 {
            run.host.preempt = Preempt::Rt.into();
        }
        date_run(&mut run, &self.start_time, &self.end_time);
        run
    }

    /// Builds a run for a program that is not cyclictest, with its version.
    pub(super) fn run_of(&self, tool: &str) -> Run {
        self.run(format!("{tool} {}", self.version).trim_end())
    }

    /// Threads in the order of their numbers, which are 0 and up.
    pub(super) fn threads(&mut self, tool: &str) -> Result<Vec<T>, ImportError> {
        let Some(NumberedEntries(threads)) = self.thread.take() else {
            let what = format!("the JSON has no \"thread\": expected what {tool} --json writes");
            return Err(ImportError(what));
        };
        if self.num_threads.is_some_and(|n| n != threads.len()) || threads.is_empty() {
            let count = threads.len();
            return Err(ImportError(format!("expected num_threads entries in \"thread\", found {count}")));
        }
        let in_order = |(index, thread): (usize, (u64, T))| match thread {
            (number, thread) if number == index as u64 && index < THREAD_LIMIT => Ok(thread),
            (number, _) => {
                Err(format!("thread {number}: expected threads 0 to {THREAD_LIMIT} without a gap").into())
            }
        };
        threads.into_iter().enumerate().map(in_order).collect()
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ReadSysInfo {
    release: String,
    version: String,
    machine: String,
    realtime: u32,
}

#[derive(serde::Deserialize)]
struct ReadThread {
    // Since rt-tests 2.7 absent without -h.
    histogram: Option<NumberedEntries<u64>>,
    cycles: u64,
    min: Option<i128>,
    max: Option<i128>,
    avg: Option<f64>,
    cpu: Option<i64>,
}

/// Finds the whole document if it is cyclictest's, or has its fields and no command line.
pub(super) fn find(source: &SourceText) -> Vec<ResultSpan> {
    let strong = rt_tests_program(source).is_some_and(|name| matches!(name, "cyclictest" | "onbeat"));
    let alone = || {
        let text = source.text();
        source.shape == DocumentShape::Json && !text.contains("\"cmdline:\"") && text.contains("\"cycles\"")
    };
    let confidence = if strong { Confidence::Strong } else { Confidence::Weak };
    let lines = 0..source.lines().len();
    (strong || alone()).then_some(ResultSpan { lines, confidence }).into_iter().collect()
}

/// Finds the whole document if it is this program's.
pub(super) fn find_program(source: &SourceText, program: &str) -> Vec<ResultSpan> {
    let is_its = rt_tests_program(source) == Some(program);
    is_its.then(|| ResultSpan::strong(0..source.lines().len())).into_iter().collect()
}

/// Program of a JSON document with rt-tests' frame, by its command line; the frame is the same for
/// all of them.
pub(super) fn rt_tests_program(source: &SourceText) -> Option<&str> {
    const KEY: &str = "\"cmdline:\"";
    let text = source.text();
    let behind = text.split_once(KEY).filter(|_| source.shape == DocumentShape::Json)?.1;
    let line = behind.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let path = line.split([' ', '"', '\n']).next()?;
    path.rsplit('/').next().filter(|name| !name.is_empty())
}

/// Reads cyclictest's JSON; errors of cyclictest itself are repaired, contradictions are refused.
///
/// Samples that `cycles` counts and an existing histogram does not hold are overflows.
pub(super) fn parse(bytes: &[u8]) -> Result<Run, ImportError> {
    let mut file: RtTestsFrame<ReadThread> = RtTestsFrame::parse(bytes, "cyclictest")?;
    if file.schema.as_str().is_some_and(|schema| schema.starts_with("onbeat.")) {
        return Err(ImportError::new(
            "this is onbeat's own JSON: give the run's directory to report, bounds or compare",
        ));
    }
    let threads = file.threads("cyclictest")?;
    let unit = match file.resolution_in_ns {
        0 => Nanos::MICRO,
        1 => Nanos(1),
        other => return Err(ImportError(format!("invalid resolution_in_ns {other}: expected 0 or 1"))),
    };
    let mut run = file.run("cyclictest");
    command_line::fill(&mut run.plan, &file.command_line);
    let asked = command_line::asks_for_histogram(&file.command_line);
    let mut threads = threads_of(threads, unit, &run.plan)?;
    // Before 2.7 a run without -h has an empty histogram.
    threads.iter_mut().for_each(|thread| thread.summary_only |= thread.buckets.is_empty() && !asked);
    threads.iter_mut().for_each(|thread| thread.end = command_line::buckets(&file.command_line));
    for (number, thread) in threads.iter().enumerate() {
        if let Some(fault) = thread.largest_fault(unit) {
            return Err(format!("thread {number}: {fault}").into());
        }
    }
    let threads: Vec<_> = threads.into_iter().map(|thread| thread.of_cyclictest(unit)).collect();
    // Rows of onbeat hold fractions of their value.
    if command_line::is_cyclictests(&file.command_line) {
        for (number, thread) in threads.iter().enumerate() {
            if let Some(fault) = thread.rows_fault(unit, RowEdges::Exact) {
                return Err(format!("thread {number}: {fault}").into());
            }
        }
    }
    fill(&mut run, threads, unit)?;
    Ok(run)
}

/// Dates a run: the file has only whole seconds, including start-up and tear-down.
fn date_run(run: &mut Run, start: &str, end: &str) {
    let Some(start_s) = date::parse_rfc2822(start) else { return };
    run.started = date::as_rfc3339(start_s);
    run.elapsed_ns = date::parse_rfc2822(end)
        .map(|end_s| end_s - start_s)
        .filter(|&s| s > 0)
        .and_then(|s| s.checked_mul(Nanos::SECOND.0))
        .map(Nanos);
}

fn threads_of(threads: Vec<ReadThread>, unit: Nanos, plan: &Plan) -> Result<Vec<ImportedThread>, String> {
    let mut buckets_left = BUCKET_LIMIT;
    let mut interval = plan.interval_ns;
    let mut known = Vec::with_capacity(threads.len());
    for (number, read) in threads.into_iter().enumerate() {
        let summary_only = read.histogram.is_none();
        let mut buckets = read.histogram.map_or(Vec::new(), |histogram| histogram.0);
        buckets.retain(|bucket| bucket.1 > 0);
        buckets_left = buckets_left
            .checked_sub(buckets.len())
            .ok_or_else(|| format!("more than {BUCKET_LIMIT} buckets that are not empty"))?;
        let held = buckets.iter().try_fold(0u64, |sum, bucket| sum.checked_add(bucket.1));
        let overflows = held.and_then(|held| read.cycles.checked_sub(held));
        known.push(ImportedThread {
            cpu: cpu_of(read.cpu).map_err(|what| format!("thread {number}: {what}"))?,
            number: u32::try_from(number).ok(),
            buckets,
            summary_only,
            cycles: Some(read.cycles),
            overflows: overflows.ok_or_else(|| {
                format!("thread {number}: the histogram holds more samples than cycles, {}", read.cycles)
            })?,
            min: read.min,
            max: read.max,
            mean_ns: read.avg.and_then(|avg| mean_of(avg, unit)),
            interval,
            ..ImportedThread::default()
        });
        interval = later(interval, plan.distance_ns);
    }
    Ok(known)
}

/// Period of the next thread.
fn later(interval: Option<Nanos>, distance: Option<Nanos>) -> Option<Nanos> {
    interval.zip(distance).and_then(|(interval, more)| interval.0.checked_add(more.0)).map(Nanos)
}

/// CPU of a thread; cyclictest writes -1 if it did not pin it.
pub(super) fn cpu_of(cpu: Option<i64>) -> Result<Option<Cpu>, String> {
    match cpu {
        None | Some(i64::MIN..0) => Ok(None),
        Some(n) => match u32::try_from(n) {
            Ok(n) if n < CPU_LIMIT => Ok(Some(Cpu(n))),
            _ => Err(format!("cpu {n}: expected the number of a CPU")),
        },
    }
}

/// Mean in nanoseconds; [`TOO_LARGE`] for values beyond any measurement.
pub(super) fn mean_of(avg: f64, unit: Nanos) -> Option<Nanos> {
    let ns = (avg * unit.0 as f64).round();
    // 2^53: the range that a float holds to the nanosecond, a hundred days.
    let is_exact = ns.abs() < 9.0e15;
    (!ns.is_nan()).then_some(if is_exact { Nanos(ns as i64) } else { TOO_LARGE })
}

/// Corrects cyclictest's two errors in a file: an unescaped command line, and the average of no
/// samples.
fn repaired(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    const KEY: &str = "\"cmdline:\": \"";
    const END: &str = "\",\n  \"rt_test_version:\"";
    let quoted = text.find(KEY).map(|at| at + KEY.len());
    let line = quoted.and_then(|start| text[start..].find(END).map(|length| (start, start + length)));
    let text = match line {
        None => text.into_owned(),
        Some((start, end)) => {
            let escaped = serde_json::Value::from(&text[start..end]).to_string();
            format!("{}{}{}", &text[..start - 1], escaped, &text[end + 1..])
        }
    };
    text.replace("\"avg\": -nan", "\"avg\": null").replace("\"avg\": nan", "\"avg\": null")
}

/// A JSON object whose keys are numbers, ascending, each once.
pub(super) struct NumberedEntries<V, K = u64>(pub Vec<(K, V)>);

/// Number that is a key of such an object.
pub(super) trait NumberedKey<'de>: Deserialize<'de> + Ord + fmt::Display {}

impl<'de, K: Deserialize<'de> + Ord + fmt::Display> NumberedKey<'de> for K {}

impl<'de, K: NumberedKey<'de>, V: Deserialize<'de>> Deserialize<'de> for NumberedEntries<V, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V, K>(PhantomData<(K, V)>);

        impl<'de, K: NumberedKey<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<V, K> {
            type Value = NumberedEntries<V, K>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with numbers as keys")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(K, V)> = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                entries.compact_sort_by(|one, other| one.0.cmp(&other.0));
                match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    Some(pair) => Err(A::Error::custom(format!("duplicate key {}", pair[0].0))),
                    None => Ok(NumberedEntries(entries)),
                }
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::fixture;
    use model::histogram::Bucket;

    #[test]
    fn cyclictests_own_files_are_read() {
        let run = parse(fixture("smp-H60.json").as_bytes()).unwrap();
        assert_eq!(run.check(), Ok(()));
        assert_eq!((run.plan.interval_ns, run.plan.priority), (Some(Nanos::MILLI), Some(80)));
        assert_eq!(run.plan.policy, model::vocabulary::Policy::Fifo);
        let cpu = &run.cpus[0];
        assert_eq!((cpu.cpu, cpu.cycles, cpu.overflows), (Some(Cpu(0)), Some(1500), Some(13)));
        assert_eq!(cpu.overflows_from_ns, Some(Nanos(60_000)), "as -H60 says");
        assert_eq!((cpu.min_ns, cpu.max_ns), (Some(Nanos(14_000)), Some(Nanos(1_535_000))));
        assert_eq!(cpu.histogram[0], Bucket::new(Nanos(14_000), Nanos(15_000), 1));
        assert_eq!(cpu.p9999_ns, None);
        assert!(run.started.starts_with("2026-11-21T"));
    }

    #[test]
    fn an_unescaped_command_line_is_repaired() {
        let run = parse(fixture("quoted.json").as_bytes()).unwrap();
        assert_eq!((run.plan.interval_ns, run.plan.loops), (Some(Nanos::MILLI), Some(500)));
        let backslash = fixture("quoted.json").replace("S_\"q\"", "\\x\n\"\\");
        assert_eq!(parse(backslash.as_bytes()).unwrap(), run);
    }

    #[test]
    fn nanoseconds_are_recognised() {
        let run = parse(fixture("single-N.json").as_bytes()).unwrap();
        assert_eq!(run.check(), Ok(()));
        let first = run.cpus[0].histogram[0];
        assert_eq!(first.upper - first.lower, Nanos(1));
        assert_eq!(run.cpus[0].min_ns, Some(first.lower));
        assert_eq!(run.cpus[0].mean_ns, Some(Nanos(44_815)));
    }

    #[test]
    fn without_a_histogram_no_sample_is_beyond_its_end() {
        for text in
            [fixture("summary.json"), &fixture("summary.json").replace("\"histogram\": {      },", "")]
        {
            let run = parse(text.as_bytes()).unwrap();
            assert_eq!(run.check(), Ok(()));
            let cpu = &run.cpus[1];
            assert_eq!((cpu.cycles, cpu.overflows, cpu.p50_ns), (Some(343), None, None));
            assert_eq!((cpu.interval_ns, cpu.max_ns), (Some(Nanos(1_500_000)), Some(Nanos(569_000))));
        }
        // With -h 10 an empty histogram means that all of them were later.
        let text = fixture("summary.json").replace("cyclictest ", "cyclictest -h 10 ");
        assert_eq!(parse(text.as_bytes()).unwrap().cpus[1].overflows, Some(343));
    }

    #[test]
    fn contradictions_name_the_thread() {
        for (text, wanted) in [
            (r#"{"thread":{"0":{"cycles":1,"histogram":{"5":2}}}}"#, "thread 0"),
            (r#"{"thread":{"1":{"cycles":1}}}"#, "thread 1"),
            (r#"{"thread":{"0":{"cycles":1,"cpu":99999}}}"#, "cpu 99999"),
            (r#"{"thread":{"0":{"cycles":2,"histogram":{"5":1,"5":1}}}}"#, "duplicate key"),
            (r#"{"thread":{"0":{"cycles":1}},"num_threads":2}"#, "num_threads"),
            (r#"{"thread":{"0":{"cycles":1}},"resolution_in_ns":7}"#, "0 or 1"),
            (r#"{"thread":{}}"#, "num_threads"),
            (
                r#"{"thread":{"0":{"cycles":5,"min":14,"max":90,"avg":3.0}}}"#,
                "the mean, 3, is below the minimum",
            ),
            (r#"{"thread":{"0":{"cycles":5,"min":14,"max":90,"avg":-20.5}}}"#, "is below the minimum, 14"),
            (r#"{"thread":{"0":{"cycles":5,"min":14,"max":90,"avg":92.5}}}"#, "is above the maximum, 90"),
            (
                r#"{"thread":{"0":{"cycles":5,"min":14,"max":90,"avg":1e30}}}"#,
                "a mean of more than a hundred",
            ),
            (r#"{"thread":{"0":{"cycles":9223372036854775808,"max":9}}}"#, "more samples than 292 years"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.0.contains(wanted), "{error}");
        }
    }

    #[test]
    fn no_samples_are_no_numbers() {
        let text = r#"{"thread":{"0":{"cycles":0,"min":1000000,"max":0,"avg": -nan}}}"#;
        let cpu = &parse(text.as_bytes()).unwrap().cpus[0];
        assert_eq!((cpu.min_ns, cpu.max_ns, cpu.mean_ns, cpu.p50_ns), (None, None, None, None));
    }
}
