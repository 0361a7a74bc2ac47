//! Gates of a histogram without times, or of a run without data: an extrapolation is always
//! refused.
//!
//! Stationarity and bursts of large values are lost with the order of the samples, and with them
//! everything that a fit of the tail rests on.

use super::conditions;
use super::gates::{Gate, LOST};
use super::input::{BoundsInput, Question};
use super::overflows;
use super::structure::Structure;
use model::text::several;

/// All gates, in the order of their numbers.
pub fn gates(input: &BoundsInput, question: &Question, structure: &Structure) -> Vec<Gate> {
    let unknown = |id, name| Gate::not_judged(id, name, LOST);
    vec![
        unknown("G1", "level"),
        unknown("G2", "dependence"),
        unknown("G3", "evenness"),
        unknown("G4", "tail fit"),
        unknown("G5", "one mode"),
        overflows::period(input, structure),
        enough(input),
        conditions::horizon(question, input.series.observed),
        unknown("G9", "width"),
        unknown("G10", "back-test"),
        conditions::integrity(input),
    ]
}

/// G7: never enough blocks, as there are none.
fn enough(input: &BoundsInput) -> Gate {
    let values = input
        .histogram
        .buckets
        .iter()
        .map(|bucket| bucket.count)
        .fold(input.histogram.overflows, u64::saturating_add);
    let (detail, refusal) = if input.histogram.buckets.is_empty() {
        (
            "no histogram and no block maxima".to_owned(),
            "The run has neither block maxima nor a histogram: nothing can be checked.".to_owned(),
        )
    } else {
        (
            format!("a histogram of {} and no block maxima", several(values, "value", "values")),
            format!("The run has only a histogram: {LOST}, so neither steadiness nor bursts can be checked."),
        )
    };
    let remedy = "Measure with onbeat, which stores the maximum of each second with its time.";
    Gate::refused("G7", "enough data", detail, refusal, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::extrapolate::extrapolate;
    use crate::bounds::{ExtrapolationStatus, HistogramInput};
    use crate::series::Series;
    use model::histogram::Bucket;
    use model::units::Nanos;

    #[test]
    fn a_histogram_without_times_is_never_extrapolated() {
        let rows = [
            Bucket::new(Nanos(14_000), Nanos(15_000), 10_000_000),
            Bucket::new(Nanos(76_000), Nanos(77_000), 1),
        ];
        let series = Series { observed: Nanos(4_000 * Nanos::SECOND.0), ..Series::default() };
        let question = Question { horizon: Nanos::SECOND, chosen: true, ..Question::default() };
        for (rows, overflows, detail) in [
            (&rows[..], 0, "a histogram of 10000001 values and no block maxima"),
            (&rows[..1], 2, "a histogram of 10000002 values and no block maxima"),
            (&[], 0, "no histogram and no block maxima"),
        ] {
            let input = BoundsInput {
                histogram: HistogramInput {
                    buckets: rows,
                    overflows,
                    max: Some(Nanos(76_000)),
                    ..HistogramInput::default()
                },
                ..BoundsInput::of(&series)
            };
            let (gates, beyond) = extrapolate(&input, &question, &Structure::default());
            assert_eq!(
                (beyond.status, beyond.upper_ns, beyond.horizon_ns),
                (ExtrapolationStatus::Refused, None, Some(Nanos::SECOND))
            );
            let refused: Vec<&str> =
                gates.iter().filter(|gate| !gate.refusal.is_empty()).map(|gate| gate.id).collect();
            assert_eq!(refused, ["G7"], "by what was kept, and by nothing else");
            assert_eq!(
                gates.iter().find(|gate| gate.id == "G7").map(|gate| gate.detail.as_str()),
                Some(detail)
            );
        }
    }
}
