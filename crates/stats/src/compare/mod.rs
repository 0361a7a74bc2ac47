//! Comparison of B with A. The run, or an interleaved segment, is the unit; one number of each
//! decides. For runs with block records that number is of their seconds, for others (`summary`) of
//! all their wake-ups.
//!
//! Seconds of one run resemble each other more than those of two boots: a test over samples or
//! seconds finds a difference in every second pair of equal configurations.

pub mod design;
mod numbers;
pub mod secondary;
pub mod summary;
mod totals;

use serde::Serialize;

use super::pair::conditional_binomial::Exposure;
use super::pair::unit::ComparedUnit;
use super::pair::verdict::{Comparison, Design, UnitTest, Verdict};
use super::pair::{harrell_davis, limit};
use super::series::Series;
pub use design::ALPHA;
use model::histogram::{self, Bucket};
use model::units::Nanos;
use numbers::{AskedNumbers, Exposures, UnitNumbers};
use secondary::{CpuRate, QuantileShift};
use totals::exposure;

/// Schema of the document.
pub const SCHEMA: &str = "onbeat.comparison/1";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Rate at which blocks reach the limit.
    Rate,
    /// A quantile of the block maxima.
    Quantile(f64),
}

impl Metric {
    /// Name in the document.
    pub fn name(self) -> String {
        match self {
            Metric::Rate => "exceedance-rate".into(),
            Metric::Quantile(q) => format!("block-maximum-p{}", super::bounds::numbers::digits(100.0 * q)),
        }
    }
}

/// Kind of event that a unit's exceedances count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Seconds with a latency at or above the limit, each one event.
    Blocks,
    /// Wake-ups, of which several may have been one event.
    WakeUps,
}

/// Question, fixed before the data are looked at.
#[derive(Clone, Copy, Debug)]
pub struct CompareQuestion {
    /// Metric of the verdict.
    pub metric: Metric,
    /// Limit of the rate; by default the one that one block in 200 of all runs reaches, or 20
    /// blocks: no exchange of runs changes it.
    pub limit: Option<Nanos>,
    /// Pairing of the runs.
    pub design: Design,
    /// Margin that counts as no difference: a factor above 1 for rates, a span in ns for quantiles;
    /// `None` for the usual one.
    pub margin: Option<f64>,
}

/// Result, of B against A.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub schema: &'static str,
    /// `better`, `worse`, `equivalent` or `inconclusive`.
    pub verdict: Verdict,
    /// Reason why there is no clearer verdict; `""` if there is one.
    pub reason: String,
    /// Step towards a verdict, if more units of the same kind alone bring none; `""` else.
    pub remedy: String,
    /// `exceedance-rate`, `block-maximum-p99`; for wake-ups `exceedance-rate`, `p99` or `max`.
    pub metric: String,
    /// `blocks` or `wake-ups`, counted at the limit.
    pub counted: Counted,
    /// `permutation`, `sign-flip` or `rank-sum`.
    pub test: UnitTest,
    /// Rate of B over rate of A at the limit, all runs together; null without an exceedance in A.
    pub rate_ratio: Option<f64>,
    /// The 95 % interval over the units (with one run each, or a side without an exceedance, over
    /// the events); for a quantile, that of the difference in ns. An infinite end is null.
    pub ci: Option<[f64; 2]>,
    /// The 90 % interval of two one-sided tests at 5 %, by which A and B are called equivalent: it
    /// lies within the margin. None for any other verdict.
    #[serde(skip)]
    pub equivalence_ci: Option<[f64; 2]>,
    /// Two-sided p over the units; for rates at least that of the events alone. Null if there are
    /// too few units. Against a baseline, one-sided.
    pub p_value: Option<f64>,
    /// True if all ways to exchange the units were gone through for that; else at most 19,999 were
    /// drawn with a fixed seed, or for ranks the normal law was used.
    pub exact: bool,
    /// The p of the events alone, with one run each: it cannot separate the change from the boot.
    pub event_p_value: Option<f64>,
    /// `run`, `day` or `board`: the unit of which one number decides.
    pub unit: ComparedUnit,
    /// Number of pairs, or of units of both sides.
    pub units: usize,
    /// Smallest true effect that this number of units finds four times in five: a factor of rates,
    /// or ns.
    pub smallest_detectable: Option<f64>,
    /// Number of pairs, or units of each side, that would find an effect as large as the margin.
    pub units_needed: Option<usize>,
    /// `paired` or `unpaired`.
    pub design: Design,
    /// Limit at which events were counted; null if none was given and all blocks are equal.
    pub limit_ns: Option<Nanos>,
    /// True if it was fixed beforehand, false if it is that of the pooled blocks.
    pub limit_given: bool,
    /// Margin that counts as no difference.
    pub margin: f64,
    /// Smallest p that this number of units can reach.
    pub smallest_p: f64,
    /// Difference of the metric in ns if it is a quantile.
    pub difference_ns: Option<f64>,
    /// E-value of the counts: from 20 on one may stop early, if the schedule did not depend on
    /// them.
    pub e_value: Option<f64>,
    /// Spread of the counts beyond chance, 1 for none.
    pub overdispersion: Option<f64>,
    /// Result against a baseline, if B is one new run and A are past ones.
    pub baseline: Option<Baseline>,
    /// Quantiles of the block maxima, not part of the verdict; p adjusted by Holm.
    pub quantiles: Vec<QuantileShift>,
    /// Exceedances by their CPU, not part of the verdict; p adjusted by Benjamini and Hochberg.
    pub cpus: Vec<CpuRate>,
    /// Units of A.
    pub a: Vec<Unit>,
    /// Units of B.
    pub b: Vec<Unit>,
}

