//! cyclictest's text: histogram, `T:` lines, samples of `-v`, spikes, alone or within a log.
//!
//! The format is described in [`super::cyclictest_hist`]; versions 2.4, 2.6 and 2.10 were read.

use super::cyclictest_check::refuse_cut;
use super::cyclictest_find::{command_before, within_prompt};
use super::cyclictest_gather::{Gathered, Numbers};
use super::cyclictest_line::{self as line, Line, Summary};
use super::error::ImportError;
use super::format::{ImportOptions, Imported, ResultSpan};
use super::imported::{ImportedThread, RowEdges, empty_run, fill};
use super::source::SourceText;
use super::{command_line, samples, unit};
use model::run::{Integrity, Run, WORST, Worst};
use model::text::several;
use model::units::Nanos;
use model::vocabulary::IntegrityKind;

/// Reads the block; without a histogram a live display's last update counts.
///
/// The number of threads is that of `# Min Latencies:`. One more column is the sum that `-H` adds,
/// and has to be it. Without any comment the last column counts as a sum if it is one in every row.
/// Samples that are counted without their value are `overflows`; the numbers of the first of these
/// wake-ups are kept.
pub(super) fn read(
    source: &SourceText,
    finding: &ResultSpan,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let mut gathered = Gathered::default();
    let mut unknown: Option<usize> = None;
    let mut passed = 0u64;
    let mut stated = stated_above(source, finding.lines.start);
    let mut is_cut = false;
    for (index, text) in finding.lines.clone().zip(source.slice(finding.lines.clone())) {
        let at = |what: String| ImportError(format!("line {}: {what}", text.number));
        let line = line::parse(within_prompt(text.text)).map_err(at)?;
        match line {
            // cyclictest prints eight columns.
            Line::Sample(..)
                if source.is_cut_at(index) && text.text.rsplit(':').next().is_some_and(|ns| ns.len() < 8) =>
            {
                is_cut = true;
            }
            Line::Comment => {
                stated = stated.or_else(|| unit_of_comment(text.text));
                unknown = unknown.or(Some(text.number));
                passed += 1;
            }
            Line::Other => passed += u64::from(!text.text.trim().is_empty()),
            line => gathered.take(text.number, line).map_err(at)?,
        }
    }
    if let Some(last) = finding.lines.end.checked_sub(1).filter(|&last| source.is_cut_at(last)) {
        source.line(last).map_or(Ok(()), |line| refuse_cut(&line))?;
    }
    let is_asked = options.format.is_some();
    gathered.check_frame(finding.lines.end, unknown, is_asked)?;
    let before = command_before(source, finding.lines.start);
    let threads = gathered.shape()?.0;
    let mismatch = before.and_then(|command| command_line::mismatch(command, threads, gathered.last_bucket));
    let command = before.filter(|_| mismatch.is_none());
    let nanoseconds = command_line::resolution_is_ns(command.unwrap_or_default());
    let by_width = gathered.summaries.values().find_map(|summary| summary.unit);
    let unit = match by_width.or(nanoseconds.then_some(Nanos(1))).or(stated) {
        _ if options.nanoseconds => Nanos(1),
        Some(unit) => unit,
        None => Nanos::MICRO,
    };
    let mut imported = gathered.imported(command, unit, options)?;
    imported
        .remarks
        .extend(mismatch.map(|why| format!("the command line before the result is not read: {why}")));
    if is_cut {
        imported.remarks.push("the text ends within the last sample, which is omitted".into());
    }
    if passed > 0 {
        let lines = several(passed, "line between its own was", "lines between its own were");
        imported.remarks.push(format!("{lines} skipped"));
    }
    if unit == Nanos::MICRO && command.is_none() && stated.is_none() && by_width.is_none() {
        imported.remarks.push(TAKEN_AS_US.into());
    }
    Ok(imported)
}

/// Unit in the comments right above a block. A root's prompt is `#`, too.
fn stated_above(source: &SourceText, start: usize) -> Option<Nanos> {
    let lines = (start.saturating_sub(COMMENTS_ABOVE)..start).rev().map_while(|index| source.line(index));
    let is_comment =
        |text: &&str| text.starts_with('#') && !text.contains('=') && command_line::within(text).is_none();
    lines.map(|line| line.text.trim()).take_while(is_comment).find_map(unit_of_comment)
}

