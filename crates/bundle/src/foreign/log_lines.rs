//! Lines of a text, grouped by the sources of its log.

use std::collections::HashMap;
use std::ops::Range;

use super::error::{ImportError, too_large};
use super::log_prefix::{KERNEL, host_of, open_prefix, unprefixed};
use super::log_shape::settle;

/// Maximum number of sources of a log, like machines, whose lines are distinguished.
const MAX_STREAMS: usize = 1 << 16;

/// Maximum number of lines that are not blank.
const MAX_LINES: usize = 8 << 20;

/// Place of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSpan {
    /// Number of the line in the file.
    pub number: u32,
    /// First byte in the text.
    pub start: u32,
    pub end: u32,
}

impl FileSpan {
    /// A text is at most 2^27 bytes long.
    pub fn new(number: u32, start: usize, end: usize) -> FileSpan {
        FileSpan { number, start: start as u32, end: end as u32 }
    }
}

/// Lines that are not blank, by source of the log, in the order of the first line of each.
#[derive(Debug, Default)]
pub(super) struct LogLines {
    pub spans: Vec<FileSpan>,
    /// Indices of the kernel's lines, if there are others.
    pub kernel: Range<usize>,
}

/// A line whose prefix is not settled: there may be eight million, so only its place is kept.
struct UnsettledLine {
    span: FileSpan,
    is_start: bool,
    is_open: bool,
}

/// A line, and what cyclictest printed behind it if the line before had no end: files that were
/// joined, or a run that was cut. A prompt with a command may precede it, too.
fn joined(line: &str) -> impl Iterator<Item = &str> {
    let (first, second) = line.split_at(line.find("# /dev/cpu_dma_latency").unwrap_or(line.len()));
    let is_sample = first.starts_with(' ') && first.matches(':').count() == 2;
    let mut words = first.split_ascii_whitespace().filter(|word| word.bytes().all(|b| b.is_ascii_digit()));
    let is_row = words.next().is_some_and(|bucket| bucket.len() >= 6) && words.next().is_some();
    // A largest latency has eight columns, or is cut; then the line is damaged.
    let is_cut = first.split_once("Max:").is_some_and(|(_, max)| max.len() < 8);
    let is_result = first.starts_with("T:") && !is_cut || first.starts_with("# ") || is_sample || is_row;
    let parts = if is_result { [first, second] } else { [line, ""] };
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Splits a log into lines; one that is overwritten with a carriage return is several.
pub(super) fn lines_of(text: &str) -> Result<LogLines, ImportError> {
    let mut count = 0;
    let mut streams: Vec<Vec<UnsettledLine>> = Vec::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let host = host_of(text.split(['\n', '\r']));
    let start_of = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    for (index, whole) in text.split('\n').enumerate() {
        for part in whole.split('\r').flat_map(joined).filter(|part| !part.trim_ascii().is_empty()) {
            count += 1;
            if count > MAX_LINES {
                return Err(too_large());
            }
            let line = unprefixed(part, host);
            let label = match &line.open {
                Some(open) if line.label.is_empty() => open.name_of_source(),
                _ => line.label,
            };
            let known = labels.len();
            let stream = match labels.get(label) {
                Some(&stream) => stream,
                None if known < MAX_STREAMS => *labels.entry(label).or_insert(known),
                None => {
                    return Err(ImportError(format!(
                        "line {}: lines of more than {MAX_STREAMS} sources: give those of one",
                        index + 1
                    )));
                }
            };
            if streams.len() <= stream {
                streams.resize_with(stream + 1, Vec::new);
            }
            let start = start_of(line.text);
            let span = FileSpan::new(index as u32 + 1, start, start + line.text.trim_end().len());
            let (is_start, is_open) = (line.is_start, line.open.is_some());
            streams[stream].push(UnsettledLine { span, is_start, is_open });
        }
    }
    let kernel = labels.get(KERNEL).copied().filter(|_| streams.len() > 1);
    let mut log = LogLines { spans: Vec::with_capacity(count), kernel: 0..0 };
    for (index, stream) in streams.into_iter().enumerate() {
        let start = log.spans.len();
        let line = |at: usize| {
            let UnsettledLine { span, is_start, is_open } = &stream[at];
            let text = &text[span.start as usize..span.end as usize];
            (text, is_open.then(|| open_prefix(text, *is_start)).flatten())
        };
        settle(stream.len(), line, |at, content| {
            log.spans.push(FileSpan { start: start_of(content) as u32, ..stream[at].span });
        });
        if kernel == Some(index) {
            log.kernel = start..log.spans.len();
        }
    }
    Ok(log)
}

/// Splits a document that is not a log into lines.
pub(super) fn whole_lines(text: &str) -> Result<LogLines, ImportError> {
    let mut spans = Vec::new();
    let mut start = 0;
    for (index, line) in text.split('\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            spans.push(FileSpan::new(index as u32 + 1, start, start + line.trim_end().len()));
        }
        if spans.len() > MAX_LINES {
            return Err(too_large());
        }
        start += line.len() + 1;
    }
    Ok(LogLines { spans, kernel: 0..0 })
}
