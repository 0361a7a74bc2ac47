//! Is B better than A? The run, or an interleaved segment, is the unit; one number of each decides.
//! Of runs with block records that number is of their seconds, of others (`summary`) of all their
//! wake-ups.
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

/// The schema of the document.
pub const SCHEMA: &str = "onbeat.comparison/1";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// The rate at which blocks reach the limit.
    Rate,
    /// A quantile of the block maxima.
    Quantile(f64),
}

impl Metric {
    /// Its name in the document.
    pub fn name(self) -> String {
        match self {
            Metric::Rate => "exceedance-rate".into(),
            Metric::Quantile(q) => format!("block-maximum-p{}", super::bounds::numbers::digits(100.0 * q)),
        }
    }
}

/// The things that a unit's exceedances are counts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Seconds with a latency at or above the limit, each one event.
    Blocks,
    /// Wake-ups, of which many may have been one event.
    WakeUps,
}

/// What is asked, fixed before the data are looked at.
#[derive(Clone, Copy, Debug)]
pub struct CompareQuestion {
    /// The metric of the verdict.
    pub metric: Metric,
    /// The limit of the rate; none is what one block in 200 of all runs reaches, or 20 blocks: no
    /// exchange of runs changes it.
    pub limit: Option<Nanos>,
    /// How the runs belong together.
    pub design: Design,
    /// What is no difference: a factor above 1 for rates, a span in ns for quantiles; none is the
    /// usual one.
    pub margin: Option<f64>,
}

/// The answer, of B against A.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub schema: &'static str,
    /// `better`, `worse`, `equivalent` or `inconclusive`.
    pub verdict: Verdict,
    /// Why there is no clearer verdict; `""` where there is one.
    pub reason: String,
    /// The step towards a verdict, where more units of the same kind alone bring none; `""` else.
    pub remedy: String,
    /// `exceedance-rate`, `block-maximum-p99`; of wake-ups `exceedance-rate`, `p99` or `max`.
    pub metric: String,
    /// `blocks` or `wake-ups`: what is counted at the limit.
    pub counted: Counted,
    /// `permutation`, `sign-flip` or `rank-sum`.
    pub test: UnitTest,
    /// Rate of B over rate of A at the limit, all runs together; null without an exceedance in A.
    pub rate_ratio: Option<f64>,
    /// Its 95 % interval over the units (of one run each, or of a side without an exceedance, over
    /// the events); of a quantile, that of the difference in ns. An end that is infinite is null.
    pub ci: Option<[f64; 2]>,
    /// The 90 % interval of two one-sided tests at 5 %, by which A and B are called equivalent: it
    /// lies within the margin. None for any other verdict.
    #[serde(skip)]
    pub equivalence_ci: Option<[f64; 2]>,
    /// Two-sided, over the units; of rates the larger of that and of the one that the events alone
    /// give. Null where there are too few units. Against a baseline, one-sided.
    pub p_value: Option<f64>,
    /// Whether all ways to exchange the units were gone through for that; if not, at most 19,999
    /// were drawn with a fixed seed, or of ranks the normal law stands for them.
    pub exact: bool,
    /// Of one run each, that of the events alone: it cannot separate the change from the boot.
    pub event_p_value: Option<f64>,
    /// `run`, `day` or `board`: of what one number each decides.
    pub unit: ComparedUnit,
    /// Pairs, or units of both together.
    pub units: usize,
    /// The smallest true effect that this number of units finds four times in five: a factor of
    /// rates, or ns.
    pub smallest_detectable: Option<f64>,
    /// Pairs, or units of each, that would find an effect as large as the margin.
    pub units_needed: Option<usize>,
    /// `paired` or `unpaired`.
    pub design: Design,
    /// The limit that was counted at; null where none was given and all blocks are alike.
    pub limit_ns: Option<Nanos>,
    /// Whether it was fixed beforehand, or is that of the pooled blocks.
    pub limit_given: bool,
    /// What counts as no difference.
    pub margin: f64,
    /// The smallest p that this number of units can reach.
    pub smallest_p: f64,
    /// The difference of the metric in ns where it is a quantile.
    pub difference_ns: Option<f64>,
    /// The e-value of the counts: from 20 on one may stop early, if nothing of the schedule
    /// depended on them.
    pub e_value: Option<f64>,
    /// Spread of the counts beyond chance, 1 for none.
    pub overdispersion: Option<f64>,
    /// Where B is one new run and A are past ones.
    pub baseline: Option<Baseline>,
    /// Quantiles of the block maxima, not part of the verdict; p adjusted by Holm.
    pub quantiles: Vec<QuantileShift>,
    /// Exceedances by the CPU that had them, not part of the verdict; p adjusted by Benjamini and
    /// Hochberg.
    pub cpus: Vec<CpuRate>,
    /// A's units.
    pub a: Vec<Unit>,
    /// B's units.
    pub b: Vec<Unit>,
}

