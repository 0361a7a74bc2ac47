//! Gates G6, G7, G8 and G11: a mechanism with a period, enough data, not too far ahead, a valid
//! run.

use super::gates::Gate;
use super::input::{BoundsInput, MAX_REACH, Question};
use super::structure::Structure;
use crate::series::Series;
use model::text::several;
use model::units::Nanos;

/// Least number of blocks for a fit of the tail.
pub const MIN_FIT_BLOCKS: usize = 60;
/// Least number of different values that show a shape.
const MIN_DISTINCT_VALUES: usize = 5;
/// Largest share of excluded blocks: with more, the rest is a selection.
const MAX_PARTIAL_SHARE: f64 = 0.01;

/// Remedy for a mechanism with a period.
pub const TREAT: &str = "Treat them as a mechanism: fix it or budget for it, then measure again.";
/// Assumption of a count on a run with a period.
pub const ONCE: &str = "if nothing recurred";

/// G6: no period among the spikes longer than the recorded block, nor among all blocks, folded. A
/// period that is not longer is in each block.
pub fn period(structure: &Structure, block: Nanos, folded: Option<Gate>) -> Gate {
    const NAME: &str = "periodicity";
    let longer = structure.periods.iter().find(|period| period.period_s > 1.01 * block.as_secs());
    if let Some(gate) = folded.filter(|_| longer.is_none()) {
        return gate;
    }
    if structure.spikes_looked_at == 0 {
        return Gate::not_judged("G6", NAME, "too few blocks stand out from the others");
    }
    match longer {
        None => {
            let absorbed = structure.periods.first().map_or_else(String::new, |period| {
                format!("; the period of {} lies within each block", period.every())
            });
            Gate::passed("G6", NAME, format!("no period among the spikes{absorbed}"))
        }
        Some(period) => Gate::refused("G6", NAME, period.detail(), period.refusal(), TREAT).on(ONCE),
    }
}

/// G7: enough blocks, and enough different values among them.
pub fn enough(n: usize, values: usize, resolution: Nanos) -> Gate {
    const NAME: &str = "enough data";
    let blocks = several(n as u64, "block", "blocks");
    let detail = format!(
        "{blocks} (at least {MIN_FIT_BLOCKS}), {} in steps of {} (at least {MIN_DISTINCT_VALUES})",
        several(values as u64, "different value", "different values"),
        resolution.spoken()
    );
    if n >= MIN_FIT_BLOCKS && values >= MIN_DISTINCT_VALUES {
        return Gate::passed("G7", NAME, detail);
    }
    let (refusal, remedy) = if n < MIN_FIT_BLOCKS {
        (format!("Too little data: {blocks}, at least {MIN_FIT_BLOCKS} are needed."), "Measure longer.")
    } else if values == 1 {
        (
            "Too little data: all maxima are the same value.".into(),
            "Record in finer steps; a constant has no tail.",
        )
    } else {
        (
            format!("Too little data: the maxima have only {values} different values."),
            "Record in finer steps; a tail cannot be read from so few values.",
        )
    };
    Gate::refused("G7", NAME, detail, refusal, remedy)
}

/// G8: a horizon within the reach of the run's length.
pub fn horizon(question: &Question, observed: Nanos) -> Gate {
    const NAME: &str = "horizon";
    let most = farthest(question, observed);
    let (asked, from, farthest) = (question.horizon.spoken(), observed.spoken(), most.spoken());
    let detail = format!("{asked} from {from}; the maximum is {farthest}");
    if question.horizon <= most {
        return Gate::passed("G8", NAME, detail);
    }
    if !question.chosen {
        let detail = format!("{detail}, which is used, because no --horizon was given");
        return Gate::passed("G8", NAME, detail);
    }
    let refusal = format!("Requested {asked} from {from}: this run supports at most {farthest}.");
    Gate::refused("G8", NAME, detail, refusal, "Use a shorter --horizon, or measure longer.")
}

/// Reach of an extrapolation from a run of this length.
pub fn farthest(question: &Question, observed: Nanos) -> Nanos {
    Nanos((observed.0 as f64 * question.reach.clamp(0.0, MAX_REACH)) as i64)
}

/// G11: a valid run with nearly all of its data.
pub fn integrity(input: &BoundsInput) -> Gate {
    const NAME: &str = "integrity";
    let series: &Series = input.series;
    let mut reasons: Vec<String> = input.run.invalid.to_vec();
    // A wake-up later than the interval takes the next ones' slots; each would have been late.
    let slept = (input.run.missed > 0).then(|| {
        format!(
            "{} missed after wake-ups later than the interval: their lateness is not included in the maxima",
            several(input.run.missed, "slot was", "slots were")
        )
    });
    let only_slept = reasons.is_empty() && slept.is_some();
    reasons.extend(slept);
    let left_out = series.partial.len();
    let share = left_out as f64 / (left_out + series.blocks.len()).max(1) as f64;
    if share > MAX_PARTIAL_SHARE && left_out > 1 {
        reasons.push(format!("{left_out} blocks lack a CPU or are incomplete"));
    }
    reasons.extend(series.lost());
    let joined = match series.joined {
        0 => String::new(),
        n => format!(
            "; {} several blocks, of which only the largest latency has a time",
            several(n, "record spans", "records span")
        ),
    };
    if reasons.is_empty() {
        return Gate::passed("G11", NAME, format!("the run is valid{joined}"));
    }
    let detail = format!("{}{joined}", reasons.join("; "));
    if only_slept && reasons.len() == 1 {
        let refusal = format!("Samples are missing: {}.", reasons[0]);
        return Gate::refused(
            "G11",
            NAME,
            detail,
            refusal,
            "Measure with an interval (-i) longer than the largest latency, or remove the cause first.",
        );
    }
    let refusal = format!("The run is invalid: {}.", reasons[0]);
    Gate::refused("G11", NAME, detail, refusal, "Remove the cause, then measure again.")
}
