//! Tail beyond the observed values: always fitted, for inspection; levels are given only if every
//! gate passes.

use serde::Serialize;

use super::answer::ExtrapolationStatus;
use super::conditions::{self, MIN_FIT_BLOCKS, farthest};
use super::gates::{Gate, all_pass, most_informative};
use super::input::{BoundsInput, Question};
use super::sample::{PredictedLevels, Sample};
use super::steadiness::{self, Steadiness};
use super::structure::Structure;
use super::{histogram, shape};
use crate::series::Series;
use crate::tail::determined;
use crate::tail::gev::{self, GevFit};
use crate::tail::grouped_sample::GroupedSample;
use crate::tail::variation::{self, Variation};
use model::units::Nanos;

/// Block lengths to try, as multiples of the recorded one.
const MULTIPLES: [u32; 6] = [1, 2, 5, 10, 30, 60];
/// Least number of samples of a block's maximum, if the number is known.
const MIN_SAMPLES_PER_BLOCK: u64 = 500;
/// Number of the largest maxima, or somewhat fewer, that show the class of the tail.
const TAIL: usize = 50;
/// Levels beyond the observed values in ns, or the reason why they are not given.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Extrapolation {
    /// `ok` or `refused`.
    pub status: ExtrapolationStatus,
    /// Reason for the refusal, as a sentence; `""` without one.
    pub reason: String,
    /// Remedy for the refusal.
    pub remedy: String,
    /// Length of the blocks of the fit.
    pub block_ns: Option<Nanos>,
    /// Number of these blocks.
    pub blocks: u64,
    /// True if the recorded blocks have memory and these, which are longer, have none.
    pub memory: bool,
    /// Time ahead for which the levels hold.
    pub horizon_ns: Option<Nanos>,
    /// The fitted law of the block maxima, for inspection, independent of the gates.
    pub gev: Option<Law>,
    /// Class of the tail of the fitted maxima; to look at, not to decide by.
    pub tail_class: Option<TailClass>,
    /// Always null: a tail is not fitted to a histogram without times. Readers of older documents
    /// know the field.
    pub gpd: (),
    /// Level that the largest latency in the horizon stays below with probability one half.
    pub typical_ns: Option<f64>,
    /// Level that the horizon exceeds with at most 5 % probability, at 95 % confidence.
    pub upper_ns: Option<f64>,
    /// The same level if the tail is not allowed an upper end.
    #[serde(rename = "guarded_upper_ns")]
    pub upper_nonneg_shape_ns: Option<f64>,
    /// Ratio of that level to the largest latency of the fit; a large one shows that the run hardly
    /// determines its tail.
    pub times_seen: Option<f64>,
}

/// A generalised extreme value law, `G(x) = exp(-(1 + xi (x - mu) / sigma)^(-1/xi))`, mu and sigma
/// in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Law {
    pub mu: f64,
    pub sigma: f64,
    /// Shape; above 0 the tail is heavy, below it has an end.
    pub xi: f64,
    /// Minus the log-likelihood of the recorded steps.
    pub nllh: f64,
    /// Standard errors of mu, sigma and xi.
    pub se: Option<[f64; 3]>,
}

/// Coefficient of variation of the largest maxima over a value that leaves about 50 above it.
///
/// 1 is an exponential tail, above it heavier; to look at, not to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TailClass {
    /// Number of maxima above the value.
    pub excesses: u64,
    /// The value, the middle of its recorded step.
    pub over_ns: f64,
    /// Standard deviation over mean of the excesses.
    pub cv: f64,
    /// Interval of 95 % of exponential samples of this size.
    pub band: [f64; 2],
}

/// Smallest multiple of the block whose maxima are of enough samples, enough of them, and without
/// memory; else the smallest whose maxima are of enough samples.
fn block_size(series: &Series) -> u32 {
    let per_block = series.samples_per_block();
    let filled =
        |times: u32| per_block.is_none_or(|n| n.saturating_mul(u64::from(times)) >= MIN_SAMPLES_PER_BLOCK);
    let candidates: Vec<u32> = MULTIPLES.into_iter().filter(|&times| filled(times)).collect();
    let forgetful = |times: u32| {
        let values = series.coarser(times);
        values.len() >= MIN_FIT_BLOCKS && steadiness::forgets((&values).into())
    };
    let first = candidates.first().copied().unwrap_or(MULTIPLES[MULTIPLES.len() - 1]);
    candidates.into_iter().find(|&times| forgetful(times)).unwrap_or(first)
}

