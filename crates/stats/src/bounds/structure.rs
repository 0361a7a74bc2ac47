//! Structure of the spikes in time: periods, bursts, changes. A recurrence is not chance.

use serde::Serialize;

use super::events;
use super::gates::Gate;
use super::input::BoundsInput;
use super::periods::{self, MIN_SPIKES, Period, SeriesSpike, largest};
use crate::time::period::WatchedSpan;
use crate::time::{burst, change, cluster};
use model::units::Nanos;

/// Number of blocks in a window whose spikes are counted for changes of the rate.
const WINDOW: i64 = 10;
/// Largest number of windows; in longer runs the windows are longer.
const MAX_WINDOWS: i64 = 20_000;
/// Smallest mean size of clusters that are reported.
const CLUSTERED: f64 = 1.5;

/// Structure of the spikes in time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Structure {
    /// Periods among the largest blocks, the strongest evidence first.
    pub periods: Vec<Period>,
    /// Unevenness of the spikes; null if there are too few.
    pub bursts: Option<Bursts>,
    /// Stretches with different rates of spikes; one if the rate did not change.
    pub stretches: Vec<RateEpoch>,
    /// All findings in sentences.
    pub sentences: Vec<String>,
    /// Number of the largest blocks that could be distinguished and were looked at; too few show no
    /// period.
    pub spikes_looked_at: usize,
}

/// Unevenness of spikes in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    pub spikes: u64,
    /// Variance over mean of their counts; 1 for independent events.
    pub dispersion: f64,
    /// Probability of at least such a dispersion of independent events.
    pub p_value: f64,
    /// Share of the spikes in the fullest windows, which hold most of them.
    pub share_of_spikes: f64,
    /// Share of the time in these windows.
    pub share_of_time: f64,
    /// Extremal index by the intervals between spikes (Ferro and Segers): one over the mean size of
    /// a cluster.
    pub theta_intervals: Option<f64>,
    /// Extremal index by K-gaps, K = 1 (Suveges and Davison).
    pub theta_k_gaps: Option<f64>,
}

/// A stretch of the run with one rate of spikes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateEpoch {
    /// Start, after the start of the run.
    pub from_ns: Nanos,
    pub to_ns: Nanos,
    pub spikes: u64,
    pub per_hour: f64,
}

/// Looks for periods, bursts and changes among the largest blocks.
pub fn structure(input: &BoundsInput) -> Structure {
    let series = input.series;
    let observed = series.observed.0.max(0);
    let start = series.every().next().map_or(0, |block| block.at.0);
    let (spikes, blocks) = (peaks(input), series.blocks.len() + series.partial.len());
    let span = WatchedSpan::new(start, start.saturating_add(observed));
    let tick = periods::tick(series);
    let (periods, spikes_looked_at) = periods::periods(input, &spikes, blocks, span, tick);
    let large = largest(&spikes, blocks / 50);
    let (bursts, stretches) = rates(&large, span, series.block.0);
    let mut found = Structure { periods, bursts, stretches, sentences: Vec::new(), spikes_looked_at };
    found.sentences = sentences(&found);
    if tick > series.tick && blocks >= MIN_SPIKES {
        found.sentences.push(
            "Nearly every block has its largest latency at the same time within the block: it has one recurring cause, or the times are no finer than blocks.".into(),
        );
    }
    found
}

/// The largest peaks of clusters of block maxima, as many as are looked at: two blocks may share
/// one event at their common edge.
fn peaks(input: &BoundsInput) -> Vec<SeriesSpike> {
    let series = input.series;
    let blocks = series.blocks.len() + series.partial.len();
    // One more than is chosen, to detect a tie at the cut.
    let most = periods::MAX_SPIKES.max(blocks / 50) + 1;
    let mut peaks: Vec<SeriesSpike> = Vec::new();
    let maxima = series.every().map(|block| (block.at.0, block.max.0));
    cluster::peaks(maxima, events::gap(series), |peak| {
        peaks.push(peak);
        if peaks.len() >= 2 * most {
            peaks.select_nth_unstable_by_key(most - 1, |spike| (std::cmp::Reverse(spike.1), spike.0));
            peaks.truncate(most);
        }
    });
    peaks.sort_unstable();
    peaks
}