/// One unit of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unit {
    pub title: String,
    /// Address of its page; empty if it has none.
    #[serde(skip)]
    pub address: String,
    /// Observed time.
    pub observed_ns: Nanos,
    pub blocks: usize,
    /// Largest latency. The larger of two maxima shows little: it depends on chance in one run.
    pub max_ns: Option<Nanos>,
    /// Events at the limit; null if there are no blocks, or no wake-ups, to count.
    pub exceedances: Option<u64>,
    /// Number of wake-ups; null if unknown or irrelevant.
    pub wake_ups: Option<u64>,
    /// Latency that decides, if it is one of all wake-ups.
    pub value_ns: Option<Nanos>,
    /// Quantiles of the wake-ups: p50, p99, p99.9, p99.99; null for a list of maxima.
    pub quantiles_ns: Option<[Option<Nanos>; 4]>,
}

/// One new run against past ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// Number of past runs.
    pub runs: usize,
    /// One-sided chance that a run of the baseline would be as bad; null if it has no spread yet.
    pub p_value: Option<f64>,
    /// `rank`, `prediction-bound` or `none`.
    pub method: &'static str,
    /// True if the new run is worse than the baseline's spread allows.
    pub worse: bool,
}

/// Compares runs.
pub fn compare(a: &[&Series], b: &[&Series], question: &CompareQuestion) -> Compared {
    compare_units(a, b, question, ComparedUnit::Run)
}

/// Compares units of this kind.
pub fn compare_units(
    a: &[&Series],
    b: &[&Series],
    question: &CompareQuestion,
    unit: ComparedUnit,
) -> Compared {
    let level = question.limit.or_else(|| limit::pooled(a, b));
    let counts = |side: &[&Series]| side.iter().map(|series| exposure(series, level)).collect::<Vec<_>>();
    let (in_a, in_b) = (counts(a), counts(b));
    let counts = Exposures { a: &in_a, b: &in_b };
    let test = match question.design {
        Design::Paired => UnitTest::SignFlip,
        Design::Unpaired => UnitTest::Permutation,
    };
    let numbers = match question.metric {
        Metric::Rate => UnitNumbers::of_rates(counts, question.margin, test),
        Metric::Quantile(q) => {
            let of =
                |series: &&Series| harrell_davis::quantile(&series.values().to_vec(), q).unwrap_or(f64::NAN);
            let of = |side: &[&Series]| side.iter().map(of).collect::<Vec<f64>>();
            UnitNumbers::of_latencies(of(a), of(b), question.margin, test, 0.0)
        }
    };
    let (metric, counted) = (question.metric.name(), Counted::Blocks);
    let mut compared =
        numbers::answer(&numbers, counts, AskedNumbers { question, level, metric, counted, unit });
    compared.e_value = totals::e_value(&in_a, &in_b);
    compared.overdispersion = totals::overdispersion(&in_a, &in_b);
    compared.quantiles = secondary::quantiles(a, b, question.design);
    compared.cpus = secondary::cpus(a, b, level, question.design);
    (compared.a, compared.b) = (units(a, &in_a), units(b, &in_b));
    compared.the_answer_has_only_what_is_known();
    compared
}

