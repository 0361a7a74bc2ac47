//! Run of a table of Xenomai's `latency` or EVL's `latmus`.

use super::cobalt_line::{CobaltLine, SampleKind, SecondLatencies, cpu_of, parse, seconds};
use super::error::ImportError;
use super::format::{Imported, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill, preempt_of};
use super::source::SourceText;
use super::{BUCKET_LIMIT, command_words, decimal, unit};
use model::keyword::Word;
use model::run::{Block, Run};
use model::text::several;
use model::units::{Cpu, Nanos};
use model::vocabulary::{IdleStates, Quantity};

/// Default width of a bucket, without -B, which only `latency` has.
const WIDTH: Nanos = Nanos::MICRO;

/// Content of the lines of a run.
#[derive(Default)]
struct Gathered<'a> {
    /// Number of the last line.
    line: usize,
    context: &'a str,
    period: Option<Nanos>,
    cpu: Option<Cpu>,
    rows: Vec<SecondLatencies>,
    best: Option<(Nanos, Nanos)>,
    total: Option<SecondLatencies>,
    elapsed_s: Option<u64>,
    buckets: Vec<(u64, u64)>,
    /// Number of samples that the statistics state.
    counted: Option<u64>,
    header: Vec<(&'a str, &'a str)>,
}

impl<'a> Gathered<'a> {
    fn take(&mut self, line: CobaltLine<'a>) -> Result<(), ImportError> {
        match line {
            CobaltLine::Period(period) => self.period = Some(period),
            CobaltLine::WarmUp(cpu) => self.cpu = self.cpu.or(cpu),
            CobaltLine::Time(_, context) => {
                self.context = context;
                let parts = context.split(',').map(str::trim);
                self.cpu = self.cpu.or(parts.clone().find_map(cpu_of));
                let period = parts.clone().find_map(|part| part.strip_suffix(" period"));
                self.period = self.period.or(period.and_then(span));
            }
            CobaltLine::Row { second, best, worst } => {
                self.rows.push(second);
                self.best = Some((best, worst));
            }
            CobaltLine::Total(total, elapsed_s) => {
                (self.total, self.elapsed_s) = (Some(total), Some(elapsed_s));
            }
            CobaltLine::Bucket(SampleKind::All, lower, count) => self.take_bucket(lower, count)?,
            CobaltLine::Cell(lower, count) if !self.header.is_empty() => self.take_bucket(lower, count)?,
            CobaltLine::Statistics(SampleKind::All, samples) => self.counted = Some(samples),
            CobaltLine::Header(name, value) => self.header.push((name, value)),
            _ => {}
        }
        Ok(())
    }

    fn take_bucket(&mut self, lower: u64, count: u64) -> Result<(), ImportError> {
        if let Some(last) = self.buckets.last().filter(|last| last.0 >= lower) {
            return Err(ImportError(format!(
                "bucket {lower} after {}: expected ascending rows of one histogram",
                last.0
            )));
        }
        if self.buckets.len() >= BUCKET_LIMIT {
            return Err(ImportError(format!("expected at most {BUCKET_LIMIT} buckets")));
        }
        self.buckets.push((lower, count));
        Ok(())
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        self.header.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }

