//! The records of rtla's formats, and what its outputs have in common.

use std::ops::Range;

use model::run::{Integrity, Run};
use model::units::Nanos;
use model::vocabulary::{Ended, IntegrityKind};

use super::error::ImportError;
use super::format::{ForeignFormat, Reader, ResultSpan};
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

/// rtla's histogram where nothing says what the columns or rows are.
pub(super) const BARE_HIST: ForeignFormat = ForeignFormat {
    id: "rtla-bare-hist",
    tool: "a histogram of rtla without its header or index",
    versions: VERSIONS,
    origin: "run here",
    carries: "nothing: it is refused",
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
    hides: "COUNT is that of the interrupts, the last thread may not have run yet; no quantiles",
    find: |source| rtla_top::find(source, rtla_top::TopKind::Timerlat),
    reader: Reader::Run(rtla_top::read_timerlat),
};

/// `rtla osnoise top` and `rtla hwnoise`.
pub(super) const OSNOISE_TOP: ForeignFormat = ForeignFormat {
    id: "rtla-osnoise-top",
    tool: "rtla osnoise top",
    versions: VERSIONS,
    origin: "run here",
    carries: "longest noise and share of the time that was lost per CPU, what interrupted how often; also \
              of rtla hwnoise",
    hides: "the number of gaps, the least and the mean one",
    find: |source| rtla_top::find(source, rtla_top::TopKind::Osnoise),
    reader: Reader::Run(rtla_top::read_osnoise),
};

/// The text of rtla's auto-analysis, of a run that prints nothing else.
pub(super) const AUTO_ANALYSIS: ForeignFormat = ForeignFormat {
    id: "rtla-auto-analysis",
    tool: "rtla auto-analysis",
    versions: VERSIONS,
    origin: "run here",
    carries: "nothing: it is refused",
    hides: "all latencies but the one that stopped the run",
    find: find_analysis,
    reader: Reader::Refused("onbeat explain reads it"),
};

/// The most lines between two of a table's own.
pub(super) const TABLE_GAP: usize = 200;

/// The most lines behind a table where the reason of its end is looked for.
const STOP_REACH: usize = 3;

/// The texts of the analysis that rtla prints when a threshold was reached.
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

/// The time of `0 00:00:06`: days, hours, minutes, seconds.
pub(super) fn elapsed(text: &str) -> Option<Nanos> {
    let mut words = text.split_ascii_whitespace();
    let days: i64 = words.next()?.parse().ok()?;
    let mut clock =
        words.next()?.split(':').map(|part| part.parse::<i64>().ok().filter(|n| (0..60).contains(n)));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    let total = days.checked_mul(24)?.checked_add(hours)?.checked_mul(60)?.checked_add(minutes)?;
    total
        .checked_mul(60)?
        .checked_add(seconds)?
        .checked_mul(Nanos::SECOND.0)
        .map(Nanos)
        .filter(|&n| n > Nanos(0))
}

/// A result that refuses the text for this reason.
pub(super) fn refuse<T>(reason: String) -> Result<T, ImportError> {
    Err(ImportError(reason))
}

/// The error of a block that its format recognised.
pub(super) fn of_tool(tool: &str, error: ImportError) -> ImportError {
    ImportError(format!("this is {tool}: {error}"))
}

/// True for a line on events that were lost before rtla counted them.
pub(super) fn is_loss(text: &str) -> bool {
    text.ends_with("events missed, results might not be accurate")
}

/// True for a line on a threshold that ended the run.
pub(super) fn is_stop(text: &str) -> bool {
    text.trim().ends_with("hit stop tracing")
}

/// Adds what stands around a table: how long it took, the lost events, the reason of the end.
pub(super) fn describe(
    run: &mut Run,
    source: &SourceText,
    end: usize,
    elapsed: Option<Nanos>,
    loss: Option<&str>,
) {
    run.plan.duration_ns = run.plan.duration_ns.or(elapsed);
    if source.lines().skip(end).take(STOP_REACH).any(|line| is_stop(line.text)) {
        run.ended = Ended::Limit.into();
    }
    if let Some(loss) = loss {
        let number = loss.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let events = number.map_or("an unknown number of events".to_owned(), |n| format!("{n} events"));
        run.integrity.push(Integrity {
            kind: IntegrityKind::Lost.into(),
            cpu: None,
            detail: format!("rtla missed {events}: latencies are missing, maybe the largest"),
            invalidates: true,
        });
    }
}

#[cfg(test)]
mod tests;
