//! Results of other tools: recognised by what they say of themselves, and read as runs.
//!
//! Functions from values to values: no file is opened here, and whatever bytes come in, an error of
//! one line comes out at worst. A bucket of theirs is a half-open row of onbeat's, and what their
//! format does not carry stays null. A format is a file with a [`Format`] record and a line in
//! [`FORMATS`]; docs/formats.md is made of the records.

mod braces;
mod cobalt;
mod cobalt_find;
mod cobalt_line;
mod command_line;
mod command_words;
mod cyclictest;
mod cyclictest_check;
mod cyclictest_find;
mod cyclictest_gather;
pub mod cyclictest_hist;
pub mod cyclictest_json;
mod cyclictest_line;
mod cyclictest_text;
mod date;
mod decimal;
mod error;
mod evl;
mod format;
mod getopt;
mod hwlatdetect;
mod imported;
#[cfg(test)]
mod in_logs;
mod jitterdebugger;
mod jitterdebugger_text;
mod json_in_log;
mod json_read;
mod linuxcnc;
mod log_lines;
mod log_prefix;
mod log_shape;
pub mod maxima;
mod micros;
mod oslat;
mod oslat_cores;
mod oslat_text;
pub mod page;
mod queuelat;
#[cfg(test)]
mod real_files;
#[cfg(test)]
mod real_results;
mod refused;
mod rows_alone;
mod rt_tests;
mod rteval;
mod rteval_xml;
mod rtla;
mod rtla_command;
mod rtla_hist;
mod rtla_hist_check;
mod rtla_hist_find;
mod rtla_hist_table;
mod rtla_shared;
mod rtla_top;
mod rtla_top_lines;
mod rtla_width;
mod samples;
mod source;
mod stress_ng;
mod stress_ng_message;
mod t_line;
#[cfg(test)]
mod testing;
mod thread_pairs;
mod thread_plan;
mod unit;
mod xenomai;

use model::run::Run;
use model::text::several;
use model::units::Nanos;

pub use error::ImportError;
pub use format::{Confidence, ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use source::{DocumentShape, SourceText};

/// The largest file that is read, in bytes: 2^20 buckets of eight threads fit, as `-N -H1000000`
/// writes them.
pub const FILE_LIMIT: usize = 64 << 20;

/// The most threads that are read: the kernel has no more CPUs.
pub const THREAD_LIMIT: usize = model::units::CPU_LIMIT as usize;

/// The most non-empty buckets, over all threads, that are read.
pub const BUCKET_LIMIT: usize = 4 << 20;

/// The most overflow cycle numbers that are kept over all threads; a note counts the others.
pub const OVERFLOW_LIMIT: usize = 1 << 16;

/// The most results that are read from one file.
pub const RESULT_LIMIT: usize = 256;

/// Every format, in the order of docs/formats.md.
pub const FORMATS: &[&ForeignFormat] = &[
    &cyclictest::TEXT,
    &cyclictest::JSON,
    &rtla::TIMERLAT_HIST,
    &rtla::TIMERLAT_TOP,
    &rtla::OSNOISE_HIST,
    &rtla::OSNOISE_TOP,
    &rtla::BARE_HIST,
    &rt_tests::CYCLICDEADLINE_JSON,
    &t_line::CYCLICDEADLINE_TEXT,
    &hwlatdetect::FORMAT,
    &oslat::JSON,
    &oslat::TEXT,
    &rt_tests::PMQTEST_JSON,
    &thread_pairs::PMQTEST_TEXT,
    &rt_tests::PTSEMATEST_JSON,
    &thread_pairs::PTSEMATEST_TEXT,
    &queuelat::FORMAT,
    &rt_tests::SIGNALTEST_JSON,
    &t_line::SIGNALTEST_TEXT,
    &rt_tests::SIGWAITTEST_JSON,
    &thread_pairs::SIGWAITTEST_TEXT,
    &rt_tests::SVSEMATEST_JSON,
    &thread_pairs::SVSEMATEST_TEXT,
    &evl::FORMAT,
    &jitterdebugger::FORMAT,
    &jitterdebugger_text::FORMAT,
    &linuxcnc::FORMAT,
    &rteval::FORMAT,
    &rteval::REPORT,
    &stress_ng::FORMAT,
    &xenomai::FORMAT,
    &rtla::AUTO_ANALYSIS,
    &oslat::UNFINISHED,
    &refused::FIO,
    &refused::HACKBENCH,
    &refused::IPERF3,
    &refused::LATENCYTOP,
    &refused::LAVA_RESULTS,
    &refused::PERF_SCHED,
    &refused::PING,
    &refused::PI_STRESS,
    &refused::PIP_STRESS,
    &refused::RT_APP_LOG,
    &refused::RT_APP_SCREEN,
    &refused::RT_MIGRATE_TEST,
    &refused::RT_TESTS_OTHER,
    &refused::SCHBENCH,
    &refused::SSDD,
    &refused::SYSBENCH,
    &stress_ng::OTHER,
];

/// What cyclictest's JSON contains of a run and [`Run`] does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CyclictestContext {
    /// The command and its arguments, joined with blanks.
    pub command_line: String,
    /// The machine's name, as `uname -n`; `""` where it is left out.
    pub node_name: String,
    /// Start of the run in seconds since 1970, UTC.
    pub started_unix_s: i64,
    /// End of the run in seconds since 1970, UTC.
    pub ended_unix_s: i64,
    /// What the command ends with; parsers take 0 as a pass.
    pub return_code: i32,
}