    /// Uses the header of `latmus -g` as the total.
    fn conclude(&mut self) -> Result<(), ImportError> {
        let value = |name: &str| match self.header(name) {
            Some(text) => decimal::in_ns(text, Nanos::MICRO)
                .ok_or_else(|| ImportError(format!("expected a number after # {name}:")))
                .map(Some),
            None => Ok(None),
        };
        let (min, avg, max) = (value("min latency")?, value("avg latency")?, value("max latency")?);
        if let (Some(min), Some(avg), Some(max)) = (min, avg, max) {
            self.total = Some(SecondLatencies { min, avg, max, overruns: 0 });
        } else if !self.buckets.is_empty() && !self.header.is_empty() {
            return Err("expected # min latency:, # avg latency: and # max latency: before the rows".into());
        }
        self.elapsed_s = self.elapsed_s.or(self.header("duration (hhmmss)").and_then(seconds));
        self.cpu = self.cpu.or(self.header("thread affinity").and_then(cpu_of));
        self.period = self.period.or(self.header("sampling period").and_then(span));
        let Some(total) = self.total else { return Ok(()) };
        if let Some((best, worst)) = self.best.filter(|(best, worst)| *best < total.min || *worst > total.max)
        {
            return Err(ImportError(format!(
                "the total, {} to {} ns, is narrower than its rows, {} to {}: give one run at a time",
                total.min.0, total.max.0, best.0, worst.0
            )));
        }
        Ok(())
    }

    /// Builds the only thread; the caller fills its extremes, which have signs.
    fn thread(&mut self, width: Nanos) -> Result<ImportedThread, ImportError> {
        let extremes = self.total.map(|total| (total.min, total.max));
        let (min, max) = extremes.or(self.best).ok_or("neither rows nor a total: give the whole output")?;
        let mut buckets = std::mem::take(&mut self.buckets);
        buckets.retain(|bucket| bucket.1 > 0);
        let held = buckets.iter().try_fold(0u64, |sum, bucket| sum.checked_add(bucket.1));
        let held = held.ok_or("more than 2^64 samples")?;
        let cycles = self.counted.or(Some(held).filter(|&held| held > 0));
        let mut thread = ImportedThread {
            cycles,
            summary_only: true,
            mean_ns: self.total.map(|total| total.avg),
            interval: self.period,
            cpu: self.cpu,
            measures: measures(self.header("context").unwrap_or(self.context)),
            ..ImportedThread::default()
        };
        let Some((&(first, _), &(last, beyond))) = buckets.first().zip(buckets.last()) else {
            return Ok(thread);
        };
        if self.header.is_empty() && self.counted.is_none() {
            return Err("the histogram ends without its statistics: give the whole output".into());
        }
        if cycles != Some(held) {
            let counted = cycles.unwrap_or_default();
            return Err(ImportError(format!(
                "the statistics say {counted} samples and the rows hold {held}"
            )));
        }
        // For samples before their time the histogram has the absolute value.
        if min.0 < 0 {
            return Ok(thread);
        }
        let bucket_of = |ns: Nanos| (ns.0 / width.0) as u64;
        if bucket_of(min) != first || bucket_of(max) < last {
            return Err(
                "the histogram contradicts the least and largest latency: give the whole output".into()
            );
        }
        // The last row holds all longer samples.
        let is_cut = bucket_of(max) > last;
        if is_cut {
            buckets.pop();
            (thread.overflows, thread.end) = (beyond, last.checked_mul(width.0 as u64));
        }
        let scaled = buckets.iter().map(|&(lower, count)| Some((lower.checked_mul(width.0 as u64)?, count)));
        thread.buckets = scaled.collect::<Option<_>>().ok_or("a bucket beyond 292 years")?;
        (thread.width, thread.summary_only) = (width.0 as u64, false);
        Ok(thread)
    }

    /// Records of seconds: both tools print a row after as many samples as a second has.
    fn blocks(&self) -> Vec<Block> {
        let of_second = self.period.map(|period| (Nanos::SECOND.0 / period.0.max(1)) as u64);
        let (Some(cpu), Some(n)) = (self.cpu, of_second.filter(|&n| n > 0)) else { return Vec::new() };
        // Missing rows would shift the others.
        if self.elapsed_s.is_some_and(|seconds| seconds.abs_diff(self.rows.len() as u64) > 1) {
            return Vec::new();
        }
        let block = |(at, row): (usize, &SecondLatencies)| Block {
            cpu,
            mono_ns: Nanos((at as i64).saturating_mul(Nanos::SECOND.0)),
            span_ns: Some(Nanos::SECOND),
            n,
            max_ns: Some(row.max),
            ..Block::default()
        };
        self.rows.iter().enumerate().map(block).collect()
    }
}

