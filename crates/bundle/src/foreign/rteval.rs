//! `summary.xml` of rteval: a histogram of cyclictest or timerlat per core.

use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::rteval_xml::{RtevalMeasurement, RtevalSamples, RtevalSummary, parse};
use super::source::{DocumentShape, SourceText};
use super::{command_line, command_words};
use model::keyword::Word;
use model::run::Run;
use model::units::Nanos;
use model::vocabulary::{Ended, Policy, Preempt, Quantity};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "rteval",
    tool: "rteval's summary.xml",
    versions: "3.7, 3.8",
    origin: "run here",
    carries: "histogram, count, least, mean and largest latency per core; command line, kernel, load, times",
    hides: "all statistics where the maximum is beyond the buckets; with timerlat the IRQ, thread and user \
            latencies in one histogram, three samples per wake-up, and none of rtla's from 6.13 on",
    find,
    reader: Reader::Run(read),
};

/// Report that rteval prints.
pub(super) const REPORT: ForeignFormat = ForeignFormat {
    id: "rteval-report",
    tool: "rteval's report",
    versions: "3.7, 3.8",
    origin: "run here",
    carries: "the summary without the histograms",
    hides: "",
    find: find_report,
    reader: Reader::Refused("give its summary.xml, which has the histograms"),
};

/// Quantity of timerlat's histograms.
const MIXED: &str = "irq+thread+user";

fn find(source: &SourceText) -> Vec<ResultSpan> {
    let after = source.text().split_once("<rteval").map(|parts| parts.1);
    let is_root = after.is_some_and(|rest| rest.starts_with([' ', '>', '\n', '\t', '\r']));
    let named = source.shape == DocumentShape::Xml && is_root;
    named.then(|| ResultSpan::strong(0..source.lines().len())).into_iter().collect()
}

fn find_report(source: &SourceText) -> Vec<ResultSpan> {
    let is_title = |text: &str| text.trim().starts_with("rteval (v") && text.trim().ends_with("report");
    let lines = source.lines().enumerate().filter(|(_, line)| is_title(line.text));
    lines.map(|(index, _)| ResultSpan::strong(index..index + 1)).collect()
}

fn read(source: &SourceText, _: &ResultSpan, _: &ImportOptions) -> Result<Imported, ImportError> {
    let mut summary = parse(source.text())?;
    if summary.measurements.len() > 1 {
        let line = summary.measurements[1].line;
        return Err(ImportError(format!("line {line}: a second measurement: expected one in a summary")));
    }
    let Some(measurement) = summary.measurements.pop() else {
        return Err(ImportError::new(
            "the summary has no measurement of latency: expected one by cyclictest or timerlat",
        ));
    };
    let mut run = empty_run(format!("rteval {}", summary.version).trim());
    describe(&mut run, summary);
    let is_mixed = measurement.module == "timerlat";
    schedule(&mut run, &measurement);
    let mut remarks = Vec::new();
    if is_mixed {
        let what = "IRQ, thread and user latency are in one histogram, three samples per wake-up";
        run.plan.notes.push(what.into());
        remarks.push(format!("{what}: rtla's own output separates them"));
    }
    let priority = measurement.cores.first().and_then(|core| core.priority);
    if measurement.cores.iter().all(|core| core.priority == priority) {
        run.plan.priority = run.plan.priority.or(priority);
    }
    let (interval, end) = (run.plan.interval_ns, command_line::buckets(&measurement.command));
    let unit = unit_of(&measurement)?;
    for samples in measurement.cores.iter().chain(&measurement.system) {
        check(samples).map_err(|what| ImportError(format!("line {}: {what}", samples.line)))?;
    }
    let mut threads = Vec::new();
    for samples in chosen(measurement)? {
        let line = samples.line;
        let thread = thread_of(samples, unit).map_err(|error| error.at(line))?;
        let measures = if is_mixed { Word::from(MIXED) } else { Quantity::Wakeup.into() };
        threads.push(ImportedThread { measures, interval, end, ..thread });
    }
    if threads.iter().any(|thread| thread.cpu.is_none()) {
        run.plan.notes.push("all cores in one histogram".into());
    }
    fill(&mut run, threads, unit)?;
    Ok(Imported { run, remarks, ..Imported::default() })
}

fn describe(run: &mut Run, summary: RtevalSummary) {
    let host = &mut run.host;
    (host.release, host.machine, host.cmdline) = (summary.release, summary.machine, summary.cmdline);
    if summary.is_rt {
        host.preempt = Preempt::Rt.into();
    }
    host.clocksource = summary.clocksource;
    if !summary.load.is_empty() {
        run.plan.notes.push(format!("load average {}", summary.load));
    }
    run.plan.notes.extend(summary.loads.into_iter().map(|load| format!("load: {load}")));
}

