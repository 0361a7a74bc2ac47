//! Runs without records of their seconds, such as imported histograms: one number of all wake-ups
//! of each run decides, by its rank.
//!
//! The choice of that number follows from the question and from the kind of data, never from the
//! results: the share of wake-ups at or above a limit that is given, else a quantile (p99), and the
//! maximum if a run has no histogram.

use super::numbers::{AskedNumbers, Exposures, UnitNumbers, answer};
use super::{CompareQuestion, Compared, Counted, Metric, Unit};
use crate::bounds::numbers::digits;
use crate::pair::conditional_binomial::Exposure;
use crate::pair::unit::ComparedUnit;
use crate::pair::verdict::{self, Design, UnitTest};
use model::histogram::{Bucket, total_of};
use model::text::{excerpt, several};
use model::units::Nanos;

/// Quantile that decides if no limit is given.
const USUAL_QUANTILE: f64 = 0.99;

/// Summary of all wake-ups of a run.
#[derive(Clone, Debug, Default)]
pub struct RunSummary {
    pub title: String,
    /// Wake-ups by latency, ascending; empty without a histogram.
    pub rows: Vec<Bucket>,
    /// Number of wake-ups beyond the rows.
    pub beyond: u64,
    /// Latency from which they are beyond; `None` if unknown, below 0 if they may have been early.
    pub beyond_from: Option<Nanos>,
    pub max: Option<Nanos>,
    /// Observed time, 0 if unknown.
    pub observed: Nanos,
    /// Number of wake-ups; `None` if unknown.
    pub wake_ups: Option<u64>,
    /// Number of seconds with a record.
    pub blocks: usize,
}

/// Compares runs by all their wake-ups.
pub fn compare_summaries(a: &[RunSummary], b: &[RunSummary], question: &CompareQuestion) -> Compared {
    let all: Vec<&RunSummary> = a.iter().chain(b).collect();
    let chosen = WholeRunMetric::of(question, &all);
    let refusal = chosen.refusal(&all);
    let counts =
        |side: &[RunSummary]| side.iter().map(|run| run.exposure(question.limit)).collect::<Vec<_>>();
    let (in_a, in_b) = (counts(a), counts(b));
    let known = |side: &[Option<Exposure>]| side.iter().copied().collect::<Option<Vec<Exposure>>>();
    // For another metric the counts are shown if they are known.
    let none = |side: &[RunSummary]| vec![Exposure { events: 0, time: 0.0 }; side.len()];
    let (counts_a, counts_b) = known(&in_a).zip(known(&in_b)).unwrap_or_else(|| (none(a), none(b)));
    let counts = Exposures { a: &counts_a, b: &counts_b };
    let test = match question.design {
        Design::Paired => UnitTest::SignFlip,
        Design::Unpaired => UnitTest::RankSum,
    };
    let step = chosen.step(&all);
    let latency = |run: &RunSummary| chosen.latency(run, step);
    let numbers = match chosen {
        WholeRunMetric::RateAt(_) => UnitNumbers::of_rates(counts, question.margin, test),
        _ => {
            let of = |run: &RunSummary| latency(run).map_or(f64::NAN, |latency| latency.0 as f64);
            let of = |side: &[RunSummary]| side.iter().map(of).collect::<Vec<f64>>();
            UnitNumbers::of_latencies(of(a), of(b), question.margin, test, step as f64)
        }
    };
    let (level, metric) = (question.limit, chosen.name());
    let (counted, unit) = (Counted::WakeUps, ComparedUnit::Run);
    let mut compared = answer(&numbers, counts, AskedNumbers { question, level, metric, counted, unit });
    let units = |side: &[RunSummary], counts: &[Option<Exposure>]| {
        side.iter().zip(counts).map(|(run, count)| run.unit(*count, latency(run))).collect::<Vec<_>>()
    };
    (compared.a, compared.b) = (units(a, &in_a), units(b, &in_b));
    match refusal {
        Some(refusal) => compared.refuse(&refusal),
        None => compared.name_what_more_runs_do_not_show(counts),
    }
    compared
}

impl Compared {
    fn refuse(&mut self, refusal: &MetricRefusal) {
        self.no_verdict(&refusal.reason, &refusal.remedy);
        (self.rate_ratio, self.ci, self.difference_ns) = (None, None, None);
        (self.p_value, self.baseline, self.smallest_detectable) = (None, None, None);
        self.units_needed = None;
    }

    /// Withdraws the verdict if no event was counted: more runs cannot distinguish two rates of 0.
    fn name_what_more_runs_do_not_show(&mut self, counts: Exposures) {
        let events = counts.a.iter().chain(counts.b).map(|unit| unit.events).max();
        if let (Some(limit), Some(0), None) = (self.limit_ns, events, self.difference_ns) {
            let reason = format!("no wake-up of any run reached {}", limit.spoken());
            self.no_verdict(&reason, "compare at a limit that some runs reach, or by --metric p99");
        }
    }
}

