//! One number of each unit, and the result of these numbers.

use super::{ALPHA, Baseline, CompareQuestion, Compared, Counted, SCHEMA};
use crate::pair::baseline;
use crate::pair::conditional_binomial::{self, Exposure, total};
use crate::pair::inversion::Interval;
use crate::pair::unit::ComparedUnit;
use crate::pair::verdict::{self, Comparison, Design, UnitTest, Verdict};
use model::units::Nanos;

/// Events of the units of both sides.
#[derive(Clone, Copy)]
pub(super) struct Exposures<'a> {
    pub a: &'a [Exposure],
    pub b: &'a [Exposure],
}

impl Exposures<'_> {
    pub fn one_each(self) -> bool {
        self.a.len() == 1 && self.b.len() == 1
    }
}

/// One number of each unit, with its scale and its uncertainty.
pub(super) struct UnitNumbers {
    a: Vec<f64>,
    b: Vec<f64>,
    scale: Scale,
    test: UnitTest,
    margin: f64,
    /// Standard deviation of a number's logarithm by counting, or by its recorded step, alone.
    least: f64,
    /// Probability of B's events or more by the rate of A's, if B is one run, without the variation
    /// between runs.
    by_events: f64,
}

impl UnitNumbers {
    /// The logarithms of the units' rates.
    pub fn of_rates(counts: Exposures, margin: Option<f64>, test: UnitTest) -> UnitNumbers {
        let mean = verdict::mean_time(counts.a, counts.b);
        let logs = |side: &[Exposure]| side.iter().map(|unit| verdict::log_rate(unit, mean)).collect();
        let events = total(counts.a).events as f64 / counts.a.len().max(1) as f64;
        UnitNumbers {
            a: logs(counts.a),
            b: logs(counts.b),
            scale: Scale::LogRate,
            test,
            margin: margin.unwrap_or(verdict::RATE_MARGIN),
            least: (1.0 / (events + 0.5)).sqrt(),
            by_events: conditional_binomial::p_more(total(counts.a), total(counts.b)),
        }
    }

    /// A latency of each unit in ns, recorded in steps of `step`.
    pub fn of_latencies(
        a: Vec<f64>,
        b: Vec<f64>,
        margin: Option<f64>,
        test: UnitTest,
        step: f64,
    ) -> UnitNumbers {
        let mean = a.iter().sum::<f64>() / a.len().max(1) as f64;
        let margin = margin.unwrap_or_else(|| verdict::quantile_margin(mean));
        let least = if mean > 0.0 { step / mean } else { 0.0 };
        UnitNumbers { a, b, scale: Scale::Nanoseconds, test, margin, least, by_events: 0.0 }
    }

    fn compare(&self, counts: Exposures) -> Comparison {
        match self.scale {
            Scale::LogRate => verdict::compare_rates_by(self.test, counts.a, counts.b, self.margin, ALPHA),
            Scale::Nanoseconds => verdict::compare_by(self.test, &self.a, &self.b, self.margin, ALPHA),
        }
    }

    /// Compares one new run with past ones, on the logarithm of the number.
    fn standing(&self) -> Option<Baseline> {
        let [new] = self.b.as_slice() else { return None };
        if self.a.len() < 2 {
            return None;
        }
        let log = |value: &f64| if self.scale == Scale::LogRate { *value } else { value.ln() };
        let past: Vec<f64> = self.a.iter().map(log).collect();
        let standing = baseline::standing(&past, log(new), self.least, ALPHA);
        let (method, p_value) = match standing {
            baseline::Standing::NoSpread { .. } => ("none", None),
            baseline::Standing::Rank { p } => ("rank", Some(p.max(self.by_events))),
            baseline::Standing::Bound { p, .. } => ("prediction-bound", Some(p.max(self.by_events))),
        };
        let worse = standing.is_regression(ALPHA) && self.by_events <= ALPHA;
        Some(Baseline { runs: past.len(), p_value, method, worse })
    }
}

