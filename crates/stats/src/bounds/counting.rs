//! Bounds that counting alone supports: only exchangeability of the blocks is assumed.

use serde::Serialize;

use super::answer::{BoundsVerdict, SequentialVerdict};
use super::events::reached;
use super::exchangeability::Exchangeability;
use super::input::{BoundsInput, CONFIDENCE, Question};
use crate::count::{climb, order, rate, record, sequential};
use crate::levels::Levels;
use model::units::Nanos;

const HOUR: f64 = 3600.0;

/// Least number of blocks per horizon for a claim of one event per horizon.
const MIN_HORIZON_BLOCKS: i64 = 10;

/// Quantiles of the block maxima that are bounded.
const QUANTILES: &[f64] = &[0.5, 0.9, 0.99, 0.999, 0.9999];

/// The ranks of the largest maxima for which the next larger one is predicted.
const LARGEST: [u32; 4] = [2, 3, 5, 10];

/// Bounds by counting. Numbers are null if nothing was observed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counting {
    /// Full blocks with all CPUs.
    pub blocks: u64,
    /// Length of a block.
    pub block_ns: Nanos,
    /// Step in which latencies were recorded.
    pub resolution_ns: Nanos,
    /// Time for which all CPUs are known to have been watched.
    pub observed_ns: Nanos,
    pub observed_max_ns: Option<Nanos>,
    /// Time ahead for which the numbers hold.
    pub horizon_ns: Nanos,
    /// The confidence of the bounds.
    pub confidence: f64,
    /// Probability that a wake-up in the horizon is later than all observed.
    pub new_record_probability: Option<f64>,
    /// Probability that one in the next hour is.
    pub new_record_probability_1h: Option<f64>,
    /// True if the run ended at its largest latency: nothing follows from its maxima then.
    pub ended_by_limit: bool,
    /// Chances that the horizon is worse than the second largest block, the third and so on; empty
    /// without blocks.
    pub beyond: Vec<Beyond>,
    /// Time for which the observed maximum holds with the confidence.
    pub record_stands_ns: Option<Nanos>,
    /// Length of a run whose largest latency holds for the horizon with the confidence.
    pub record_seconds_needed: Option<f64>,
    /// Upper bound of the rate of exceedances of the limit; without one, of unseen events.
    pub rate_upper_per_hour: Option<f64>,
    /// Length of a run without an exceedance that claims at most one per horizon.
    pub clean_seconds_needed: Option<f64>,
    /// Rate below which a mechanism may not have occurred at all.
    pub hidden_rate_per_hour: Option<f64>,
    /// Shortest time per exceedance that a clean run of this length claims.
    pub claims_one_per_s: Option<f64>,
    /// Bounds of quantiles of the block maxima by order statistics; null if the blocks are too few.
    pub quantiles: Vec<Quantile>,
    /// Growth of the maximum over the run.
    pub records: Option<Records>,
}

/// A quantile of the block maxima between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantile {
    pub q: f64,
    /// Lower bound of the quantile at the confidence.
    pub lower_ns: Option<Nanos>,
    /// Upper bound of the quantile at the confidence.
    pub upper_ns: Option<Nanos>,
    /// Least number of blocks whose maximum bounds it from above with the confidence; both bounds
    /// take more.
    pub blocks_needed: Option<u64>,
}

/// Chance that a block is later than one of the largest maxima.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beyond {
    /// The rank: 2 is the second largest.
    pub k: u32,
    pub value_ns: Nanos,
    /// Probability that some block of the horizon is later.
    pub probability: f64,
}

/// Number of times that the running maximum grew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Records {
    pub count: u64,
    /// Expected number for exchangeable blocks.
    pub expected: f64,
    /// Probability of this number or more.
    pub p_value: f64,
}

/// A claim: the limit is reached at most once per horizon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Claim {
    pub limit_ns: Nanos,
    /// Events at or above the limit.
    pub exceedances: u64,
    /// Upper limit of the events, if an import does not contain all samples.
    pub exceedances_at_most: u64,
    /// True if every full block reached it: blocks are counted once, so no upper bound of the rate
    /// follows.
    pub in_every_block: bool,
    /// Two-sided bounds of their rate (Garwood).
    pub rate_per_hour: Option<(f64, f64)>,
    /// Length of observation that the claim needs with these exceedances.
    pub seconds_needed: f64,
    /// `supported`, `failed` or `inconclusive`, for a length that was fixed beforehand; never
    /// supported by blocks that are not exchangeable.
    pub by_counting: BoundsVerdict,
    /// `pass`, `fail` or `go-on`, by the rule for a test that is watched and stopped early.
    pub sequential: SequentialVerdict,
    /// Time after which a watched run passes without an exceedance.
    pub sequential_clean_seconds: f64,
    /// Total time after which a watched run passes with its exceedances, at any time that it is
    /// looked at.
    pub sequential_seconds_needed: f64,
}