/// Number of each run that decides.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WholeRunMetric {
    /// The share of wake-ups at or above a limit.
    RateAt(Nanos),
    Quantile(f64),
    Maximum,
}

/// Reason why a run has no such number, with the remedy.
struct MetricRefusal {
    reason: String,
    remedy: String,
}

impl WholeRunMetric {
    /// Chooses the metric by the question and the kind of data.
    fn of(question: &CompareQuestion, all: &[&RunSummary]) -> WholeRunMetric {
        let histograms = all.iter().all(|run| !run.rows.is_empty());
        match (question.metric, question.limit) {
            (Metric::Quantile(q), _) => WholeRunMetric::Quantile(q),
            (Metric::Rate, _) if !histograms => WholeRunMetric::Maximum,
            (Metric::Rate, Some(limit)) => WholeRunMetric::RateAt(limit),
            (Metric::Rate, None) => WholeRunMetric::Quantile(USUAL_QUANTILE),
        }
    }

    /// Name in the document.
    fn name(self) -> String {
        match self {
            WholeRunMetric::RateAt(_) => "exceedance-rate".into(),
            WholeRunMetric::Quantile(q) => format!("p{}", digits(100.0 * q)),
            WholeRunMetric::Maximum => "max".into(),
        }
    }

    fn refusal(self, all: &[&RunSummary]) -> Option<MetricRefusal> {
        let first = |lacking: &dyn Fn(&RunSummary) -> bool| all.iter().copied().find(|run| lacking(run));
        if let Some(run) = first(&|run| run.wake_ups == Some(0)) {
            let reason = format!("{} measured no wake-up", run.name());
            return Some(MetricRefusal { reason, remedy: "remove it from the comparison".into() });
        }
        match self {
            WholeRunMetric::RateAt(limit) => {
                let run = first(&|run| run.at_or_above(limit).is_none())?;
                if let Some(row) = run.wide_row(limit) {
                    let (from, to) = (row.lower.spoken(), row.upper.spoken());
                    return Some(MetricRefusal {
                        reason: format!(
                            "the histogram of {} has one row from {from} to {to}: the number that reached {} \
                             is not known",
                            run.name(),
                            limit.spoken()
                        ),
                        remedy: format!("compare at a limit of {from} or {to}"),
                    });
                }
                let unknown = format!("the number that reached {} is not known", limit.spoken());
                let lower = format!("compare at a limit of at most {}", run.end().spoken());
                Some(run.cut_refusal(&unknown, &lower))
            }
            WholeRunMetric::Quantile(q) => {
                let (run, name) = (first(&|run| run.row_of(q).is_none())?, self.name());
                if run.rows.is_empty() {
                    return Some(MetricRefusal {
                        reason: format!("{} has no histogram: its {name} is not known", run.name()),
                        remedy:
                            "remove --metric (then the maximum decides), or measure with onbeat, or with a \
                             histogram (cyclictest -h)"
                                .into(),
                    });
                }
                Some(run.cut_refusal(&format!("its {name} is not known"), "compare by a lower quantile"))
            }
            WholeRunMetric::Maximum => maximum_refusal(all),
        }
    }

    /// Step in which the number was recorded in the coarsest run.
    fn step(self, all: &[&RunSummary]) -> i64 {
        let of = |run: &&RunSummary| match self {
            WholeRunMetric::RateAt(_) => None,
            WholeRunMetric::Quantile(q) => run.row_of(q).map(|row| row.upper.0.saturating_sub(row.lower.0)),
            // Tools without finer values write whole microseconds.
            WholeRunMetric::Maximum => {
                run.max.filter(|max| max.0 % Nanos::MICRO.0 == 0).map(|_| Nanos::MICRO.0)
            }
        };
        all.iter().filter_map(of).max().unwrap_or(1).max(1)
    }

    /// Number of a run if it is a latency, on the edges of that step: finer records carry no more
    /// than the coarsest.
    fn latency(self, run: &RunSummary, step: i64) -> Option<Nanos> {
        let up = |ns: i64| ns.saturating_add((-ns).rem_euclid(step));
        match self {
            WholeRunMetric::RateAt(_) => None,
            WholeRunMetric::Quantile(q) => {
                let row = run.row_of(q)?;
                let coarsest = row.upper.0.saturating_sub(row.lower.0) >= step;
                Some(if coarsest { row.upper } else { Nanos(up(row.upper.0)) })
            }
            WholeRunMetric::Maximum => run.max.map(|max| Nanos(max.0 - max.0.rem_euclid(step))),
        }
    }
}

