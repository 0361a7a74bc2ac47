//! Log of stress-ng: the result of `--cyclic`, per instance.

use std::collections::BTreeMap;

use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill, preempt_of};
use super::source::{DocumentShape, SourceText};
use super::stress_ng_message::{CyclicMessage, cyclic, message, span};
use super::{BUCKET_LIMIT, THREAD_LIMIT, command_words, quoted};
use model::keyword::Word;
use model::run::{CpuRun, Run};
use model::text::several;
use model::units::Nanos;
use model::vocabulary::Policy;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "stress-ng",
    tool: "stress-ng --cyclic's text",
    versions: "0.15.06, 0.22.01",
    origin: "run here",
    carries: "samples, least, mean and largest latency and percentiles in ns, policy, sleep; with \
              --cyclic-dist a histogram; with --verbose version, kernel, method and command line",
    hides: "of several instances only the first reports; 10,000 samples count without --cyclic-samples; \
            --cyclic-dist prints 250 buckets; the sleep is relative; the CPU; the YAML has no latency",
    find: |source| findings(source, true),
    reader: Reader::Run(read),
};

pub(super) const OTHER: ForeignFormat = ForeignFormat {
    id: "stress-ng-other",
    tool: "stress-ng's output without a result of --cyclic",
    versions: "0.15.06, 0.22.01",
    origin: "run here",
    carries: "no latency: other stressors and the YAML have none",
    hides: "",
    find: |source| findings(source, false),
    reader: Reader::Refused("run it with --cyclic 1 and give its output, or the file of --log-file"),
};

/// Invocations in a text: those with a result of `--cyclic`, or the others and YAML.
fn findings(source: &SourceText, with_result: bool) -> Vec<ResultSpan> {
    struct Open {
        start: usize,
        end: usize,
        has_result: bool,
    }
    let (mut found, mut open): (Vec<Open>, Option<Open>) = (Vec::new(), None);
    for (index, line) in source.lines().enumerate().filter(|_| source.shape == DocumentShape::Text) {
        if line.text.trim_start().starts_with("stress-ng-version:") {
            found.extend(open.take());
            found.push(Open { start: index, end: index + 1, has_result: false });
            continue;
        }
        let Some(message) = message(line.text) else { continue };
        let begins = ["invoked with", "setting to a", "dispatching hogs"];
        let is_begin = begins.iter().any(|begin| message.text.starts_with(begin));
        found.extend(open.take_if(|open| is_begin && open.has_result));
        let current = open.get_or_insert(Open { start: index, end: index, has_result: false });
        current.end = index + 1;
        current.has_result |= cyclic(message.text).is_some_and(|line| match line {
            Ok(line) => matches!(
                line,
                CyclicMessage::Schedule { .. } | CyclicMessage::Mean(_) | CyclicMessage::Extremes { .. }
            ),
            Err(_) => true,
        });
        if message.text.contains("run completed in") {
            found.extend(open.take());
        }
    }
    found.extend(open);
    let wanted = found.into_iter().filter(|open| open.has_result == with_result);
    wanted.map(|open| ResultSpan::strong(open.start..open.end)).collect()
}

/// Messages of one instance.
#[derive(Default)]
struct Instance<'a> {
    line: usize,
    policy: &'a str,
    delay: Nanos,
    samples: u64,
    mean: Option<Nanos>,
    extremes: Option<(Nanos, Nanos)>,
    percentiles: BTreeMap<i64, Nanos>,
    width: Option<Nanos>,
    bucket_count: Option<u64>,
    unit: Option<Nanos>,
    rows: Vec<(u64, u64)>,
    /// Upper edge of the last row.
    end: u64,
    /// True if empty rows after that edge are omitted.
    gap: bool,
    needed: Option<u64>,
}