/// Question for the numbers.
pub(super) struct AskedNumbers<'a> {
    pub question: &'a CompareQuestion,
    /// Limit of the counts.
    pub level: Option<Nanos>,
    pub metric: String,
    pub counted: Counted,
    pub unit: ComparedUnit,
}

/// Result of the numbers, without the secondary results.
pub(super) fn answer(numbers: &UnitNumbers, counts: Exposures, asked: AskedNumbers) -> Compared {
    let found = numbers.compare(counts);
    let design = asked.question.design;
    let (units_a, units_b) = (counts.a.len(), counts.b.len());
    let (rate_ratio, rate_ci) = ratio(numbers, counts, &found);
    let ci = match numbers.scale {
        Scale::LogRate => rate_ci,
        Scale::Nanoseconds => found.interval.map(|interval| [interval.lower, interval.upper]),
    };
    let of_events = counts.one_each() && asked.counted == Counted::Blocks;
    let mut compared = Compared {
        schema: SCHEMA,
        verdict: found.verdict,
        reason: found.refusal.map(|why| why.words(asked.unit)).unwrap_or_default(),
        remedy: String::new(),
        metric: asked.metric,
        counted: asked.counted,
        test: numbers.test,
        rate_ratio,
        ci,
        equivalence_ci: found
            .equivalence
            .filter(|_| found.verdict == Verdict::Equivalent)
            .map(|interval| [interval.lower, interval.upper].map(|end| numbers.scale.size(end))),
        p_value: Some(found.p).filter(|_| found.refusal.is_none()),
        exact: found.exact,
        event_p_value: of_events.then(|| conditional_binomial::p_two_sided(total(counts.a), total(counts.b))),
        unit: asked.unit,
        units: if design == Design::Paired { units_a.min(units_b) } else { units_a + units_b },
        smallest_detectable: found
            .detectable
            .map(|size| numbers.scale.size(size))
            .filter(|size| size.is_finite()),
        units_needed: found.units_needed,
        design,
        limit_ns: asked.level,
        limit_given: asked.question.limit.is_some(),
        margin: numbers.margin,
        smallest_p: found.smallest_p,
        difference_ns: (numbers.scale == Scale::Nanoseconds).then_some(found.difference),
        e_value: None,
        overdispersion: None,
        baseline: numbers.standing(),
        quantiles: Vec::new(),
        cpus: Vec::new(),
        a: Vec::new(),
        b: Vec::new(),
    };
    compared.settle(&found);
    compared
}

/// Scale of the units' numbers.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    LogRate,
    Nanoseconds,
}

impl Scale {
    fn size(self, size: f64) -> f64 {
        if self == Scale::LogRate { size.exp() } else { size }
    }
}

/// Rate of B over that of A, all runs together, with its interval.
///
/// The interval is that of the units' log ratio, and at least the exact one of the events: a few of
/// them that fell evenly on the runs are still few. That of the mean, which the half event draws
/// towards 1, is shifted to the ratio; that of ranks stays and reaches as far as the ratio. If a
/// side has no event, it is that of the events alone.
fn ratio(numbers: &UnitNumbers, counts: Exposures, found: &Comparison) -> (Option<f64>, Option<[f64; 2]>) {
    let Some(sums) = conditional_binomial::rate_ratio(total(counts.a), total(counts.b), 1.0 - ALPHA) else {
        return (None, None);
    };
    let of_events = Some([sums.lower, sums.upper]);
    let finite = Some(sums.ratio).filter(|ratio| ratio.is_finite());
    let both = sums.ratio > 0.0 && sums.ratio.is_finite();
    if counts.one_each() || !both || numbers.scale != Scale::LogRate {
        return (finite, of_events.filter(|_| counts.one_each() || !both));
    }
    let ranks = numbers.test == UnitTest::RankSum;
    let shift = if ranks { 0.0 } else { sums.ratio.ln() - found.difference };
    let wider = |units: Interval| {
        [(units.lower + shift).exp().min(sums.lower), (units.upper + shift).exp().max(sums.upper)]
    };
    (finite, found.interval.map(wider))
}