/// One unit of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unit {
    pub title: String,
    /// Where its own page is; empty where it has none.
    #[serde(skip)]
    pub address: String,
    /// How long it was observed.
    pub observed_ns: Nanos,
    pub blocks: usize,
    /// Its largest latency. The larger of two maxima shows little: it depends on chance in one run.
    pub max_ns: Option<Nanos>,
    /// Events at the limit; null where there are no blocks, or no wake-ups, to count.
    pub exceedances: Option<u64>,
    /// Number of its wake-ups; null where that is not known, or does not matter.
    pub wake_ups: Option<u64>,
    /// The latency that decides, where it is one of all wake-ups.
    pub value_ns: Option<Nanos>,
    /// Quantiles of its wake-ups: p50, p99, p99.9, p99.99; null for a list of maxima.
    pub quantiles_ns: Option<[Option<Nanos>; 4]>,
}

/// One new run against past ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// Past runs.
    pub runs: usize,
    /// One-sided: how often a run of the baseline would be as bad; null where it has no spread yet.
    pub p_value: Option<f64>,
    /// `rank`, `prediction-bound` or `none`.
    pub method: &'static str,
    /// Whether the new run is worse than the baseline's spread allows.
    pub worse: bool,
}

/// Compares runs.
pub fn compare(a: &[&Series], b: &[&Series], question: &CompareQuestion) -> Compared {
    compare_units(a, b, question, ComparedUnit::Run)
}

/// Compares what the units are said to be.
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
    /// Adds what only the run's histogram knows: quantiles, and the maximum where there are no
    /// blocks. Samples of an import may lie beyond its rows, which are counted with them: a
    /// quantile among those has no value.
    pub fn describe(&mut self, rows: Option<(&[Bucket], u64)>, max: Option<Nanos>) {
        self.max_ns = self.max_ns.max(max);
        let at = |(rows, beyond): (&[Bucket], u64), per_million| match beyond {
            0 => histogram::quantile(rows, max, per_million),
            _ => histogram::quantile_below(rows, beyond, per_million),
        };
        self.quantiles_ns = rows.map(|rows| [500_000, 990_000, 999_000, 999_900].map(|q| at(rows, q)));
    }
}

/// The reason where the units show neither a difference nor that there is none.
pub const UNDECIDED: &str = "the difference is neither sure nor surely small";

/// The reason where no limit could be chosen.
pub const ALL_ALIKE: &str = "the largest latency of every block is the same, and no limit separates any";

impl Compared {
    /// Takes a verdict back, because of what the runs are rather than what they show.
    pub fn no_verdict(&mut self, reason: &str, remedy: &str) {
        (self.verdict, self.reason) = (Verdict::Inconclusive, reason.to_owned());
        remedy.clone_into(&mut self.remedy);
    }

    /// One new run against a baseline can only be worse; otherwise the answer is open, with the
    /// reason.
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
    /// How often a run without block records reached the limit is not known, and neither is what
    /// follows from it: 0 events would be a statement.
    fn the_answer_has_only_what_is_known(&mut self) {
        if self.a.iter().chain(&self.b).all(|unit| unit.exceedances.is_some()) {
            return;
        }
        self.verdict = Verdict::Inconclusive;
        let one = self.unit.one();
        self.reason = format!("a {one} kept no block records: how often it reached the limit is not known");
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