/// Unit of a comment that is about the unit of latencies.
fn unit_of_comment(text: &str) -> Option<Nanos> {
    let words = unit::words(text);
    let is_about = |word: &&str| {
        let word = word.to_lowercase();
        word.starts_with("unit") || word.starts_with("latenc") || word.starts_with("resolution")
    };
    words.iter().find(|word| is_about(word))?;
    unit::stated(text).filter(|&unit| unit <= Nanos::MILLI)
}

/// Maximum number of lines of comments above a block.
const COMMENTS_ABOVE: usize = 16;

/// Remark on a text whose unit had to be assumed.
const TAKEN_AS_US: &str = "latencies were taken as microseconds: this text does not say, -N takes them as ns";

/// Remark on samples of `--oscope`.
const REDUCED: &str = "each sample is the largest of several (--oscope): of the others nothing is known";

impl Gathered {
    /// Builds the run, and records of seconds if there are samples.
    fn imported(
        mut self,
        command: Option<&str>,
        unit: Nanos,
        options: &ImportOptions,
    ) -> Result<Imported, ImportError> {
        let is_open_ended = self.is_open_ended();
        let mut run = empty_run("cyclictest");
        if let Some(command) = command {
            command_line::fill(&mut run.plan, command);
        }
        self.describe(&mut run);
        run.plan.interval_ns = run.plan.interval_ns.or(options.interval);
        let affinity = command.map(command_line::cpus).unwrap_or_default();
        let mut threads = self.threads(unit)?;
        for (index, thread) in threads.iter_mut().enumerate() {
            let listed = (!affinity.is_empty()).then(|| affinity[index % affinity.len()]);
            thread.cpu = self.cpus.get(&index).copied().or(listed);
            thread.interval = thread.interval.or_else(|| interval_of(&run, index));
        }
        let (mut blocks, mut remarks) = (Vec::new(), Vec::new());
        if self.last_bucket.is_none() && !self.samples.is_empty() {
            blocks = samples::fill(&mut threads, &self.samples, unit)?;
            if self.samples.values().any(|samples| samples::is_reduced(samples)) {
                remarks.push(REDUCED.into());
            }
        }
        // A file that begins at a later thread does not have the earlier ones.
        let first = self.summaries.keys().next().copied().unwrap_or(0);
        if self.last_bucket.is_none() && self.max.is_none() && self.samples.is_empty() {
            threads.drain(..first.min(threads.len()));
        }
        if self.overflows.is_some() {
            let line = self.max.as_ref().map_or(0, |max| max.0);
            for (index, thread) in threads.iter().enumerate() {
                let named = |what| ImportError(format!("line {line}: thread {index}: {what}"));
                thread.largest_fault(unit).map_or(Ok(()), |fault| Err(named(fault)))?;
            }
        }
        let threads: Vec<_> = threads.into_iter().map(|thread| thread.of_cyclictest(unit)).collect();
        let line = self.min.as_ref().map_or(0, |min| min.0);
        // With `# Total:`, which onbeat writes too, rows may have been made from wider ones.
        let rows = if self.total.is_some() { RowEdges::Rounded } else { RowEdges::Exact };
        for (index, thread) in threads.iter().enumerate().filter(|_| !is_open_ended) {
            let named = |what| ImportError(format!("line {line}: thread {index}: {what}"));
            thread.rows_fault(unit, rows).map_or(Ok(()), |fault| Err(named(fault)))?;
        }
        fill(&mut run, threads, unit)?;
        run.integrity.extend(self.interrupts_of_management());
        if is_open_ended {
            run.integrity.push(Integrity {
                kind: IntegrityKind::Lost.into(),
                cpu: None,
                detail: "the rows do not say how many samples were beyond them: give the whole output, with \
                         '# Max Latencies:' and '# Histogram Overflows:'"
                    .into(),
                invalidates: true,
            });
        }
        Ok(Imported { run, blocks, remarks })
    }