/// A result in a file, and the format that recognises it.
struct Recognised<'a> {
    source: &'a SourceText,
    format: &'static ForeignFormat,
    finding: ResultSpan,
}

impl Recognised<'_> {
    fn read(&self, options: &ImportOptions) -> Result<Imported, ImportError> {
        let Recognised { source, format, finding } = self;
        if let Some(line) = source.wrapped_within(&finding.lines) {
            return Err(ImportError(format!(
                "line {line}: a terminal wrapped it within its last number: give the output as it was printed"
            )));
        }
        let mut one = match format.reader {
            Reader::Run(read) => read(source, finding, options)?,
            Reader::Refused(instead) => {
                return Err(ImportError(format!("this is {}: {instead}", format.tool)));
            }
        };
        if finding.lines.end.checked_sub(1).is_some_and(|last| source.is_cut_at(last)) {
            one.remarks.push("the text ends within a line: its last number may be cut".into());
        }
        if self.is_followed_by_a_part() {
            one.remarks.push("the text ends within a line of the result: that line is not read".into());
        }
        let kernel = source.kernel_lines_within(&finding.lines) as u64;
        if kernel > 0 {
            let lines = several(kernel, "line of the kernel's log was", "lines of the kernel's log were");
            one.remarks.push(format!("{lines} passed over between its own"));
        }
        if let Some(interval) = options.interval {
            set_interval(&mut one.run, interval);
        }
        one.run.check()?;
        Ok(one)
    }

    /// True where the text ends behind the result within a line that begins as the result's last
    /// one: too little of it is there to be read as one of the tool's.
    fn is_followed_by_a_part(&self) -> bool {
        let next = self.finding.lines.end;
        let line = |index: usize| self.source.line(index).map(|line| line.text.trim_start());
        let lines = next.checked_sub(1).and_then(line).zip(line(next));
        let alike = |(last, cut): (&str, &str)| {
            let shown = cut.char_indices().nth(2).map_or(cut, |(end, _)| &cut[..end]);
            !shown.is_empty() && last.starts_with(shown)
        };
        self.source.is_cut_at(next) && lines.is_some_and(alike)
    }

    /// True for an error that says that the result ends too early, not that it is wrong.
    fn is_cut(&self, error: &ImportError) -> bool {
        let last = self.finding.lines.end.checked_sub(1).and_then(|last| self.source.line(last));
        let is_last = last.is_some_and(|last| {
            ["expected", "invalid"]
                .iter()
                .any(|what| error.0.contains(&format!("line {}: {what}", last.number)))
        });
        is_last || error.0.contains(": give the whole ")
    }

    fn first_line(&self) -> usize {
        self.source.line(self.finding.lines.start).map_or(1, |line| line.number)
    }
}

/// Reads every result in another tool's output; one that is cut is omitted where others are whole.
///
/// Runs pass [`Run::check`]; their `id` is empty for the caller to fill.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Vec<Imported>, ImportError> {
    if bytes.len() > FILE_LIMIT {
        return Err(error::too_large());
    }
    let mut source = SourceText::decode(bytes)?;
    if source.shape == DocumentShape::Text {
        source.documents = json_in_log::documents(&source);
    }
    let recognised = recognise(&source, options)?;
    if recognised.len() > RESULT_LIMIT {
        let n = recognised.len();
        return Err(ImportError(format!("{n} results in one file: give at most {RESULT_LIMIT} at a time")));
    }
    let (mut imported, mut cut) = (Vec::new(), Vec::new());
    for one in &recognised {
        let is_within = !std::ptr::eq(one.source, &source);
        let from = one.first_line();
        let named = |error: ImportError| {
            if is_within { ImportError(format!("the JSON from line {from} on: {error}")) } else { error }
        };
        match one.read(options) {
            Ok(read) => imported.push(read),
            Err(error) if one.is_cut(&error) => cut.push(named(error)),
            Err(error) => return Err(named(error)),
        }
    }
    let left_out = several(cut.len() as u64, "result is cut and omitted", "results are cut and omitted");
    match (imported.first_mut(), cut.into_iter().next()) {
        (None, Some(error)) => return Err(error),
        (Some(first), Some(error)) => first.remarks.push(format!("{left_out}: {error}")),
        _ => {}
    }
    Ok(imported)
}

