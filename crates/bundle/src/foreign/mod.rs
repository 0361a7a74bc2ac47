//! Results of other tools: recognised by what they say of themselves, and read as runs.
//!
//! Functions from values to values: no file is opened here, and whatever bytes come in, an error of
//! one line comes out at worst. A bucket of theirs is a half-open row of onbeat's, and what their
//! format does not carry stays null. A format is a file with a [`Format`] record and a line in
//! [`FORMATS`]; docs/formats.md is made of the records.

mod command_line;
mod cyclictest;
mod cyclictest_find;
mod cyclictest_gather;
pub mod cyclictest_hist;
pub mod cyclictest_json;
mod cyclictest_line;
mod cyclictest_text;
mod date;
mod error;
mod format;
mod imported;
mod json_read;
mod log_prefix;
pub mod maxima;
mod micros;
pub mod page;
#[cfg(test)]
mod real_files;
mod rows_alone;
mod rtla;
mod rtla_command;
mod rtla_hist;
mod rtla_hist_check;
mod rtla_hist_find;
mod rtla_top;
mod rtla_top_lines;
mod rtla_width;
mod samples;
mod source;
#[cfg(test)]
mod testing;
mod unit;

use model::run::Run;
use model::units::Nanos;

pub use error::ImportError;
pub use format::{Confidence, Finding, Format, ImportOptions, Imported, Reader};
use source::Source;

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
pub const FORMATS: &[&Format] = &[
    &cyclictest::TEXT,
    &cyclictest::JSON,
    &rtla::TIMERLAT_HIST,
    &rtla::TIMERLAT_TOP,
    &rtla::OSNOISE_HIST,
    &rtla::OSNOISE_TOP,
    &rtla::BARE_HIST,
    &rtla::AUTO_ANALYSIS,
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
struct Recognised {
    format: &'static Format,
    finding: Finding,
}

/// Reads every result in another tool's output.
///
/// Runs pass [`Run::check`]; their `id` is empty for the caller to fill.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Vec<Imported>, ImportError> {
    if bytes.len() > FILE_LIMIT {
        return Err(source::too_large());
    }
    let source = Source::decode(bytes)?;
    let recognised = recognise(&source, options)?;
    if recognised.len() > RESULT_LIMIT {
        let n = recognised.len();
        return Err(ImportError(format!("{n} results in one file: give at most {RESULT_LIMIT} at a time")));
    }
    let results = recognised.iter().map(|Recognised { format, finding }| match format.reader {
        Reader::Run(read) => read(&source, finding, options),
        Reader::Refused(instead) => Err(ImportError(format!("this is {}: {instead}", format.tool))),
    });
    let mut imported = results.collect::<Result<Vec<_>, _>>()?;
    for one in &mut imported {
        if let Some(interval) = options.interval {
            set_interval(&mut one.run, interval);
        }
        one.run.check()?;
    }
    Ok(imported)
}

/// The results of the file, in its order; an error where none or two formats claim the same lines.
fn recognise(source: &Source, options: &ImportOptions) -> Result<Vec<Recognised>, ImportError> {
    let wanted = |format: &&&Format| options.format.as_ref().is_none_or(|id| *id == format.id);
    let formats: Vec<&&Format> = FORMATS.iter().filter(wanted).collect();
    if let ([], Some(id)) = (&formats[..], &options.format) {
        let ids: Vec<&str> = FORMATS.iter().map(|format| format.id).collect();
        return Err(ImportError(format!("invalid --as {}: expected one of {}", quoted(id), ids.join(", "))));
    }
    let mut all: Vec<Recognised> = Vec::new();
    for format in formats {
        all.extend((format.find)(source).into_iter().map(|finding| Recognised { format, finding }));
    }
    all.sort_by_key(|one| (one.finding.lines.start, one.finding.lines.end));
    let is_strong =
        |one: &&Recognised| one.finding.confidence == Confidence::Strong || options.format.is_some();
    let strong: Vec<&Recognised> = all.iter().filter(is_strong).collect();
    if let Some((one, other)) =
        strong.iter().zip(strong.iter().skip(1)).find(|(a, b)| a.finding.lines.end > b.finding.lines.start)
    {
        let line = source.line(other.finding.lines.start).map_or(1, |line| line.number);
        return Err(ImportError(format!(
            "line {line}: this may be {} or {}: say which with --as {} or --as {}",
            one.format.tool, other.format.tool, one.format.id, other.format.id
        )));
    }
    if strong.is_empty() {
        return Err(rows_alone::refusal(source, &all));
    }
    let readable = |one: &Recognised| matches!(one.format.reader, Reader::Run(_));
    let any_readable = strong.iter().any(|one| readable(one));
    all.retain(|one| is_strong(&one) && (readable(one) || !any_readable));
    Ok(all)
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