/// Fits, evaluates every gate, and extrapolates if all pass.
pub fn extrapolate(
    input: &BoundsInput,
    question: &Question,
    structure: &Structure,
) -> (Vec<Gate>, Extrapolation) {
    if input.series.blocks.is_empty() {
        return without_blocks(input, question, structure);
    }
    let series = input.series;
    let times = block_size(series);
    let sample = Sample::of(series, times);
    let n = sample.values().len();
    let observed = Nanos(sample.block.0.saturating_mul(n as i64));
    let horizon =
        question.horizon.min(if question.chosen { question.horizon } else { farthest(question, observed) });
    let blocks = horizon.0 as f64 / sample.block.0.max(1) as f64;
    let levels = PredictedLevels::of(&sample, blocks);
    let steadiness = Steadiness::of(series, series.values(), sample.values(), sample.block);
    let mut gates = Vec::from(steadiness.gates());
    gates.extend([
        shape::fits(&sample, &Sample::of(series, times.saturating_mul(2)), blocks),
        shape::one_mode(&sample),
    ]);
    gates.extend([
        conditions::period(structure, series.block, steadiness.recurring()),
        conditions::enough(n, sample.distinct(), series.step),
        conditions::horizon(question, observed),
        shape::width(&sample, levels.as_ref()),
        shape::back_test(&sample),
        conditions::integrity(input),
    ]);
    let mut beyond = Extrapolation {
        status: ExtrapolationStatus::Ok,
        memory: steadiness.cured(),
        block_ns: Some(sample.block),
        blocks: n as u64,
        horizon_ns: Some(horizon),
        gev: sample.steps.as_ref().zip(sample.fit).map(|(steps, fit)| Law::of(steps, &fit)),
        tail_class: sample.fit.and(sample.steps.as_ref()).and_then(TailClass::of),
        ..Extrapolation::default()
    };
    match (levels, all_pass(&gates)) {
        (Some(levels), true) => {
            beyond.typical_ns = Some(levels.typical);
            beyond.upper_ns = levels.upper;
            beyond.upper_nonneg_shape_ns = levels.guarded;
            beyond.times_seen = sample
                .steps
                .as_ref()
                .zip(levels.guarded)
                .map(|(steps, guarded)| determined::times(Some(guarded), steps.largest()));
        }
        _ => refuse(&mut beyond, &gates),
    }
    (gates, beyond)
}

/// Refuses a histogram without times, or an input without data.
fn without_blocks(
    input: &BoundsInput,
    question: &Question,
    structure: &Structure,
) -> (Vec<Gate>, Extrapolation) {
    let observed = input.series.observed;
    let horizon =
        if question.chosen { question.horizon } else { question.horizon.min(farthest(question, observed)) };
    let gates = histogram::gates(input, question, structure);
    let horizon_ns = Some(horizon).filter(|_| observed.0 > 0);
    let mut beyond = Extrapolation { horizon_ns, ..Extrapolation::default() };
    refuse(&mut beyond, &gates);
    (gates, beyond)
}

/// Refuses with the reason of the most informative gate.
fn refuse(beyond: &mut Extrapolation, gates: &[Gate]) {
    beyond.status = ExtrapolationStatus::Refused;
    let (reason, remedy) = match most_informative(gates) {
        Some(gate) => (gate.refusal.clone(), gate.remedy.clone()),
        None => {
            let open: Vec<&str> = gates.iter().filter(|gate| !gate.judged).map(|gate| gate.name).collect();
            (
                format!("Some conditions of an extrapolation could not be checked: {}.", open.join(", ")),
                "Measure longer, or record in finer steps.".into(),
            )
        }
    };
    (beyond.reason, beyond.remedy) = (reason, remedy);
}

impl TailClass {
    /// Class over the lowest value that has 10 to 50 above it, for the most excesses.
    fn of(steps: &GroupedSample) -> Option<TailClass> {
        let Variation { k, over, cv, band } = *variation::variations(steps, TAIL).first()?;
        Some(TailClass { excesses: k as u64, over_ns: over, cv, band: [band.0, band.1] })
    }
}