/// Parses `1000 us` and `1000 microseconds`.
fn span(text: &str) -> Option<Nanos> {
    let (number, unit) = text.trim().split_once(char::is_whitespace)?;
    decimal::in_ns(number, unit::stated(unit)?).filter(|span| span.0 > 0)
}

/// Quantity of a context: all but tasks end in the interrupt.
fn measures(context: &str) -> Word<Quantity> {
    let context = context.split(',').next().unwrap_or_default();
    let in_irq = ["irq", "handler", "gpio"].iter().any(|word| context.contains(word));
    if in_irq { Quantity::Irq.into() } else { Quantity::Wakeup.into() }
}

pub(super) fn read(source: &SourceText, finding: &ResultSpan, tool: &str) -> Result<Imported, ImportError> {
    let mut gathered = Gathered::default();
    for line in source.slice(finding.lines.clone()) {
        let at = |error: ImportError| error.at(line.number);
        gathered.line = line.number;
        gathered.take(parse(line.text).map_err(at)?).map_err(at)?;
    }
    let line = gathered.line;
    let at = |error: ImportError| error.at(line);
    gathered.conclude().map_err(at)?;
    let blocks = gathered.blocks();
    let command =
        command_words::before(source, finding.lines.start + 1, |line| command_words::within(line, "latency"));
    let width = command.and_then(|command| command_words::option(command, "-B", "--bucketsize"));
    let width = width.and_then(|text| decimal::in_ns(text, Nanos(1))).filter(|width| width.0 > 0);
    let thread = gathered.thread(width.unwrap_or(WIDTH)).map_err(at)?;
    let mut run = empty_run(tool);
    describe(&mut run, &gathered);
    fill(&mut run, vec![thread], Nanos(1)).map_err(|what| at(what.into()))?;
    let extremes = gathered.total.map(|total| (total.min, total.max)).or(gathered.best);
    for cpu in &mut run.cpus {
        (cpu.min_ns, cpu.max_ns) = (extremes.map(|ends| ends.0), extremes.map(|ends| ends.1));
    }
    Ok(Imported { run, blocks, remarks: Vec::new() })
}

fn describe(run: &mut Run, gathered: &Gathered) {
    let plan = &mut run.plan;
    plan.interval_ns = gathered.period;
    let parts = gathered.context.split(',').map(str::trim);
    let priority = parts.clone().find_map(|part| part.strip_prefix("priority "));
    plan.priority = gathered.header("thread priority").or(priority).and_then(|text| text.parse().ok());
    let context = gathered.header("context").or(parts.clone().next()).unwrap_or_default();
    if !context.is_empty() {
        plan.notes.push(format!("context: {context}"));
    }
    let overruns = gathered.total.or(gathered.rows.last().copied()).map_or(0, |last| last.overruns);
    if overruns > 0 {
        plan.notes.push(several(overruns, "overrun", "overruns"));
    }
    if gathered.total.is_none() {
        plan.notes.push("the text ends before the tool's own total".into());
    }
    if gathered.header("C-state") == Some("restricted") {
        plan.idle = IdleStates::Held.into();
    }
    run.elapsed_ns =
        gathered.elapsed_s.and_then(|s| i64::try_from(s).ok()?.checked_mul(Nanos::SECOND.0)).map(Nanos);
    if let Some(version) = gathered.header("Linux version") {
        run.host.release = version.split(' ').next().unwrap_or_default().into();
        run.host.kernel = version.find('#').map_or("", |at| &version[at..]).into();
        run.host.preempt = preempt_of(&run.host.kernel);
    }
    if let Some(image) = gathered.header("BOOT_IMAGE") {
        run.host.cmdline = format!("BOOT_IMAGE={image}");
    }
    run.host.clocksource = gathered.header("clocksource").unwrap_or_default().into();
}