/// Fills the schedule from the command line of the measuring program.
fn schedule(run: &mut Run, measurement: &RtevalMeasurement) {
    let command = &measurement.command;
    // Some versions write the options alone.
    let is_bare = command.starts_with('-');
    let whole = if is_bare { format!("{} {command}", measurement.module) } else { command.clone() };
    if measurement.module == "cyclictest" {
        command_line::fill(&mut run.plan, &whole);
    } else if let Some(value) = command_words::option(&whole, "-P", "--priority") {
        let (policy, priority) = value.split_once(':').unwrap_or((value, ""));
        run.plan.priority = priority.parse().ok();
        run.plan.policy = match policy {
            "f" => Policy::Fifo.into(),
            "r" => Policy::Rr.into(),
            "o" => Policy::Other.into(),
            "d" => Word::from("deadline"),
            _ => Word::default(),
        };
    }
    if let Some(limit) = measurement.limit {
        run.plan.limit_ns = Some(limit);
        run.ended = Ended::Limit.into();
    }
    let span = measurement.end_us.zip(measurement.begin_us).and_then(|(end, begin)| end.checked_sub(begin));
    run.elapsed_ns = span.filter(|&us| us > 0).and_then(|us| us.checked_mul(Nanos::MICRO.0)).map(Nanos);
}

/// Chooses the cores if all are present, else the system's histogram of all of them.
fn chosen(measurement: RtevalMeasurement) -> Result<Vec<RtevalSamples>, ImportError> {
    let RtevalMeasurement { module, line, cores, system, .. } = measurement;
    let total = cores.iter().try_fold(0u64, |sum, core| sum.checked_add(core.count?));
    let counted = system.as_ref().and_then(|system| system.count);
    let chosen = match system {
        Some(system) if cores.is_empty() || total != counted => vec![system],
        _ => cores,
    };
    if chosen.is_empty() || chosen.iter().any(|samples| samples.count.is_none()) {
        let larger = if module == "cyclictest" { " with a larger --cyclictest-buckets" } else { "" };
        return Err(ImportError(format!(
            "line {line}: rteval dropped the statistics of {module}, because the maximum is beyond its \
             buckets: run it again{larger}"
        )));
    }
    if chosen.iter().all(|samples| samples.count == Some(0)) {
        return Err(ImportError(format!(
            "line {line}: rteval counted no sample of {module}: give the output of {module} itself"
        )));
    }
    Ok(chosen)
}

/// Common unit of all statistics.
fn unit_of(measurement: &RtevalMeasurement) -> Result<Nanos, ImportError> {
    let all = measurement.cores.iter().chain(&measurement.system);
    let mut units = all.filter_map(|samples| Some((samples.line, samples.unit?)));
    let Some((_, first)) = units.next() else { return Ok(Nanos::MICRO) };
    match units.find(|other| other.1 != first) {
        Some((line, _)) => Err(ImportError(format!("line {line}: expected one unit in all statistics"))),
        None => Ok(first),
    }
}

/// Compares the count of the statistics with the histogram, if there is one.
fn check(samples: &RtevalSamples) -> Result<(), ImportError> {
    let held = samples.rows.iter().try_fold(0u64, |sum, row| sum.checked_add(row.1));
    if samples.rows.is_empty() || held == samples.count {
        return Ok(());
    }
    let (held, count) = (held.unwrap_or(u64::MAX), samples.count.unwrap_or_default());
    Err(ImportError(format!("<samples> is {count} and the buckets hold {held}: give the whole file")))
}