impl<'a> Instance<'a> {
    fn take(&mut self, message: CyclicMessage<'a>) -> Result<(), ImportError> {
        match message {
            CyclicMessage::Mean(mean) => self.mean = Some(mean),
            CyclicMessage::Extremes { min, max } => self.extremes = Some((min, max)),
            CyclicMessage::Percentile { per_million, latency } => {
                let before = self.percentiles.last_entry().map(|last| (*last.key(), *last.get()));
                if before.is_some_and(|(rank, value)| rank >= per_million || value > latency) {
                    return Err("expected ascending percentiles of one result".into());
                }
                self.percentiles.insert(per_million, latency);
            }
            CyclicMessage::Distribution { width } => self.width = Some(width),
            CyclicMessage::Shown { buckets } => self.bucket_count = Some(buckets),
            CyclicMessage::Heading { unit } => self.unit = Some(unit),
            CyclicMessage::Row { lower, count } => self.take_row(lower, count)?,
            CyclicMessage::Gap => self.gap = true,
            CyclicMessage::Needed { samples } => self.needed = Some(samples),
            CyclicMessage::Schedule { .. } | CyclicMessage::Method(_) | CyclicMessage::Other => {}
        }
        Ok(())
    }

    fn take_row(&mut self, lower: u64, count: u64) -> Result<(), ImportError> {
        let unit = self.unit.ok_or("a row before its heading: expected latency (ns) frequency")?;
        let width = self.width.ok_or("a row before its heading: expected latency distribution (N ns ...)")?;
        let lower = lower.checked_mul(unit.0 as u64);
        let follows =
            |lower: &u64| *lower == self.end || self.gap && *lower > self.end && lower % width.0 as u64 == 0;
        let edges = lower.filter(follows).and_then(|lower| Some((lower, lower.checked_add(width.0 as u64)?)));
        let Some((lower, end)) = edges.filter(|_| self.rows.len() < BUCKET_LIMIT) else {
            return Err(ImportError(format!("expected the bucket from {} ns on, without a gap", self.end)));
        };
        self.rows.push((lower, count));
        (self.end, self.gap) = (end, false);
        Ok(())
    }

    fn thread(&mut self) -> Result<ImportedThread, ImportError> {
        let incomplete = "the result that begins here is cut off: expected mean:, min: and max: behind it";
        let (min, max) = self.extremes.ok_or(incomplete)?;
        let mean = self.mean.ok_or(incomplete)?;
        let within = |value: Nanos| min <= value && value <= max;
        if !within(mean) || !self.percentiles.values().all(|&value| within(value)) {
            return Err("mean and percentiles contradict min and max: give the whole output".into());
        }
        let width = self.width.map_or(0, |width| width.0 as u64);
        let whole = self.bucket_count.map(|count| count.checked_mul(width));
        if whole.is_some_and(|whole| whole != Some(self.end)) {
            let count = self.bucket_count.unwrap_or_default();
            return Err(ImportError(format!(
                "the rows end at {} ns and not behind {count} buckets: give the whole output",
                self.end
            )));
        }
        let end = Some(self.end).filter(|&end| end > 0);
        let mut buckets = std::mem::take(&mut self.rows);
        buckets.retain(|row| row.1 > 0);
        let held = buckets.iter().try_fold(0u64, |sum, row| sum.checked_add(row.1));
        let overflows = held.and_then(|held| self.samples.checked_sub(held));
        let overflows = overflows.ok_or("the rows hold more than the samples: give the whole output")?;
        // Missing samples are beyond the last row, as is the maximum.
        let is_beyond = end.is_some_and(|end| i128::from(max.0) >= i128::from(end));
        if end.is_some() && (overflows > 0) != is_beyond {
            let missing = several(overflows, "sample", "samples");
            return Err(ImportError(format!("{missing} in no row contradict the maximum, {} ns", max.0)));
        }
        Ok(ImportedThread {
            summary_only: end.is_none(),
            cycles: Some(self.samples),
            buckets,
            width,
            overflows,
            end,
            min: Some(min.0.into()),
            max: Some(max.0.into()),
            mean_ns: Some(mean),
            interval: Some(self.delay).filter(|delay| delay.0 > 0),
            ..ImportedThread::default()
        })
    }