/// The results of the file, in its order; an error where none or two formats claim the same lines.
fn recognise<'a>(
    source: &'a SourceText,
    options: &ImportOptions,
) -> Result<Vec<Recognised<'a>>, ImportError> {
    let wanted = |format: &&&ForeignFormat| options.format.as_ref().is_none_or(|id| *id == format.id);
    let formats: Vec<&'static ForeignFormat> = FORMATS.iter().filter(wanted).copied().collect();
    if let ([], Some(id)) = (&formats[..], &options.format) {
        let readable = FORMATS.iter().filter(|format| matches!(format.reader, Reader::Run(_)));
        let ids: Vec<&str> = readable.map(|format| format.id).collect();
        return Err(ImportError(format!("invalid --as {}: expected one of {}", quoted(id), ids.join(", "))));
    }
    let (readable, refused): (Vec<&ForeignFormat>, Vec<&ForeignFormat>) =
        formats.into_iter().partition(|format| matches!(format.reader, Reader::Run(_)));
    let mut all = findings(source, &readable);
    let is_strong =
        |one: &Recognised| one.finding.confidence == Confidence::Strong || options.format.is_some();
    let any_readable = all.iter().any(is_strong);
    // A load that ran beside a measurement printed into the same log.
    if !any_readable {
        all.extend(findings(source, &refused));
        all.sort_by_key(|one| (one.finding.lines.start, one.finding.lines.end));
    }
    if !all.iter().any(is_strong) {
        return Err(rows_alone::refusal(source, &all));
    }
    all.retain(is_strong);
    if any_readable {
        tie(&all).map_or(Ok(()), Err)?;
    } else {
        all.truncate(1);
    }
    if !source.documents.is_empty() {
        all.sort_by_key(Recognised::first_line);
    }
    Ok(all)
}

/// The findings of these formats in the text and in each document within it.
fn findings<'a>(source: &'a SourceText, formats: &[&'static ForeignFormat]) -> Vec<Recognised<'a>> {
    let mut all = Vec::new();
    for source in std::iter::once(source).chain(&source.documents) {
        let start = all.len();
        for format in formats {
            let findings = (format.find)(source).into_iter();
            all.extend(findings.map(|finding| Recognised { source, format, finding }));
        }
        all[start..].sort_by_key(|one| (one.finding.lines.start, one.finding.lines.end));
    }
    all
}

/// The refusal of results of which two share a line, with all that do.
fn tie(all: &[Recognised]) -> Option<ImportError> {
    let shares = |one: &Recognised, other: &Recognised| {
        std::ptr::eq(one.source, other.source) && one.finding.lines.end > other.finding.lines.start
    };
    let first = all.windows(2).position(|pair| shares(&pair[0], &pair[1]))?;
    let one = all.get(first)?;
    let mut candidates: Vec<&ForeignFormat> =
        all[first..].iter().take_while(|other| shares(one, other)).map(|other| other.format).collect();
    candidates.dedup_by_key(|format| format.id);
    let line = all.get(first + 1)?.first_line();
    let tools: Vec<&str> = candidates.iter().map(|format| format.tool).collect();
    let flags: Vec<String> = candidates.iter().map(|format| format!("--as {}", format.id)).collect();
    Some(ImportError(format!(
        "line {line}: this may be {}: say which with {}",
        tools.join(" or "),
        flags.join(" or ")
    )))
}

/// Gives an imported run the period that its file does not contain; what the file does contain
/// stays.
///
/// With it, an overflow's cycle number can be placed in time, as long as no period was skipped.
fn set_interval(run: &mut Run, interval: Nanos) {
    let first = *run.plan.interval_ns.get_or_insert(interval);
    let distance = run.plan.distance_ns.unwrap_or_default();
    let mut next = Some(first);
    for cpu in &mut run.cpus {
        cpu.interval_ns = cpu.interval_ns.or(next);
        next = next.and_then(|n| n.0.checked_add(distance.0)).map(Nanos);
    }
}

/// A piece of the input as it may appear in an error: one line, short, no control characters.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(40).is_some() { "..." } else { "" };
    format!("'{shown}{more}'")
}

#[cfg(test)]
mod tests;