fn thread_of(samples: RtevalSamples, unit: Nanos) -> Result<ImportedThread, ImportError> {
    let RtevalSamples { cpu, count, min, mean, max, mut rows, .. } = samples;
    rows.retain(|row| row.1 > 0);
    let whole = |ns: Option<Nanos>| ns.map(|ns| i128::from(ns.0 / unit.0));
    let (min, max) = (whole(min), whole(max));
    let summary_only = rows.is_empty() && count != Some(0);
    let ends = rows.first().zip(rows.last()).map(|(first, last)| (first.0.into(), last.0.into()));
    if ends.is_some_and(|(first, last)| (min.unwrap_or(first), max.unwrap_or(last)) != (first, last)) {
        return Err("<minimum> and <maximum> are not the first and last bucket: give the whole file".into());
    }
    Ok(ImportedThread {
        cpu,
        summary_only,
        cycles: count,
        buckets: rows,
        min,
        max,
        mean_ns: mean,
        ..ImportedThread::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::import;
    use crate::foreign::testing::import_one;
    use model::units::Cpu;
    use proptest::prelude::*;

    macro_rules! summary {
        ($name:literal) => {
            include_bytes!(concat!("../../../../tests/fixtures/foreign/rteval/", $name, ".summary.xml"))
        };
    }

    fn run_of(bytes: &[u8]) -> Imported {
        let mut runs = import(bytes, &ImportOptions::default()).unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].run.check(), Ok(()));
        runs.remove(0)
    }

    fn refusal(bytes: &[u8]) -> String {
        let error = import(bytes, &ImportOptions::default()).unwrap_err().0;
        assert!(!error.contains('\n'), "{error}");
        error
    }

    /// CPU, samples, least, mean in thousandths, and largest, in microseconds.
    fn numbers(run: &Run) -> Vec<(u32, u64, i64, i64, i64)> {
        let us = |ns: Option<Nanos>| ns.unwrap().0 / 1000;
        let cpus = run.cpus.iter();
        cpus.map(|cpu| {
            let mean = cpu.mean_ns.unwrap().0;
            (cpu.cpu.unwrap().0, cpu.cycles.unwrap(), us(cpu.min_ns), mean, us(cpu.max_ns))
        })
        .collect()
    }

    #[test]
    fn cores_agree_with_rtevals_statistics() {
        let run = run_of(summary!("3.8-cyclictest")).run;
        let truth = [(0, 7659, 32, 135_817, 7408), (1, 7651, 17, 110_259, 7586)];
        assert_eq!(numbers(&run), truth);
        assert_eq!((run.plan.tool.as_str(), run.plan.priority), ("rteval 3.8", Some(95)));
        assert_eq!((run.plan.interval_ns, run.elapsed_ns), (Some(Nanos::MILLI), Some(Nanos(8_049_454_000))));
        assert_eq!(
            (run.host.release.as_str(), &run.host.preempt),
            ("7.3.4+deb13-rt-amd64", &Preempt::Rt.into())
        );
        assert_eq!(run.host.clocksource, "tsc");
        assert_eq!(run.cpus[0].p50_ns, Some(Nanos(107_000)), "the median is 106");

        let run = run_of(summary!("3.8-break")).run;
        assert_eq!(numbers(&run), [(0, 413, 55, 106_351, 4510), (1, 415, 41, 104_296, 5404)]);
        assert_eq!((run.plan.limit_ns, run.ended), (Some(Nanos(2_000_000)), Ended::Limit.into()));

        let gz = include_bytes!("../../../../tests/fixtures/foreign/rteval/3.7-loaded.summary.xml.gz");
        let run = run_of(gz).run;
        assert_eq!(numbers(&run), [(1, 13_500, 3, 2_732_850, 154_440)]);
        assert_eq!(run.plan.notes, ["load average 33.56", "load: hackbench -P -g 3 -l 1000 -s 1000"]);
    }

    #[test]
    fn timerlats_mixture_is_no_wake_up() {
        let imported = run_of(summary!("3.8-timerlat-612"));
        let truth = [(0, 1548, 50, 123_563, 2396), (1, 1524, 50, 127_349, 2128)];
        assert_eq!(numbers(&imported.run), truth);
        assert!(imported.run.cpus.iter().all(|cpu| cpu.quantity() == MIXED));
        assert_eq!((imported.run.plan.policy, imported.run.plan.priority), (Policy::Fifo.into(), Some(95)));
        assert!(imported.remarks[0].contains("rtla's own output"));
    }

    #[test]
    fn summaries_without_statistics_are_refused() {
        for bytes in [&summary!("3.8-beyond")[..], summary!("3.7-cyclictest")] {
            let error = refusal(bytes);
            assert!(error.contains("line ") && error.contains("larger --cyclictest-buckets"), "{error}");
        }
        assert!(refusal(summary!("3.8-timerlat")).contains("counted no sample of timerlat"));
    }

    #[test]
    fn without_all_cores_the_system_counts() {
        let text = "<?xml version='1.0' encoding='utf-8'?><rteval version='3.7'><uname>\
            <kernel is_RT='1'>6.6.0-rt</kernel><arch>x86_64</arch></uname><Measurements><Profile>\
            <cyclictest command_line='-i100 -qmu -h 3500 -p95 --threads=2'><system><statistics>\
            <samples>120000</samples><minimum unit='us'>2</minimum><maximum unit='us'>38</maximum>\
            <mean unit='us'>3.4</mean></statistics><histogram nbuckets='3'>\
            <bucket index='2' value='100'/><bucket index='3' value='119899'/>\
            <bucket index='38' value='1'/></histogram></system><core id='0' priority='95'><statistics>\
            <samples>60000</samples><minimum unit='us'>2</minimum><maximum unit='us'>38</maximum>\
            </statistics></core></cyclictest></Profile></Measurements></rteval>";
        let run = import_one(text);
        let cpu = &run.cpus[0];
        assert_eq!((run.cpus.len(), cpu.cpu, cpu.cycles), (1, None, Some(120_000)));
        assert_eq!((cpu.min_ns, cpu.max_ns), (Some(Nanos(2000)), Some(Nanos(38_000))));
        assert_eq!(run.plan.interval_ns, Some(Nanos(100_000)));
        // With the other core, which has its share, both are read, as summaries.
        let other = "<core id='3'><statistics><samples>60000</samples></statistics></core></cyclictest>";
        let run = import_one(&text.replace("</cyclictest>", other));
        let cpus: Vec<_> = run.cpus.iter().map(|cpu| (cpu.cpu, cpu.max_ns, cpu.is_summary())).collect();
        assert_eq!(cpus, [(Some(Cpu(0)), Some(Nanos(38_000)), true), (Some(Cpu(3)), None, true)]);
    }

    #[test]
    fn the_printed_report_is_named() {
        let text = include_bytes!("../../../../tests/fixtures/foreign/rteval/3.8-break.screen.txt");
        let error = refusal(text);
        assert!(error.contains("this is rteval's report: give its summary.xml"), "{error}");
    }

    #[test]
    fn damaged_files_are_refused_with_their_line() {
        let whole = String::from_utf8_lossy(summary!("3.8-break")).into_owned();
        for (from, to, wanted) in [
            ("<samples>413</samples>", "<samples>412</samples>", "<samples> is 412 and the buckets hold 413"),
            ("<samples>413</samples>", "<samples>x</samples>", "expected a count in <samples>"),
            ("<bucket index=\"5404\" value=\"1\"/>", "", "the buckets hold 827"),
            ("<maximum unit=\"us\">4510", "<maximum unit=\"ms\">4510", "expected the unit of the other"),
            ("<core id=\"1\"", "<core id=\"0\"", "duplicate core 0"),
            ("<core id=\"1\"", "<core id=\"x\"", "expected the number of a CPU"),
            ("</core>", "</cor>", "damaged XML"),
            ("<cyclictest ", "<sysstat ", "damaged XML"),
        ] {
            let error = refusal(whole.replacen(from, to, 1).as_bytes());
            assert!(error.contains(wanted), "{from}: {error}");
        }
        let error = refusal(&whole.as_bytes()[..whole.len() - 40]);
        assert!(error.contains("damaged XML"), "{error}");
        let end = whole.rfind("    </cyclictest>").unwrap();
        assert!(refusal(&whole.as_bytes()[..end]).contains("ends within 'cyclictest'"));
        assert!(refusal(b"<rteval version=\"3.8\"></rteval>").contains("no measurement of latency"));
    }

    const ELEMENTS: &[&str] = &[
        "<rteval version='3.8'>",
        "</rteval>",
        "<Measurements>",
        "</Measurements>",
        "<core id='1'>",
        "</core>",
        "<cyclictest command_line='cyclictest -h 9'>",
        "</cyclictest>",
        "<system>",
        "</system>",
        "<statistics>",
        "</statistics>",
        "<samples>3</samples>",
        "<minimum unit='us'>2</minimum>",
        "<maximum unit='us'>2</maximum>",
        "<histogram>",
        "</histogram>",
        "<bucket index='2' value='3'/>",
        "<bucket index='9'/>",
        "&amp;",
        "<!-- -->",
    ];

    proptest! {
        #[test]
        fn a_file_cut_anywhere_is_refused(end in 0usize..7000) {
            prop_assert!(import(&summary!("3.8-beyond")[..end], &ImportOptions::default()).is_err());
        }

        #[test]
        fn any_elements_are_consistent_or_refused(
            parts in proptest::collection::vec(proptest::sample::select(ELEMENTS), 0..24),
        ) {
            let text = format!("<rteval><Measurements><cyclictest>{}", parts.concat());
            for text in [text.clone(), format!("{text}</cyclictest></Measurements></rteval>")] {
                if let Ok(runs) = import(text.as_bytes(), &ImportOptions::default()) {
                    prop_assert!(runs.iter().all(|one| one.run.check().is_ok()));
                }
            }
        }
    }
}