    /// Fills the quantiles that the text states and the histogram does not have.
    fn fill_quantiles(&self, cpu: &mut CpuRun) {
        let of = |per_million: i64| self.percentiles.get(&per_million).copied();
        cpu.p50_ns = cpu.p50_ns.or(of(500_000));
        cpu.p90_ns = cpu.p90_ns.or(of(900_000));
        cpu.p99_ns = cpu.p99_ns.or(of(990_000));
        cpu.p999_ns = cpu.p999_ns.or(of(999_000));
        cpu.p9999_ns = cpu.p9999_ns.or(of(999_900));
    }
}

fn read(source: &SourceText, finding: &ResultSpan, _: &ImportOptions) -> Result<Imported, ImportError> {
    let mut run = empty_run("stress-ng");
    let mut instances: BTreeMap<u64, Instance> = BTreeMap::new();
    let mut method = None;
    for line in source.slice(finding.lines.clone()) {
        let Some(message) = message(line.text) else { continue };
        let at = |error: ImportError| error.at(line.number);
        let Some(content) = cyclic(message.text) else {
            describe(&mut run, message.text);
            continue;
        };
        let content = content.map_err(at)?;
        match content {
            CyclicMessage::Other => {}
            CyclicMessage::Method(name) => method = Some(name),
            CyclicMessage::Schedule { policy, delay, samples } => {
                let new = Instance { line: line.number, policy, delay, samples, ..Instance::default() };
                if instances.insert(message.process, new).is_some() || instances.len() > THREAD_LIMIT {
                    return Err(at("a second result of one instance: give one run at a time".into()));
                }
            }
            content => match instances.get_mut(&message.process) {
                Some(instance) => instance.take(content).map_err(at)?,
                None => return Err(at("expected sched SCHED_ before it: give the whole output".into())),
            },
        }
    }
    let mut threads = Vec::with_capacity(instances.len());
    for instance in instances.values_mut() {
        let line = instance.line;
        threads.push(instance.thread().map_err(|error| error.at(line))?);
    }
    fill(&mut run, threads, Nanos(1))?;
    for (cpu, instance) in run.cpus.iter_mut().zip(instances.values()) {
        instance.fill_quantiles(cpu);
    }
    let invoked =
        source.slice(finding.lines.clone()).find_map(|line| command_words::within(line.text, "stress-ng"));
    let command = invoked.or_else(|| {
        command_words::before(source, finding.lines.start + 1, |line| {
            command_words::within(line, "stress-ng")
        })
    });
    let option = |name: &str| command.and_then(|command| command_words::option(command, name, name));
    run.plan.priority = option("--cyclic-prio").and_then(|text| text.parse().ok());
    plan_of(&mut run, &instances, method.or_else(|| option("--cyclic-method")));
    Ok(run.into())
}

/// Schedule of the instances, as far as they share it.
fn plan_of(run: &mut Run, instances: &BTreeMap<u64, Instance>, method: Option<&str>) {
    let plan = &mut run.plan;
    let Some(first) = instances.values().next() else { return };
    if instances.values().all(|one| (one.policy, one.delay) == (first.policy, first.delay)) {
        plan.policy = Word::<Policy>::from(first.policy.to_ascii_lowercase().as_str());
        plan.interval_ns = Some(first.delay).filter(|delay| delay.0 > 0);
    }
    plan.notes.push("relative time: a late wake-up delays all later ones".into());
    plan.notes.extend(method.map(|method| format!("method {}", quoted(method))));
    let needed = instances.values().filter_map(|one| one.needed).fold(0u64, u64::saturating_add);
    if needed > 0 {
        plan.notes.push(format!("{needed} wake-ups in all, of which the first samples count"));
    }
}