    /// Number of threads, and true if the rows end with a sum.
    fn shape(&self) -> Result<(usize, bool), String> {
        let columns = self.columns.len();
        let stated = [&self.min, &self.avg].into_iter().flatten().map(|list| list.1.len()).next();
        let stated = stated
            .or_else(|| self.overflow_cycles.keys().last().map(|last| last + 1))
            .or_else(|| self.max.as_ref().map(|list| list.1.len()))
            .or_else(|| self.summaries.keys().last().map(|last| last + 1))
            .or_else(|| self.samples.keys().last().map(|last| last + 1));
        match stated {
            Some(0) => Err("no thread in it: expected a number after # Min Latencies:".into()),
            None if columns == 0 => {
                Err("no result in it: expected a histogram row or a T: line, as cyclictest prints them"
                    .into())
            }
            Some(threads) if columns == 0 || columns == threads => Ok((threads, false)),
            Some(threads) if columns == threads + 1 => match self.not_a_sum {
                None => Ok((threads, true)),
                Some(line) => {
                    Err(format!("line {line}: expected the sum of {threads} threads in the last column"))
                }
            },
            Some(threads) => {
                Err(format!("expected {threads} counts a row, as the comments say, found {columns}"))
            }
            None if self.rows == 1 && columns > 2 => Err("expected all rows, found one".into()),
            // Rows alone. Two columns that are equal throughout are a thread and its sum, as -H
            // gives since 2.7.
            None => {
                let is_sum =
                    columns > 1 && self.not_a_sum.is_none() && self.columns.iter().any(|c| !c.is_empty());
                Ok((columns - usize::from(is_sum), is_sum))
            }
        }
    }

    fn threads(&mut self, unit: Nanos) -> Result<Vec<ImportedThread>, String> {
        let (count, has_sum) = self.shape()?;
        if has_sum {
            self.columns.pop();
        }
        self.columns.resize(count, Vec::new());
        let (min, max) = (self.list(&self.min, count)?, self.list(&self.max, count)?);
        let (avg, overflows) = (self.list(&self.avg, count)?, self.list(&self.overflows, count)?);
        let total = self.list(&self.total, count)?;
        let no_histogram = self.last_bucket.is_none();
        let mut threads = Vec::with_capacity(count);
        for (index, buckets) in std::mem::take(&mut self.columns).into_iter().enumerate() {
            let held = buckets.iter().map(|bucket| i128::from(bucket.1)).sum::<i128>();
            if let Some(total) = total.get(index).filter(|total| **total != held && !no_histogram) {
                return Err(format!("# Total: says {total} for thread {index}: the rows hold {held}"));
            }
            let summary = self.summaries.get(&index);
            summary
                .filter(|_| !self.displayed.contains(&index))
                .and_then(Summary::fault)
                .map_or(Ok(()), |fault| Err(format!("thread {index}: {fault}")))?;
            let overflows = match overflows.get(index) {
                Some(&n) => {
                    u64::try_from(n).map_err(|_| format!("expected a count of overflows, found {n}"))?
                }
                None => 0,
            };
            let mean = avg.get(index).copied().or(summary.map(|s| s.avg));
            threads.push(ImportedThread {
                number: u32::try_from(index).ok(),
                summary_only: no_histogram,
                cycles: self.counted(index, total, overflows),
                buckets,
                overflows,
                end: self.last_bucket.and_then(|last| last.checked_add(1)),
                overflow_cycles: self.overflow_cycles.remove(&index).unwrap_or_default(),
                min: min.get(index).copied().or(summary.filter(|_| no_histogram).map(|s| s.min)),
                max: max.get(index).copied().or(summary.filter(|_| no_histogram).map(|s| s.max)),
                mean_ns: mean.and_then(|value| value.checked_mul(unit.0.into())?.try_into().ok()).map(Nanos),
                interval: summary.map(|s| Nanos(i64::from(s.interval_us) * Nanos::MICRO.0)),
                worst: self.worst(index, unit, summary),
                ..ImportedThread::default()
            });
        }
        for (index, thread) in threads.iter().enumerate() {
            let spike = self.spikes.get(&index).and_then(|spikes| spikes.first()).map(|spike| spike.0);
            let beyond = spike.zip(thread.max).filter(|&(spike, max)| max >= 0 && i128::from(spike) > max);
            if let Some((spike, max)) = beyond {
                return Err(format!(
                    "thread {index}: a spike of {spike} is above the maximum, {max}: give one run"
                ));
            }
        }
        self.overall_fault(count).map_or(Ok(()), Err)?;
        Ok(threads)
    }

