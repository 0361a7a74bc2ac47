//! What synthetic runs support, for tests of the pictures.

use crate::totals::sum_rows;
use model::run::Run;
use model::units::Nanos;
use stats::bounds::{self, Bounds, BoundsInput, HistogramInput, Question};
use stats::series::Series;

/// The answer of a day; none without blocks.
pub fn bounds(run: &Run, series: &Series, limit: Option<Nanos>) -> Option<Bounds> {
    let rows = sum_rows(run.cpus.iter().map(|cpu| cpu.histogram.as_slice()));
    let evidence = BoundsInput {
        histogram: HistogramInput { buckets: &rows, ..HistogramInput::default() },
        ..BoundsInput::of(series)
    };
    let question =
        Question { limit, horizon: Nanos(86_400_000_000_000), chosen: false, reach: bounds::DEFAULT_REACH };
    series.worst().map(|_| bounds::bounds(&evidence, &question))
}
