//! Records of rtla's formats, and common parts of its outputs.

use std::ops::Range;

use super::format::{ForeignFormat, Reader, ResultSpan};
use super::rtla_shared::TABLE_GAP;
use super::source::{DocumentShape, SourceText};
use super::{rtla_hist, rtla_hist_find, rtla_top};

/// Versions whose output was read.
const VERSIONS: &str = "rtla 6.12, 7.3";

/// `rtla timerlat hist`.
pub(super) const TIMERLAT_HIST: ForeignFormat = ForeignFormat {
    id: "rtla-timerlat-hist",
    tool: "rtla timerlat hist",
    versions: VERSIONS,
    origin: "run here",
    carries: "histogram, count, least, mean and largest latency per CPU, those of interrupt, thread and \
              return to user space apart; unit, time that passed; in a log the command line before it",
    hides: "width (-b) and number (-E) of the buckets: the width is taken from the distance of the rows, \
            the histogram's end is known from the command line alone; rows of zeros",
    find: |source| rtla_hist_find::find(source, rtla_hist_find::RtlaTable::Timerlat),
    reader: Reader::Run(rtla_hist::read),
};

/// `rtla osnoise hist`.
pub(super) const OSNOISE_HIST: ForeignFormat = ForeignFormat {
    id: "rtla-osnoise-hist",
    tool: "rtla osnoise hist",
    versions: VERSIONS,
    origin: "run here",
    carries: "histogram, count, least, mean and largest noise per CPU, unit, time that passed",
    hides: "width and number of the buckets, as above; with -b the summary is made of the buckets' lower \
            edges; zeros are printed where all noise is beyond the histogram",
    find: |source| rtla_hist_find::find(source, rtla_hist_find::RtlaTable::Osnoise),
    reader: Reader::Run(rtla_hist::read),
};

/// Histogram of rtla without names of its columns or rows.
pub(super) const BARE_HIST: ForeignFormat = ForeignFormat {
    id: "rtla-bare-hist",
    tool: "a histogram of rtla without its header or index",
    versions: VERSIONS,
    origin: "run here",
    carries: "nothing: refused",
    hides: "with --no-header what the columns are, and the unit; with --no-index the latencies",
    find: |source| rtla_hist_find::find(source, rtla_hist_find::RtlaTable::Bare),
    reader: Reader::Refused("run rtla without --no-header and --no-index"),
};

/// `rtla timerlat top`.
pub(super) const TIMERLAT_TOP: ForeignFormat = ForeignFormat {
    id: "rtla-timerlat-top",
    tool: "rtla timerlat top",
    versions: VERSIONS,
    origin: "run here",
    carries: "count, least, mean and largest latency per CPU, those of interrupt, thread and return to \
              user space apart; of a screen's updates the last",
    hides: "COUNT counts interrupts, the last thread may not have run yet; no quantiles",
    find: |source| rtla_top::find(source, rtla_top::TopKind::Timerlat),
    reader: Reader::Run(rtla_top::read_timerlat),
};

/// `rtla osnoise top` and `rtla hwnoise`.
pub(super) const OSNOISE_TOP: ForeignFormat = ForeignFormat {
    id: "rtla-osnoise-top",
    tool: "rtla osnoise top",
    versions: VERSIONS,
    origin: "run here",
    carries: "longest noise and share of lost time per CPU, number of interruptions by source; also of rtla \
              hwnoise",
    hides: "the number of gaps, the least and the mean one",
    find: |source| rtla_top::find(source, rtla_top::TopKind::Osnoise),
    reader: Reader::Run(rtla_top::read_osnoise),
};

/// Text of rtla's auto-analysis, of a run that prints nothing else.
pub(super) const AUTO_ANALYSIS: ForeignFormat = ForeignFormat {
    id: "rtla-auto-analysis",
    tool: "rtla auto-analysis",
    versions: VERSIONS,
    origin: "run here",
    carries: "nothing: refused",
    hides: "all latencies but the one that stopped the run",
    find: find_analysis,
    reader: Reader::Refused("onbeat explain reads it"),
};

/// Finds the texts of the analysis that rtla prints when a threshold was reached.
fn find_analysis(source: &SourceText) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let text = line.text.trim();
        if text.starts_with("## CPU ") && text.ends_with("hit stop tracing, analyzing it ##") {
            ranges.push(index..index + 1);
        } else if text.starts_with("Max timerlat IRQ latency from idle:")
            && let Some(last) = ranges.last_mut().filter(|range| index - range.end < TABLE_GAP)
        {
            last.end = index + 1;
        }
    }
    ranges.into_iter().map(ResultSpan::strong).collect()
}

#[cfg(test)]
mod tests;