    /// Number of a thread's wake-ups without a histogram: the `T:` line, else `# Total:` with the
    /// overflows.
    fn counted(&self, index: usize, total: &[i128], overflows: u64) -> Option<u64> {
        let total = total.get(index).and_then(|&total| u64::try_from(total).ok());
        let summary = self.summaries.get(&index).map(|summary| summary.cycles);
        summary.or_else(|| total?.checked_add(overflows))
    }

    /// Spikes of a thread, after its maximum if it is not among them; their time is CLOCK_MONOTONIC
    /// of the machine, in microseconds.
    fn worst(&self, index: usize, unit: Nanos, summary: Option<&Summary>) -> Vec<Worst> {
        let Some(spikes) = self.spikes.get(&index).filter(|spikes| !spikes.is_empty()) else {
            return Vec::new();
        };
        let ns = |value: i64, unit: Nanos| value.checked_mul(unit.0).map(Nanos);
        let max = summary.and_then(|summary| i64::try_from(summary.max).ok());
        let above = max.filter(|&max| spikes.iter().all(|spike| spike.0 < max));
        let above = above.map(|max| Worst { latency_ns: ns(max, unit), ..Worst::default() });
        let spikes = spikes.iter().map(|&(latency, time)| Worst {
            latency_ns: ns(latency, unit),
            mono_ns: i64::try_from(time).ok().and_then(|us| ns(us, Nanos::MICRO)),
            ..Worst::default()
        });
        above.into_iter().chain(spikes).take(WORST).collect()
    }

    /// Numbers of a comment: none, or one per thread and possibly one over all.
    fn list<'a>(&self, numbers: &'a Numbers, threads: usize) -> Result<&'a [i128], String> {
        match numbers {
            None => Ok(&[]),
            Some((_, list)) if list.len() == threads || list.len() == threads + 1 => Ok(&list[..threads]),
            Some((line, list)) => {
                Err(format!("line {line}: expected {threads} numbers, found {}", list.len()))
            }
        }
    }
}

