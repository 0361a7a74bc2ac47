//! Bounds of synthetic runs, for tests of the pictures.

use crate::totals::sum_rows;
use model::run::Run;
use model::units::Nanos;
use stats::bounds::{self, Bounds, BoundsInput, HistogramInput, Question};
use stats::series::Series;

/// Bounds for a day; none without blocks.
pub fn bounds(run: &Run, series: &Series, limit: Option<Nanos>) -> Option<Bounds> {
    answer(run, series, &Question { limit, ..Question::default() })
}

/// Bounds for a question; none without blocks.
pub fn answer(run: &Run, series: &Series, question: &Question) -> Option<Bounds> {
    let rows = sum_rows(run.cpus.iter().map(|cpu| cpu.histogram.as_slice()));
    let evidence = BoundsInput {
        histogram: HistogramInput { buckets: &rows, ..HistogramInput::default() },
        ..BoundsInput::of(series)
    };
    series.worst().map(|_| bounds::bounds(&evidence, question))
}
