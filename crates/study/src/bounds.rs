//! Claims that a measurement supports.

use model::error::{Failure, Result};
use model::run::CpuRun;
use model::text::quoted;
use model::vocabulary::Ended;
use stats::bounds::{self, Bounds, BoundsInput, HistogramInput, ListedOverflows, Question, RunTotals};

use crate::measurement::Measurement;

/// Bounds of a measurement; refused if it contains no wake-up.
pub fn bounds(measurement: &Measurement, question: &Question) -> Result<Bounds> {
    let rows = measurement.rows();
    let samples = measurement.run.as_ref().map_or(Some(0), model::run::Run::samples);
    let cycles = samples.unwrap_or(0);
    // A run that was killed before its first second has no data either, but it is a run.
    let complete = measurement.run.as_ref().is_none_or(|run| run.complete);
    if measurement.series.worst().is_none() && samples == Some(0) && complete {
        return Err(Failure::usage(format!(
            "{} contains no wake-up, so it gives no bound: measure again",
            quoted(&measurement.path)
        )));
    }
    let (invalid, lists) = (measurement.invalid(), measurement.overflow_lists());
    let sum =
        |of: fn(&CpuRun) -> Option<u64>| measurement.cpus().filter_map(of).fold(0u64, u64::saturating_add);
    let input = BoundsInput {
        series: &measurement.series,
        histogram: HistogramInput {
            buckets: &rows,
            overflows: measurement.overflows(),
            listed: ListedOverflows {
                lists: &lists,
                cycles: measurement.cpus().map(|cpu| cpu.listed_overflows().count() as u64).sum(),
                // Below 0 it is not known if they were late.
                from: measurement.cpus().filter_map(CpuRun::beyond_from).min().filter(|from| from.0 >= 0),
            },
            max: measurement.max(),
        },
        run: RunTotals {
            invalid: &invalid,
            cycles,
            missed: sum(|cpu| cpu.missed),
            ended_by_limit: measurement.run.as_ref().is_some_and(|run| run.ended == Ended::Limit),
        },
        hz: measurement.run.as_ref().and_then(|run| run.host.hz),
    };
    Ok(bounds::bounds(&input, question))
}