/// Adds the facts about run and machine in a message of the program.
fn describe(run: &mut Run, text: &str) {
    if let Some(rest) = text.strip_prefix("setting to a ") {
        run.plan.duration_ns = span(rest);
    } else if let Some((_, rest)) = text.split_once("run completed in ") {
        run.elapsed_ns = span(rest);
    } else if let Some(version) = text.strip_prefix("stress-ng ") {
        run.plan.tool = format!("stress-ng {}", version.split(' ').next().unwrap_or_default());
    } else if let Some(rest) = text.strip_prefix("system: Linux ") {
        let words = rest.split(',').next().unwrap_or_default();
        let (kernel, machine) = words.rsplit_once(' ').unwrap_or((words, ""));
        let mut parts = kernel.splitn(3, ' ').skip(1);
        run.host.release = parts.next().unwrap_or_default().into();
        run.host.kernel = parts.next().unwrap_or_default().into();
        run.host.machine = machine.into();
        run.host.preempt = preempt_of(&run.host.kernel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::import;
    use crate::foreign::testing::import_one;
    use proptest::prelude::*;

    macro_rules! log {
        ($name:literal) => {
            include_str!(concat!("../../../../tests/fixtures/foreign/stress-ng/", $name))
        };
    }

    fn refusal(text: &str) -> String {
        let error = import(text.as_bytes(), &ImportOptions::default()).unwrap_err().0;
        assert!(!error.contains('\n'), "{error}");
        error
    }

    #[test]
    fn every_file_agrees_with_the_tools_own_numbers() {
        for (text, policy, delay, samples, [min, mean, max]) in [
            (log!("0.15.06-clock-ns-samples.txt"), "fifo", 100_000, 24_684, [9102, 19_258, 1_469_879]),
            (log!("0.15.06-clock-ns.txt"), "fifo", 1_000_000, 2845, [12_182, 34_634, 2_281_349]),
            (log!("0.15.06-itimer.txt"), "fifo", 100_000, 10_000, [14_981, 27_430, 3_286_665]),
            (log!("0.15.06-poll-rr.txt"), "rr", 100_000, 10_000, [8, 5719, 10_910_318]),
            (log!("0.15.06-posix-ns.txt"), "fifo", 100_000, 10_000, [7790, 19_027, 1_460_025]),
            (log!("0.15.06-pselect-two.txt"), "fifo", 100_000, 10_000, [11_154, 21_390, 2_066_054]),
            (log!("0.15.06-usleep-deadline.txt"), "deadline", 100_000, 10_000, [9372, 20_894, 2_702_088]),
            (log!("0.22.01-clock-ns-samples.txt"), "fifo", 100_000, 25_048, [8091, 19_577, 5_280_374]),
            (log!("0.22.01-clock-ns.txt"), "fifo", 1_000_000, 2896, [15_547, 34_962, 1_480_000]),
            (log!("0.22.01-itimer.txt"), "fifo", 100_000, 10_000, [16_513, 28_443, 9_651_340]),
            (log!("0.22.01-poll-rr.txt"), "rr", 100_000, 10_000, [8, 317, 1_946_126]),
            (log!("0.22.01-posix-ns.txt"), "fifo", 100_000, 10_000, [9422, 20_888, 530_666]),
            (log!("0.22.01-pselect-two.txt"), "fifo", 100_000, 10_000, [9232, 22_005, 1_683_056]),
            (log!("0.22.01-usleep-deadline.txt"), "deadline", 100_000, 10_000, [8041, 17_783, 1_545_602]),
        ] {
            let run = import_one(text);
            assert_eq!((run.check(), run.cpus.len()), (Ok(()), 1));
            let cpu = &run.cpus[0];
            let [min, mean, max] = [min, mean, max].map(|ns: i64| Some(Nanos(ns)));
            assert_eq!((cpu.cpu, cpu.cycles), (None, Some(samples)));
            assert_eq!((cpu.min_ns, cpu.mean_ns, cpu.max_ns), (min, mean, max));
            assert_eq!((run.plan.policy.as_str(), run.plan.interval_ns), (policy, Some(Nanos(delay))));
            assert!(run.elapsed_ns >= run.plan.duration_ns && run.plan.duration_ns > Some(Nanos::SECOND));
        }
    }

    #[test]
    fn percentiles_and_histograms_are_kept() {
        let cpu = import_one(log!("0.22.01-clock-ns.txt")).cpus.remove(0);
        assert!(cpu.is_summary());
        assert_eq!((cpu.p50_ns, cpu.p90_ns), (Some(Nanos(30_419)), Some(Nanos(41_506))));
        assert_eq!((cpu.p999_ns, cpu.p9999_ns), (Some(Nanos(687_885)), Some(Nanos(1_480_000))));
        let cpu = import_one(log!("0.22.01-itimer.txt")).cpus.remove(0);
        assert_eq!(cpu.histogram[0].lower, Nanos(16_500), "the bucket of the least, 16513");
        let held: u64 = cpu.histogram.iter().map(|row| row.count).sum();
        assert_eq!(cpu.overflows, Some(10_000 - held));
        assert_eq!(cpu.overflows_from_ns, Some(Nanos(62_500)), "250 buckets of 250 ns");
    }

    #[test]
    fn a_verbose_log_tells_version_kernel_and_method() {
        let run = import_one(log!("0.22.01-pselect-two.txt"));
        assert_eq!((run.plan.tool.as_str(), run.host.release.as_str()), ("stress-ng 0.22.01", "6.18.44"));
        assert_eq!((run.host.machine.as_str(), &run.host.kernel[..6]), ("x86_64", "#1 SMP"));
        assert_eq!(run.plan.notes[1], "method 'pselect'");
        assert!(run.plan.notes[2].starts_with("16458 wake-ups"));
        let log = format!("# stress-ng --cyclic 1 --cyclic-prio 80\n{}", log!("0.15.06-clock-ns.txt"));
        assert_eq!(import_one(&log).plan.priority, Some(80));
    }

    #[test]
    fn instances_and_invocations_are_separated() {
        let one = log!("0.15.06-poll-rr.txt");
        let log = format!("{one}\n{}\n{}", log!("0.15.06-cpu.txt"), log!("0.15.06-clock-ns.txt"));
        assert_eq!(import(log.as_bytes(), &ImportOptions::default()).unwrap().len(), 2);
        let lines = |pid: &str| {
            one.lines()
                .filter(|l| l.contains("cyclic:"))
                .collect::<Vec<_>>()
                .join("\n")
                .replace("[12702]", pid)
        };
        let run = import_one(&format!("{}\n{}", lines("[7]"), lines("[8]")));
        assert_eq!((run.cpus.len(), run.samples()), (2, Some(20_000)));
    }

    #[test]
    fn the_case_is_read() {
        let run = import_one(
            "stress-ng: info:  [811] setting to a 1 min, 0 secs run per stressor\n\
             stress-ng: info:  [811] dispatching hogs: 1 cyclic\n\
             stress-ng: info:  [812] cyclic: sched SCHED_FIFO: 100000 ns delay, 10000 samples\n\
             stress-ng: info:  [812] cyclic:   mean: 4120.55 ns, mode: 3300 ns\n\
             stress-ng: info:  [812] cyclic:   min: 2900 ns, max: 611204 ns, std.dev. 8100.10\n",
        );
        let cpu = &run.cpus[0];
        assert_eq!((cpu.cycles, cpu.min_ns), (Some(10_000), Some(Nanos(2900))));
        assert_eq!((cpu.mean_ns, cpu.max_ns), (Some(Nanos(4121)), Some(Nanos(611_204))));
        assert_eq!(run.plan.duration_ns, Some(Nanos(60_000_000_000)));
    }

    #[test]
    fn what_has_no_latency_is_refused_by_name() {
        for text in [
            log!("0.15.06-cpu.txt"),
            log!("0.22.01-cpu.txt"),
            log!("0.15.06-cpu.yaml"),
            log!("0.22.01-cpu.yaml"),
            log!("0.15.06-clock-ns.yaml"),
            log!("0.22.01-clock-ns.yaml"),
            log!("0.15.06-itimer.yaml"),
            log!("0.22.01-itimer.yaml"),
        ] {
            let error = refusal(text);
            assert!(error.contains("stress-ng's output without") && error.contains("--cyclic 1"), "{error}");
        }
    }

    #[test]
    fn a_load_beside_another_result_is_no_result() {
        let load = log!("0.22.01-cpu.txt");
        let (head, tail) = load.split_at(load.match_indices('\n').nth(1).unwrap().0 + 1);
        let log = format!("{head}T: 0 ( 7) P:80 I:1000 C: 500 Min: 16 Act: 18 Avg: 23 Max: 717\n{tail}");
        assert_eq!(import_one(&log).samples(), Some(500));
        let rows = "T: 0 ( 7) P:80 I:1000 C: 500 Min: 16 Act: 18 Avg: 23 Max: 717\n";
        assert_eq!(import_one(&format!("{rows}{load}{rows}")).samples(), Some(500));
    }

    #[test]
    fn damaged_and_cut_texts_are_refused_with_their_line() {
        let whole = log!("0.22.01-itimer.txt");
        for (from, to, wanted) in [
            ("max: 9651340 ns", "max: 96x ns", "line 5: expected min: N ns, max: N ns"),
            ("max: 9651340 ns", "max: 9651340 kg", "line 5: expected"),
            ("max: 9651340 ns", "max: 51264 ns", "line 3: mean and percentiles contradict"),
            ("10000 samples", "100 samples", "line 3: the rows hold more than the samples"),
            (
                "for the first 250 buckets",
                "for the first 300 buckets",
                "line 3: the rows end at 62500 ns and not behind 300 buckets",
            ),
            (
                "cyclic:          250          0\n",
                "cyclic:          251          0\n",
                "the bucket from 250 ns",
            ),
            ("cyclic:   mean:", "cyclic:   mead:", "line 3: the result that begins here is cut off"),
            ("latency (ns)", "latency (us)", "expected the bucket from 250 ns"),
        ] {
            let error = refusal(&whole.replacen(from, to, 1));
            assert!(error.contains(wanted), "{from}: {error}");
        }
        let cut = whole.find("cyclic:        16500").unwrap();
        assert!(refusal(&whole[..cut]).contains("not behind 250 buckets"));
    }

    const LINES: &[&str] = &[
        "[7] dispatching hogs: 1 cyclic",
        "[8] cyclic: sched SCHED_FIFO: 1000 ns delay, 5 samples",
        "[9] cyclic: sched SCHED_RR: 0 ns delay, 0 samples",
        "[8] cyclic:   mean: 4.5 ns, mode: 3 ns",
        "[8] cyclic:   min: 3 ns, max: 900 ns, std.dev. 2",
        "[8] cyclic:   50.00%:  4 ns",
        "[8] cyclic: latency distribution (250 ns intervals):",
        "[8] cyclic: latency (ns)  frequency",
        "[8] cyclic:   0  5",
        "[8] cyclic:   250  4",
        "[8] cyclic: (for the first 2 buckets of 9)",
        "[9] cyclic:   mean: 1 us, mode: 1 us",
        "[9] cyclic:   min: 1 us, max: 1 us, std.dev. 0",
        "[7] successful run completed in 3.01 secs",
        "[8] cyclic: mean: x",
    ];

    proptest! {
        #[test]
        fn any_log_is_consistent_or_refused(
            lines in proptest::collection::vec(proptest::sample::select(LINES), 0..14),
        ) {
            let text: String = lines.iter().map(|line| format!("stress-ng: info:  {line}\n")).collect();
            match import(text.as_bytes(), &ImportOptions::default()) {
                Ok(runs) => prop_assert!(runs.iter().all(|one| one.run.check().is_ok())),
                Err(error) => prop_assert!(!error.0.contains('\n')),
            }
        }
    }
}
