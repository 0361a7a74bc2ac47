//! Results of other tools: recognised by their text, and read as runs.
//!
//! Functions from values to values: no file is opened here, and any input yields at worst an error
//! of one line. A bucket of theirs is a half-open row of onbeat's, and values that their format
//! lacks stay null. A format is a file with a [`ForeignFormat`] and a line in [`FORMATS`];
//! docs/formats.md is made of the records.

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
mod labelled_numbers;
mod linuxcnc;
mod log_lines;
mod log_prefix;
mod log_shape;
mod markup;
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
mod recognised;
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
mod shared_prefix;
mod source;
mod stress_ng;
mod stress_ng_message;
mod t_line;
#[cfg(test)]
mod testing;
mod thread_pairs;
mod thread_plan;
mod thread_totals;
mod unit;
mod xenomai;

use crate::foreign_trace;
pub use error::ImportError;
pub use format::{Confidence, ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use recognised::{findings, limit_results, results_of};
pub(crate) use rows_alone::is_event;
use source::{DocumentShape, SourceText};

/// Maximum size of a file in bytes: 2^20 buckets of eight threads fit, as `-N -H1000000` writes
/// them.
pub const FILE_LIMIT: usize = 64 << 20;

/// Maximum number of threads: the kernel has no more CPUs.
pub const THREAD_LIMIT: usize = model::units::CPU_LIMIT as usize;

/// Maximum number of non-empty buckets over all threads.
pub const BUCKET_LIMIT: usize = 4 << 20;

/// Maximum number of stored overflow cycle numbers over all threads; a note counts the others.
pub const OVERFLOW_LIMIT: usize = 1 << 16;

/// Maximum number of results in one file.
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

/// Fields of cyclictest's JSON that [`Run`](model::run::Run) lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CyclictestContext {
    /// The command and its arguments, joined with blanks.
    pub command_line: String,
    /// Name of the machine, as `uname -n`; `""` if it is withheld.
    pub node_name: String,
    /// Start of the run in seconds since 1970, UTC.
    pub started_unix_s: i64,
    /// End of the run in seconds since 1970, UTC.
    pub ended_unix_s: i64,
    /// Exit code of the command; parsers take 0 as a pass.
    pub return_code: i32,
}

/// Kind of a file that another command reads, and the remedy, in a sentence; none if it is not
/// known.
pub fn known_file(bytes: &[u8]) -> Option<String> {
    let of_tool = || known_result(&with_documents(SourceText::decode(bytes).ok()?));
    let of_trace = || foreign_trace::name(bytes).map(|(what, remedy)| (what, remedy.to_owned()));
    let of_onbeat = || own_document(bytes).map(|(what, remedy)| (what, remedy.to_owned()));
    let (what, remedy) = of_onbeat().or_else(of_tool).or_else(of_trace)?;
    Some(format!("this is {what}: {remedy}"))
}

/// First result that a text surely has, and the remedy for a reader of something else.
fn known_result(source: &SourceText) -> Option<(&'static str, String)> {
    let found = findings(source, FORMATS);
    let first = found.into_iter().find(|one| one.finding.confidence == Confidence::Strong)?;
    let remedy = match first.format.reader {
        Reader::Run(_) => "convert it with `onbeat import`".to_owned(),
        Reader::Refused(instead) => instead.to_owned(),
    };
    Some((first.format.tool, remedy))
}

/// Kind of a document of onbeat's own, and the command for it.
fn own_document(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const HEAD: usize = 4 << 10;
    let head = String::from_utf8_lossy(bytes.get(..HEAD).unwrap_or(bytes));
    let schema = head.trim_start().strip_prefix('{')?.split_once("\"schema\"")?.1;
    let schema = schema.trim_start().strip_prefix(':')?.trim_start().strip_prefix("\"onbeat.")?;
    Some(match schema.split('/').next()? {
        "run" => ("a run of onbeat", "report, bounds and compare read its folder without a conversion"),
        "capture" => ("a capture of onbeat", "`onbeat audit --bundle` reads its folder"),
        _ => ("a document of onbeat", "give the folder of a run"),
    })
}

/// Reads every result in another tool's output; a cut one is omitted if others are whole.
///
/// Runs pass [`check`](model::run::Run::check); their `id` is empty for the caller to fill.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Vec<Imported>, ImportError> {
    if bytes.len() > FILE_LIMIT {
        return Err(error::too_large());
    }
    let named =
        || foreign_trace::name(bytes).map(|(what, remedy)| format!("this is {what}: {remedy}").into());
    if let Some((what, remedy)) = own_document(bytes) {
        return Err(format!("this is {what}: {remedy}").into());
    }
    // A damaged gzip file is not to be unpacked: its own error has the remedy.
    let is_damaged = |error: &ImportError| error.0.starts_with("invalid gzip data");
    let source = SourceText::decode(bytes);
    let source = source.map_err(|error| named().filter(|_| !is_damaged(&error)).unwrap_or(error))?;
    let source = with_documents(source);
    if let Some(imported) = results_of(&source, options)? {
        return Ok(imported);
    }
    if let Some(error) = named() {
        return Err(error);
    }
    for unwrapped in source.unwrapped().into_iter().map(with_documents) {
        if let Some(imported) = results_of(&unwrapped, options)? {
            return Ok(imported);
        }
    }
    if let Some(imported) = of_hosts(&source, options)? {
        return Ok(imported);
    }
    if let Some((what, _)) = options.format.as_ref().and_then(|_| known_result(&source)) {
        return Err(format!("this is {what}: remove --as").into());
    }
    let readable = FORMATS.iter().filter(|format| matches!(format.reader, Reader::Run(_)));
    Err(rows_alone::refusal(&source, &findings(&source, &readable.copied().collect::<Vec<_>>())))
}

/// Results of each host if all lines begin with a host's name; `None` if no host has a result.
///
/// # Errors
/// Some have a result and one has none, or a result cannot be read.
fn of_hosts(source: &SourceText, options: &ImportOptions) -> Result<Option<Vec<Imported>>, ImportError> {
    let hosts = source.by_host();
    let count = hosts.len();
    let (mut all, mut without) = (Vec::new(), None);
    for (name, text) in hosts {
        let results = text.and_then(|text| results_of(&text, options));
        match results
            .map_err(|error| ImportError(format!("the lines of {name}, of {count} hosts: {error}")))?
        {
            Some(mut results) => {
                results.iter_mut().for_each(|one| one.remarks.push(format!("the lines of {name}")));
                all.extend(results);
                limit_results(all.len())?;
            }
            None => drop(without.get_or_insert(name)),
        }
    }
    match without {
        _ if all.is_empty() => Ok(None),
        None => Ok(Some(all)),
        Some(name) => Err(ImportError(format!(
            "the lines of {count} hosts, with no result of {name}: give the lines of one host at a time \
             (grep '^{name}: ')"
        ))),
    }
}

/// Adds the JSON documents within the text.
fn with_documents(mut source: SourceText) -> SourceText {
    if source.shape == DocumentShape::Text {
        source.documents = json_in_log::documents(&source);
    }
    source
}

/// A piece of the input for an error: one line, short, no control characters.
fn quoted(text: &str) -> String {
    let excerpt: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(40).is_some() { "..." } else { "" };
    format!("'{excerpt}{more}'")
}

#[cfg(test)]
mod tests;