impl Law {
    fn of(steps: &GroupedSample, fit: &GevFit) -> Law {
        let gev::Gev { mu, sigma, xi } = fit.law;
        Law { mu, sigma, xi, nllh: fit.nllh, se: gev::standard_errors(steps, fit) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::RunTotals;
    use super::super::sample::BOUND;
    use super::super::structure::structure;
    use super::*;
    use crate::rng::Rng;
    use crate::series::BLOCK;
    use crate::tail::profile::Level;

    fn answer(tail: impl Fn(f64) -> f64, n: usize) -> Extrapolation {
        let mut rng = Rng::new(4);
        let list: Vec<Option<Nanos>> =
            (0..n).map(|_| Some(Nanos((20_000.0 + 1_000.0 * tail(rng.exponential())) as i64))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        let input =
            BoundsInput { run: RunTotals { missed: 1, ..RunTotals::default() }, ..BoundsInput::of(&series) };
        let question = Question { horizon: Nanos::SECOND, chosen: true, ..Question::default() };
        extrapolate(&input, &question, &structure(&input)).1
    }

    #[test]
    fn the_class_of_the_tail_is_shown_independent_of_the_gates() {
        for (beyond, heavy) in [(answer(|x| x, 600), false), (answer(|x| (0.7 * x).exp(), 600), true)] {
            assert_eq!(beyond.status, ExtrapolationStatus::Refused);
            let class = beyond.tail_class.expect("a class");
            assert!((45..=50).contains(&class.excesses) && class.over_ns > 20_000.0, "{class:?}");
            assert_eq!(class.cv > class.band[1], heavy, "{class:?}");
            assert!(class.band[0] < 1.0 && 1.0 < class.band[1]);
        }
    }

    /// Of these printed bounds 68 % held if bounds above three times the largest value were
    /// refused: for a heavy tail, that selects the runs that look light.
    #[test]
    fn what_is_printed_of_a_heavy_tail_holds() {
        let law = gev::Gev { mu: 20_000.0, sigma: 2_000.0, xi: 0.3 };
        let truth = Level { blocks: 600.0, probability: BOUND }.of(&law);
        let mut rng = Rng::new(7);
        let runs = 16;
        let mut run = || {
            let list: Vec<Option<Nanos>> =
                (0..60).map(|_| Some(Nanos(law.level_of_rate(rng.exponential()) as i64))).collect();
            let series = Series::of_list(&list, BLOCK, Nanos(1));
            let horizon = Nanos(600 * Nanos::SECOND.0);
            let question = Question { horizon, chosen: true, ..Question::default() };
            let input = BoundsInput::of(&series);
            extrapolate(&input, &question, &structure(&input))
        };
        let answers: Vec<(Vec<Gate>, Extrapolation)> = (0..runs).map(|_| run()).collect();
        let printed: Vec<&(Vec<Gate>, Extrapolation)> =
            answers.iter().filter(|(_, beyond)| beyond.status == ExtrapolationStatus::Ok).collect();
        assert!(printed.len() >= 13, "{} of {runs} print", printed.len());
        let holds = |beyond: &Extrapolation| {
            beyond.upper_ns.is_some_and(|upper| upper >= truth)
                && beyond.upper_nonneg_shape_ns >= beyond.upper_ns
        };
        let failed = printed.iter().filter(|(_, beyond)| !holds(beyond)).count();
        assert!(failed <= 2, "{failed} of {} fail", printed.len());
        let wide = |(gates, beyond): &&&(Vec<Gate>, Extrapolation)| {
            let warned = gates.iter().any(|gate| gate.id == "G9" && gate.detail.starts_with("warning"));
            assert_eq!(warned, beyond.times_seen > Some(shape::WIDE) || beyond.upper_ns.is_none());
            warned
        };
        assert!(printed.iter().filter(wide).count() > printed.len() / 2, "most are wide, and say so");
    }

    #[test]
    fn without_a_fit_or_a_tail_there_is_no_class() {
        assert_eq!(answer(|_| 0.0, 600).tail_class, None);
        assert_eq!(answer(|x| x, 8).tail_class, None);
    }
}