fn units(side: &[&Series], counts: &[Exposure]) -> Vec<Unit> {
    let unit = |(series, count): (&&Series, &Exposure)| Unit {
        observed_ns: series.observed,
        blocks: series.blocks.len(),
        max_ns: series.worst().map(|block| block.max),
        exceedances: (!series.blocks.is_empty()).then_some(count.events),
        ..Unit::default()
    };
    side.iter().zip(counts).map(unit).collect()
}

impl Unit {
    /// Adds numbers of the run's histogram: quantiles, and the maximum if there are no blocks.
    /// Samples of an import may lie beyond its rows, which are counted with them: a quantile among
    /// those has no value.
    pub fn describe(&mut self, rows: Option<(&[Bucket], u64)>, max: Option<Nanos>) {
        self.max_ns = self.max_ns.max(max);
        let at = |(rows, beyond): (&[Bucket], u64), per_million| match beyond {
            0 => histogram::quantile(rows, max, per_million),
            _ => histogram::quantile_below(rows, beyond, per_million),
        };
        self.quantiles_ns = rows.map(|rows| [500_000, 990_000, 999_000, 999_900].map(|q| at(rows, q)));
    }
}

/// Reason if the units show neither a difference nor equivalence.
pub const UNDECIDED: &str = "the difference is neither significant nor certainly small";

/// Reason if no limit could be chosen.
pub const ALL_ALIKE: &str = "the largest latency of every block is the same, so no limit separates them";

impl Compared {
    /// Withdraws a verdict, because of properties of the runs rather than their results.
    pub fn no_verdict(&mut self, reason: &str, remedy: &str) {
        (self.verdict, self.reason) = (Verdict::Inconclusive, reason.to_owned());
        remedy.clone_into(&mut self.remedy);
    }

    /// Settles the verdict: one new run against a baseline can only be worse; otherwise the answer
    /// is open, with the reason.
    fn settle(&mut self, found: &Comparison) {
        if let Some(baseline) = self.baseline {
            self.p_value = baseline.p_value;
            match baseline.p_value {
                _ if baseline.worse => (self.verdict, self.reason) = (Verdict::Worse, String::new()),
                Some(_) => self.no_verdict(self.unit.within_baseline(), ""),
                None => self.no_verdict(self.unit.too_few_for_baseline(), ""),
            }
            return;
        }
        if self.verdict == Verdict::Inconclusive && found.refusal.is_none() {
            let is_rate = self.difference_ns.is_none();
            self.reason = if is_rate && self.limit_ns.is_none() { ALL_ALIKE } else { UNDECIDED }.into();
        }
    }
}

impl Compared {
    /// Removes the numbers at the limit if a run has no block records: 0 events would be a
    /// statement.
    fn the_answer_has_only_what_is_known(&mut self) {
        if self.a.iter().chain(&self.b).all(|unit| unit.exceedances.is_some()) {
            return;
        }
        self.verdict = Verdict::Inconclusive;
        let one = self.unit.one();
        self.reason = format!("a {one} has no block records, so its rate at the limit is not known");
        (self.rate_ratio, self.ci, self.difference_ns) = (None, None, None);
        (self.p_value, self.event_p_value, self.e_value) = (None, None, None);
        (self.overdispersion, self.baseline, self.smallest_detectable) = (None, None, None);
        self.units_needed = None;
        self.quantiles.clear();
        self.cpus.clear();
    }
}

#[cfg(test)]
mod tests;