fn rates(large: &[SeriesSpike], span: WatchedSpan, block: i64) -> (Option<Bursts>, Vec<RateEpoch>) {
    let start = span.from;
    let length = span.to.saturating_sub(start).max(0);
    let window = block.saturating_mul(WINDOW).max(length / MAX_WINDOWS).max(1);
    let windows = length / window;
    if windows < 10 || large.len() < MIN_SPIKES {
        return (None, Vec::new());
    }
    let mut counts = vec![0u64; windows as usize];
    for (at, _) in large {
        let place = (at.saturating_sub(start).max(0) / window).min(windows - 1);
        counts[place as usize] += 1;
    }
    let place = |spike: &SeriesSpike| (spike.0.saturating_sub(start).max(0) / block.max(1)) as u64;
    let mut places: Vec<u64> = large.iter().map(place).collect();
    places.sort_unstable();
    let at = |edge: usize| Nanos((edge as i64).saturating_mul(window));
    let stretch = |segment: change::Segment| {
        let (from_ns, to_ns) = (at(segment.from), at(segment.to));
        let hours = (to_ns - from_ns).as_secs() / 3600.0;
        RateEpoch { from_ns, to_ns, spikes: segment.events, per_hour: segment.events as f64 / hours }
    };
    let stretches = change::segments(&counts, 3).into_iter().map(stretch).collect();
    let bursts =
        burst::dispersion(&counts).zip(burst::busiest(&counts)).map(|(dispersion, busiest)| Bursts {
            spikes: large.len() as u64,
            dispersion: dispersion.index,
            p_value: dispersion.p,
            share_of_spikes: busiest.events,
            share_of_time: busiest.time,
            theta_intervals: cluster::theta_intervals(&places),
            theta_k_gaps: cluster::theta_k_gaps(
                &places,
                large.len() as f64 * block as f64 / length as f64,
                1,
            ),
        });
    (bursts, stretches)
}

impl Structure {
    /// Removes the sentences on unevenness if the level of all maxima moves, which explains it: a
    /// climb, a fall or a step has a separate sentence and time. The numbers stay.
    pub fn explained(&mut self, gates: &[Gate]) {
        let moves = |gate: &Gate| gate.id == "G1" && gate.judged && !gate.passed && !gate.on_bunched();
        if gates.iter().any(moves) {
            let uneven = unevenness(self);
            self.sentences.retain(|line| !uneven.contains(line));
        }
    }
}

fn sentences(found: &Structure) -> Vec<String> {
    let mut lines: Vec<String> = found.periods.iter().map(Period::sentence).collect();
    lines.extend(unevenness(found));
    lines
}

fn unevenness(found: &Structure) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(bursts) = found.bursts.filter(|bursts| bursts.p_value < 0.01 && bursts.dispersion > 1.0) {
        let size = bursts.theta_intervals.and_then(burst::mean_cluster_size);
        let clusters = size
            .filter(|size| *size >= CLUSTERED)
            .map_or_else(String::new, |size| format!(", in clusters of about {size:.0} blocks"));
        lines.push(format!(
            "Spikes come in bursts: {:.0} % of the {} largest in {:.1} % of the time{clusters}.",
            100.0 * bursts.share_of_spikes,
            bursts.spikes,
            100.0 * bursts.share_of_time
        ));
    }
    for pair in found.stretches.windows(2) {
        lines.push(format!(
            "The rate of spikes changed {} after the start: {:.1} an hour before, {:.1} after.",
            pair[1].from_ns.spoken(),
            pair[0].per_hour,
            pair[1].per_hour
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moving_level_is_not_reported_as_burst_or_change_of_rate() {
        let stretch = |from: i64, spikes| RateEpoch {
            from_ns: Nanos(from * Nanos::SECOND.0),
            to_ns: Nanos((from + 300) * Nanos::SECOND.0),
            spikes,
            per_hour: 12.0 * spikes as f64,
        };
        let mut found =
            Structure { stretches: vec![stretch(0, 1), stretch(300, 20)], ..Structure::default() };
        found.sentences = sentences(&found);
        let refused =
            |condition| Gate::refused("G1", "level", String::new(), String::new(), "").on(condition);
        for (condition, left) in [("if the spikes were not bunched", 1), ("if the maxima did not rise", 0)] {
            found.explained(&[refused(condition)]);
            assert_eq!(found.sentences.len(), left, "{condition}");
        }
    }

    #[test]
    fn bursts_of_several_blocks_are_reported() {
        let sentences_of = |theta: Option<f64>| {
            let bursts = Bursts {
                spikes: 40,
                dispersion: 5.0,
                p_value: 1e-6,
                share_of_spikes: 0.5,
                share_of_time: 0.05,
                theta_intervals: theta,
                theta_k_gaps: None,
            };
            sentences(&Structure { bursts: Some(bursts), ..Structure::default() }).remove(0)
        };
        assert!(sentences_of(Some(0.25)).ends_with("in 5.0 % of the time, in clusters of about 4 blocks."));
        for single in [None, Some(0.9), Some(0.0)] {
            assert!(sentences_of(single).ends_with("in 5.0 % of the time."));
        }
    }
}