impl Claim {
    /// True if a run of this length is as long as the claim takes; the length of its blocks is not
    /// considered.
    pub fn long_enough(&self, observed: Nanos) -> bool {
        observed > Nanos(0) && observed.as_secs() >= self.seconds_needed
    }
}

pub fn count(input: &BoundsInput, question: &Question) -> Counting {
    let series = input.series;
    let observed = series.observed.0.max(0) as f64;
    let horizon = question.horizon.as_secs();
    let seconds = observed / 1e9;
    let known = |value: f64| (observed > 0.0).then_some(value);
    let events = question.limit.map_or(0, |limit| reached(input, limit).at_most);
    let max = observed_max(input);
    let n = series.blocks.len();
    let levels = Levels::of(series.values().iter(), n);
    // The last block of such a run is the largest by design, unlike those that would follow.
    let ended_by_limit = input.run.ended_by_limit;
    let seen = known(observed).filter(|_| max.is_some() && !ended_by_limit);
    Counting {
        blocks: series.blocks.len() as u64,
        block_ns: series.block,
        resolution_ns: series.step,
        observed_ns: series.observed,
        observed_max_ns: max,
        horizon_ns: question.horizon,
        confidence: CONFIDENCE,
        new_record_probability: seen.map(|n| record::new_record(n, question.horizon.0 as f64)),
        new_record_probability_1h: seen.map(|n| record::new_record(n, HOUR * 1e9)),
        ended_by_limit,
        beyond: beyond(
            (!ended_by_limit).then_some((&levels, n)),
            question.horizon.0 as f64 / series.block.0.max(1) as f64,
        ),
        record_stands_ns: seen.map(|n| Nanos(record::blocks_covered(n, CONFIDENCE) as i64)),
        record_seconds_needed: Some(record::blocks_needed(horizon, CONFIDENCE)),
        rate_upper_per_hour: known(rate::upper(events, CONFIDENCE) / seconds * HOUR),
        clean_seconds_needed: Some(rate::time_needed(0, horizon, CONFIDENCE)),
        hidden_rate_per_hour: known(rate::hidden_rate(seconds, CONFIDENCE) * HOUR),
        claims_one_per_s: known(rate::time_between(0, seconds, CONFIDENCE)),
        quantiles: quantiles(&levels, n, series.step),
        records: records(input),
    }
}

/// Largest latency of blocks and histogram.
fn observed_max(input: &BoundsInput) -> Option<Nanos> {
    input.series.worst().map(|block| block.max).max(input.histogram.max)
}

/// Shortest limit above all recorded latencies, with their step.
pub fn later_than_all(input: &BoundsInput) -> Option<Nanos> {
    observed_max(input).map(|max| Nanos(max.0.saturating_add(input.series.step.0.max(1)).max(1)))
}

/// Maximum at a rank in ascending order, from 0 on.
fn ranked(levels: &Levels, rank: u64) -> Option<Nanos> {
    levels.at(rank).map(|value| Nanos(value as i64))
}

/// Chances of `blocks` future blocks against the largest of the maxima.
fn beyond(maxima: Option<(&Levels, usize)>, blocks: f64) -> Vec<Beyond> {
    let Some((levels, n)) = maxima else { return Vec::new() };
    let one = |k: u32| {
        let value_ns = ranked(levels, (n as u64).checked_sub(u64::from(k))?)?;
        Some(Beyond { k, value_ns, probability: record::beyond_kth(n as f64, blocks, k) })
    };
    LARGEST.into_iter().filter_map(one).collect()
}

fn quantiles(levels: &Levels, n: usize, step: Nanos) -> Vec<Quantile> {
    let value = |rank: u64| ranked(levels, rank.checked_sub(1)?);
    let bound = |&q: &f64| {
        let ranks = order::interval(n as u64, q, CONFIDENCE);
        let upper = ranks.and_then(|ranks| value(ranks.upper));
        Quantile {
            q,
            lower_ns: ranks.and_then(|ranks| value(ranks.lower)),
            upper_ns: upper.map(|upper| Nanos(upper.0.saturating_add(step.0.max(1) - 1))),
            blocks_needed: order::observations_needed(q, CONFIDENCE),
        }
    };
    QUANTILES.iter().map(bound).collect()
}

fn records(input: &BoundsInput) -> Option<Records> {
    let blocks = &input.series.blocks;
    let n = blocks.len() as u64;
    let count = climb::records(blocks.maxima().map(|max| max.0 as f64));
    (n > 0).then(|| Records { count, expected: climb::mean(n), p_value: climb::too_many(count, n) })
}