/// Interval of a thread of the plan.
fn interval_of(run: &Run, index: usize) -> Option<Nanos> {
    let more = run.plan.distance_ns.map_or(Some(0), |distance| distance.0.checked_mul(index as i64))?;
    run.plan.interval_ns?.0.checked_add(more).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::OVERFLOW_LIMIT;
    use crate::foreign::testing::fixture;
    use model::vocabulary::{Ended, IdleStates};
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Run, String> {
        let options = ImportOptions { format: Some("cyclictest-text".into()), ..ImportOptions::default() };
        let results = crate::foreign::import(text.as_bytes(), &options).map_err(|error| error.0);
        results.map(|mut results| results.remove(0).run)
    }

    fn read(name: &str) -> Run {
        let run = crate::foreign::testing::import_one(fixture(name));
        assert_eq!(run.check(), Ok(()), "{name}");
        run
    }

    #[test]
    fn text_and_json_of_one_run_agree() {
        let json = crate::foreign::json_read::parse(fixture("smp-H60.json").as_bytes()).unwrap();
        let text = read("smp-H60.txt");
        for (a, b) in text.cpus.iter().zip(&json.cpus) {
            assert_eq!((&a.histogram, a.cycles, a.overflows), (&b.histogram, b.cycles, b.overflows));
            assert_eq!((a.min_ns, a.max_ns, a.p50_ns, a.p999_ns), (b.min_ns, b.max_ns, b.p50_ns, b.p999_ns));
            assert_eq!(
                (a.overflows_from_ns, b.overflows_from_ns),
                (Some(Nanos(60_000)), Some(Nanos(60_000)))
            );
        }
        assert_eq!(text.plan.idle, IdleStates::Held);
        let cycles = &text.cpus[0].overflow_cycles;
        assert_eq!((cycles.len(), cycles[0], cycles[12]), (13, 248, 1277));
        assert_eq!(text.cpus[0].worst, [], "the first ones are not the worst");
    }

    #[test]
    fn the_text_since_2_7_gives_the_same_run() {
        let (mut since, before) = (read("smp-H60-2.7.txt"), read("smp-H60.txt"));
        for (cpu, before) in since.cpus.iter_mut().zip(&before.cpus) {
            // Since then empty rows are omitted, and with them the histogram's end.
            assert!(cpu.overflows_from_ns <= before.overflows_from_ns && cpu.overflows_from_ns.is_some());
            cpu.overflows_from_ns = before.overflows_from_ns;
        }
        assert_eq!(since, before);
    }

    #[test]
    fn a_single_thread_with_a_sum_is_one_thread() {
        let run = read("single-H60-2.7.txt");
        assert_eq!(
            (run.cpus.len(), run.cpus[0].cycles, run.cpus[0].overflows),
            (1, Some(970 + 28), Some(28))
        );
    }

    #[test]
    fn rows_without_comments_are_read() {
        let brief = |text: &str| {
            parse(text).map(|run| run.cpus.iter().filter_map(|cpu| cpu.cycles).collect::<Vec<_>>())
        };
        assert_eq!(brief("1 2\t3\t5\n2 0\t4\t4\n"), Ok(vec![2, 7]));
        assert_eq!(brief("1 2\t3\t5\n2 0\t4\t5\n"), Ok(vec![2, 7, 10]));
        assert_eq!(brief("1 2\t2\n"), Ok(vec![2]));
        assert_eq!(brief("1 0\t0\n"), Ok(vec![0, 0]));
        assert_eq!(brief("1 0\n"), Ok(vec![0]));
        assert_eq!(brief("1 7\n"), Ok(vec![7]));
    }

    #[test]
    fn summaries_give_the_schedule() {
        let run = read("summary.txt");
        assert_eq!((run.plan.interval_ns, run.plan.distance_ns), (Some(Nanos::MILLI), Some(Nanos(500_000))));
        assert_eq!((run.plan.priority, run.cpus[1].cycles), (Some(80), Some(343)));
        assert_eq!((run.cpus[1].thread, run.cpus[1].cpu, run.cpus[1].overflows), (1, None, None));
        let live = read("live.txt");
        assert_eq!((live.plan.policy.as_str(), live.cpus[0].interval_ns), ("fifo", Some(Nanos::MILLI)));
        assert_eq!(live.cpus[0].cycles, Some(40));
        assert_eq!(read("break.txt").ended, Ended::Limit);
        assert_eq!(read("histfile.txt").cpus[1].overflows, Some(3));
        assert_eq!(read("single-h20.txt").cpus[0].overflow_cycles.len(), 20);
    }

    #[test]
    fn contradictions_name_the_line() {
        let text = fixture("smp-H60.txt");
        for (from, to, wanted) in [
            ("000015 000006\t", "000015 000007\t", "line 18"),
            ("000015 000006\t000004\t000010", "000015 000006\t000004", "line 18"),
            ("000015 ", "000014 ", "line 18"),
            ("# Total: 000001487", "# Total: 000001488", "Total"),
            ("# Min Latencies: 00014 00014", "# Min Latencies: 00014", "counts a row"),
            ("# Avg Latencies: 00027 00037", "# Avg Latencies: 00027", "expected 2 numbers"),
            ("# Min Latencies: 00014", "# Min Latencies: 00016", "below the minimum"),
            ("# Histogram Overflows: 00013", "# Histogram Overflows: -0013", "overflows"),
            ("# Thread 1:", "# Thread 0:", "duplicate"),
            ("000059", "99999999999999999999", "line 62"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(wanted) && !error.contains('\n'), "{to}: {error}");
        }
    }

    #[test]
    fn overflow_numbers_are_bounded_and_the_rest_counted() {
        let numbers = " 1".repeat(OVERFLOW_LIMIT + 5);
        let run = parse(&format!("1 1\n# Histogram Overflows: 65541\n# Thread 0:{numbers}\n")).unwrap();
        assert_eq!(run.cpus[0].overflow_cycles.len(), OVERFLOW_LIMIT);
        assert!(run.plan.notes.iter().any(|note| note.starts_with("5 cycle numbers of overflows")));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(
            text in "((# (Min|Max|Avg) Latencies:|# Total:|# Thread 0:|[0-9]{1,20})[ \t0-9]{0,30}\n|\
                     \\PC{0,20}\n){0,12}",
        ) {
            match parse(&text) {
                Ok(run) => prop_assert_eq!(run.check(), Ok(())),
                Err(error) => prop_assert!(!error.contains('\n')),
            }
        }
    }
}