/// Reason why maxima show nothing: a longer run has the larger one, whatever it measured.
fn maximum_refusal(all: &[&RunSummary]) -> Option<MetricRefusal> {
    let remedy = "measure with onbeat, or store the tool's histogram (cyclictest -h 400): a maximum alone is \
                  not enough";
    let refused = |reason: String| Some(MetricRefusal { reason, remedy: remedy.into() });
    let bare = all.iter().find(|run| run.rows.is_empty())?;
    if let Some(run) = all.iter().find(|run| run.max.is_none()) {
        return refused(format!(
            "{} has no histogram, and the maximum of {} is not known",
            bare.name(),
            run.name()
        ));
    }
    let why = "has no histogram, and maxima are only compared between runs of equal length";
    let timed = all.iter().all(|run| run.observed.0 > 0);
    let length = |run: &&&RunSummary| {
        if timed { Some(run.observed.0 as f64) } else { run.wake_ups.map(|n| n as f64) }
    };
    if let Some(run) = all.iter().find(|run| length(run).is_none()) {
        return refused(format!("{} {why}: the length of {} is not known", bare.name(), run.name()));
    }
    let units: Vec<Exposure> =
        all.iter().filter_map(|run| length(&run)).map(|time| Exposure { events: 0, time }).collect();
    if verdict::is_one_length(&units, &[]) {
        return None;
    }
    refused(format!("{} {why}: these lengths differ", bare.name()))
}

impl RunSummary {
    /// Wake-ups at or above a limit; `None` if it lies beyond the histogram's end, as do some
    /// wake-ups, or in a wide row. A narrow row that holds the limit counts if its middle does.
    fn at_or_above(&self, limit: Nanos) -> Option<u64> {
        if self.rows.is_empty() || self.wide_row(limit).is_some() {
            return None;
        }
        if self.max.is_some_and(|max| max < limit) {
            return Some(0);
        }
        let beyond = match self.beyond {
            0 => 0,
            _ if self.beyond_may_be_early() => return None,
            n if self.end() >= limit => n,
            // The only one is the largest of all.
            1 if self.max.is_some() => 1,
            _ => return None,
        };
        let reaches = |row: &&Bucket| row.lower.0 + row.upper.0.saturating_sub(row.lower.0) / 2 >= limit.0;
        Some(self.rows.iter().filter(reaches).map(|row| row.count).fold(beyond, u64::saturating_add))
    }

    /// The row that holds the limit, if it is wider than those of onbeat and the maximum does not
    /// settle it.
    fn wide_row(&self, limit: Nanos) -> Option<Bucket> {
        let is_wide = |row: &Bucket| (row.upper.0.saturating_sub(row.lower.0)).saturating_mul(16) > limit.0;
        let holds = |row: &&Bucket| row.lower < limit && limit < row.upper && is_wide(row);
        let row = self.rows.iter().find(holds)?;
        self.max.is_none_or(|max| max >= limit).then_some(*row)
    }

    /// True if the wake-ups outside of the rows may be on either side of them.
    fn beyond_may_be_early(&self) -> bool {
        self.beyond > 0 && self.beyond_from.is_some_and(|from| from.0 < 0)
    }

    /// Latency from which a wake-up is beyond the rows.
    fn end(&self) -> Nanos {
        let last = self.rows.last().map_or(Nanos(0), |row| row.upper);
        self.beyond_from.map_or(last, |from| from.max(last))
    }

    fn exposure(&self, limit: Option<Nanos>) -> Option<Exposure> {
        let time = total_of(&self.rows).saturating_add(self.beyond) as f64;
        Some(Exposure { events: self.at_or_above(limit?)?, time })
    }

    /// The row of the nearest-rank quantile; `None` if that is beyond the rows.
    fn row_of(&self, q: f64) -> Option<Bucket> {
        if self.beyond_may_be_early() {
            return None;
        }
        let all = u128::from(total_of(&self.rows)) + u128::from(self.beyond);
        let per_million = (q * 1e6).round().clamp(0.0, 1e6) as u128;
        let rank = (all * per_million).div_ceil(1_000_000).max(1);
        let mut seen = 0u128;
        self.rows.iter().copied().find(|row| {
            seen += u128::from(row.count);
            seen >= rank
        })
    }

    /// Title, which has external text, for a sentence.
    fn name(&self) -> String {
        excerpt(&self.title)
    }

    fn cut_refusal(&self, unknown: &str, lower: &str) -> MetricRefusal {
        let (name, end) = (self.name(), self.end().spoken());
        let reason = if self.beyond_may_be_early() {
            let outside = several(self.beyond, "wake-up is", "wake-ups are");
            format!("{outside} in no row of the histogram of {name}, early or late: {unknown}")
        } else {
            let beyond = several(self.beyond, "wake-up lies", "wake-ups lie");
            format!("the histogram of {name} ends at {end}, and {beyond} beyond: {unknown}")
        };
        MetricRefusal {
            reason,
            remedy: format!("{lower}, or measure with onbeat, or with a longer histogram (cyclictest -h)"),
        }
    }

    fn unit(&self, count: Option<Exposure>, value: Option<Nanos>) -> Unit {
        Unit {
            title: self.title.clone(),
            observed_ns: self.observed,
            blocks: self.blocks,
            max_ns: self.max,
            exceedances: count.map(|count| count.events),
            wake_ups: self.wake_ups.or(count.map(|count| count.time as u64)),
            value_ns: value,
            ..Unit::default()
        }
    }
}

#[cfg(test)]
mod tests;