/// Judges the claim that the limit is reached at most once per horizon, for blocks that may not be
/// exchangeable.
pub fn claim(input: &BoundsInput, question: &Question, limit: Nanos, alike: &Exchangeability) -> Claim {
    let reached = reached(input, limit);
    let series = input.series;
    let (seconds, horizon) = (series.observed.as_secs(), question.horizon.as_secs());
    let (least, most) = (reached.at_least, reached.at_most);
    let seconds_needed = rate::time_needed(most, horizon, CONFIDENCE);
    // A block holds one event at most: a claim per few blocks is beyond this. If recorded
    // blocks have memory, so is one per few of the longer blocks without memory, because events
    // come in a row.
    let fine = series.blocks.is_empty() || question.horizon.0 / MIN_HORIZON_BLOCKS >= alike.block_ns.0;
    let by_counting = if seconds <= 0.0 {
        BoundsVerdict::Inconclusive
    } else if seconds >= seconds_needed {
        if fine && !alike.bars() { BoundsVerdict::Supported } else { BoundsVerdict::Inconclusive }
    } else if rate::comes_too_often(least, seconds, horizon, CONFIDENCE) {
        BoundsVerdict::Failed
    } else {
        BoundsVerdict::Inconclusive
    };
    let sequential = match sequential::decision(most, seconds, horizon) {
        sequential::Decision::Pass if !alike.bars() => SequentialVerdict::Pass,
        sequential::Decision::Fail if least == most => SequentialVerdict::Fail,
        _ => SequentialVerdict::GoOn,
    };
    let per_hour = |(low, high): (f64, f64)| (low / seconds * HOUR, high / seconds * HOUR);
    let lower = rate::interval(least, CONFIDENCE).0;
    let upper = rate::interval(most, CONFIDENCE).1;
    Claim {
        limit_ns: limit,
        exceedances: least,
        exceedances_at_most: most,
        in_every_block: !series.blocks.is_empty() && series.blocks.maxima().all(|max| max >= limit),
        rate_per_hour: (seconds > 0.0).then(|| per_hour((lower, upper))),
        seconds_needed,
        by_counting,
        sequential,
        sequential_clean_seconds: sequential::clean_time(horizon),
        sequential_seconds_needed: sequential::passing_time(most, horizon),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{BLOCK, Series};

    fn of(seconds: i64) -> Counting {
        let list: Vec<Option<Nanos>> = (1..=seconds).map(|second| Some(Nanos(1_000 * second))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        let horizon = Nanos(5 * Nanos::SECOND.0);
        let question = Question { horizon, chosen: true, ..Question::default() };
        count(&BoundsInput::of(&series), &question)
    }

    #[test]
    fn what_every_block_reached_is_told_from_what_most_did() {
        let list: Vec<Option<Nanos>> = (1..=8).map(|second| Some(Nanos(1_000 * second))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        let question = Question { horizon: Nanos::SECOND, chosen: true, ..Question::default() };
        let every = |limit: i64| {
            let alike = Exchangeability::default();
            claim(&BoundsInput::of(&series), &question, Nanos(limit), &alike).in_every_block
        };
        assert!(every(1_000) && !every(1_001));
    }

    #[test]
    fn the_third_largest_is_passed_as_the_note_has_it() {
        let counting = of(10);
        // 1 - (10 * 9 * 8) / (15 * 14 * 13), of ten blocks and five to come.
        let third = counting.beyond[1];
        assert_eq!((third.k, third.value_ns), (3, Nanos(8_000)));
        assert!((third.probability - (1.0 - 720.0 / 2730.0)).abs() < 1e-12);
        assert_eq!(counting.beyond.iter().map(|one| one.k).collect::<Vec<_>>(), [2, 3, 5, 10]);
        assert!((counting.record_seconds_needed.unwrap() - 19.0 * 5.0).abs() < 1e-9);
    }

    #[test]
    fn an_impossible_bound_reports_the_needed_length() {
        let quantile = |seconds: i64, at: usize| of(seconds).quantiles[at];
        let (few, many) = (quantile(10, 1), quantile(100, 1));
        assert_eq!((few.q, few.lower_ns, few.upper_ns, few.blocks_needed), (0.9, None, None, Some(29)));
        assert!(many.lower_ns < Some(Nanos(90_000)) && Some(Nanos(90_000)) < many.upper_ns);
        assert_eq!((quantile(100, 4).upper_ns, quantile(100, 4).blocks_needed), (None, Some(29_956)));
    }

    #[test]
    fn without_blocks_nothing_is_beyond_them() {
        let nothing = of(0);
        assert!(nothing.beyond.is_empty());
        assert!(nothing.quantiles.iter().all(|quantile| quantile.upper_ns.is_none()));
    }
}
