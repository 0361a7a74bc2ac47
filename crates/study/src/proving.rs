//! An experiment's segments read from their bundles, and its result: a comparison of its arms whose
//! verdict is that of the pairs.

use std::path::Path;

use experiment::needs::ProofNeeds;
use experiment::proof::Proof;
use experiment::settling::discarded;
use experiment::tally::PairTally;
use experiment::veto::LoadWork;
use model::error::{Failure, Result};
use model::experiment::{
    CountedUnit, ExperimentArm, ExperimentRun, ExperimentSegment, SegmentLoad, SettleRun,
};
use model::histogram::{Bucket, quantile};
use model::run::{CpuRun, Run, ThreadRun};
use model::units::Nanos;
use model::vocabulary::Ended;
use report::totals::sum_rows;
use serde::Serialize;
use stats::compare::{CompareQuestion, Metric};
use stats::pair::sign_sequence::ln_sign_e_value;
use stats::pair::verdict::{Design, Verdict};

use crate::compare::{ComparisonAnswer, Pairing, compare};
use crate::cycle_seconds::longest_responses;
use crate::measurement::{Measurement, ReadOptions};

/// The metric's name in the document.
const fn metric(counted: CountedUnit) -> &'static str {
    match counted {
        CountedUnit::WakeUps => "late-wake-ups",
        CountedUnit::Cycles => "late-cycles",
    }
}

/// A segment from its bundle; the reasons that make it invalid are in its `why`.
///
/// # Errors
/// The bundle is missing or unreadable.
pub fn segment(folder: &Path, bundle: &str, limit: Nanos) -> Result<ExperimentSegment> {
    segment_of(&ReadOptions::default().open(&folder.join(bundle))?, bundle, limit)
}

/// The same of a bundle that was read.
///
/// # Errors
/// It is a list of maxima, which lacks the number of late wake-ups.
pub fn segment_of(measured: &Measurement, bundle: &str, limit: Nanos) -> Result<ExperimentSegment> {
    let Some(run) = &measured.run else {
        return Err(Failure::usage(format!(
            "{} is a list of maxima, which does not count late wake-ups: give a bundle",
            measured.title
        )));
    };
    // Of followed threads their cycles count: a wake-up in time is not yet a response in time.
    let follows = !run.threads.is_empty();
    let rows = if follows { cycles(&run.threads) } else { slots(measured.cpus()) };
    let max =
        if follows { run.threads.iter().filter_map(|thread| thread.worst_ns).max() } else { measured.max() };
    // The row that contains the limit counts as a whole: both arms have the same rows.
    let reached = max.is_none_or(|max| max >= limit);
    let reaching = rows.iter().filter(|row| reached && row.upper > limit);
    let why = spoiled(measured, run);
    let counted = run.loads.iter().filter(|load| !load.unit.is_empty());
    Ok(ExperimentSegment {
        valid: why.is_empty(),
        why: why.join("; "),
        bundle: bundle.into(),
        observed_ns: run.elapsed_ns.unwrap_or(measured.series.observed),
        samples: rows.iter().fold(overrun(run), |sum, row| sum.saturating_add(row.count)),
        late: reaching.fold(overrun(run), |sum, row| sum.saturating_add(row.count)),
        late_blocks: late_halves(&seconds(measured)?, limit),
        p50_ns: quantile(&rows, max, 500_000),
        max_ns: max,
        loads: counted
            .map(|load| SegmentLoad { spec: load.spec.clone(), rate_per_s: Some(load.rate_per_s) })
            .collect(),
        ..ExperimentSegment::default()
    })
}

/// Histogram of a periodic task's slots, if that was counted: a task that a stall delays for many
/// periods is late in each of them. Counted once, longer stalls would seem to be fewer.
fn slots<'a>(cpus: impl Iterator<Item = &'a CpuRun>) -> Vec<Bucket> {
    sum_rows(cpus.map(|cpu| cpu.deadline_histogram.as_deref().unwrap_or(&cpu.histogram)))
}

/// The responses of followed threads.
fn cycles(threads: &[ThreadRun]) -> Vec<Bucket> {
    sum_rows(threads.iter().map(|thread| thread.response.as_slice()))
}

/// True if threads were followed and no cycle of theirs was seen.
fn is_silent(threads: &[ThreadRun]) -> bool {
    !threads.is_empty() && threads.iter().all(|thread| thread.cycles == 0)
}

/// Number of releases during the previous cycle: each is a deadline miss, as is a missed slot.
fn overrun(run: &Run) -> u64 {
    run.threads.iter().fold(0, |sum, thread| sum.saturating_add(thread.overrun))
}

/// Missing quantity of a run in which nothing was measured; `None` for any other run.
pub fn nothing_measured(run: &Run) -> Option<String> {
    let counted = if run.program.is_some() || !run.threads.is_empty() { "cycle" } else { "wake-up" };
    let is_empty = run.cpus.iter().all(|cpu| cpu.cycles == Some(0)) || is_silent(&run.threads);
    is_empty.then(|| format!("no {counted} was measured"))
}

fn spoiled(measured: &Measurement, run: &Run) -> Vec<String> {
    let invalid = run.integrity.iter().filter(|entry| entry.bars_claims()).map(|entry| entry.detail.clone());
    let mut why: Vec<String> = invalid.collect();
    if !run.complete || run.ended == Ended::Signal {
        why.push("it was interrupted".into());
    }
    why.extend(nothing_measured(run));
    why.extend(measured.series.lost());
    why
}

/// Largest value of each second: of the wake-ups of measuring threads, or the cycles of followed
/// threads.
fn seconds(measured: &Measurement) -> Result<Vec<Nanos>> {
    let follows = measured.run.as_ref().is_some_and(|run| !run.threads.is_empty());
    let blocks = &measured.series.blocks;
    if follows {
        longest_responses(&measured.path)
    } else {
        Ok((0..blocks.len()).map(|at| blocks.get(at).max).collect())
    }
}

/// Seconds that reached the limit in the first half and in the second.
fn late_halves(seconds: &[Nanos], limit: Nanos) -> [u64; 2] {
    let half = seconds.len() / 2;
    let late = |part: &[Nanos]| part.iter().filter(|largest| **largest >= limit).count() as u64;
    [late(&seconds[..half]), late(&seconds[seconds.len() - half..])]
}

/// The largest of each second of a bundle, in nanoseconds: for the memory of the machine, and the
/// time in which a change settles.
pub fn maxima(folder: &Path, bundle: &str) -> Result<Vec<f64>> {
    let measured = ReadOptions::default().open(&folder.join(bundle))?;
    Ok(seconds(&measured)?.iter().map(|largest| largest.0 as f64).collect())
}

/// The document of `prove`: `onbeat.comparison/1` with the experiment.
#[derive(Serialize)]
pub struct ProofAnswer {
    #[serde(flatten)]
    pub comparison: ComparisonAnswer,
    pub experiment: ExperimentSummary,
}

/// Origin of the verdict.
#[derive(Clone, Debug, Serialize)]
pub struct ExperimentSummary {
    pub change: String,
    pub arms: [&'static str; 2],
    /// The arms in the order in which they were measured.
    pub order: String,
    pub seed: u64,
    pub segment_s: f64,
    pub segments: usize,
    /// Discarded time after switches.
    pub discarded_s: f64,
    /// Minimum discarded after each switch, and the trial runs behind it; none if it was given.
    pub settle_s: f64,
    pub trial: Vec<SettleRun>,
    /// Pairs with interrupts on CPUs other than those of the arm.
    pub astray: u64,
    /// `e-value`, `fixed`, `time` or `signal`.
    pub stopped: String,
    /// True if the e-value reached its level, and nothing contradicts a verdict by it.
    pub confirmed: bool,
    pub stop_at: f64,
    /// Pairs that count; those in which B had fewer late wake-ups; those in which both had as many.
    pub pairs: u64,
    pub wins: u64,
    pub ties: u64,
    pub dropped: u32,
    /// Pairs among them whose runs differed in length.
    pub unequal: u32,
    pub interrupted: u32,
    /// Late wake-ups of A and of B.
    pub late: [u64; 2],
    pub load: String,
    /// Work of each load with the change, relative to that without it.
    pub works: Vec<WorkSummary>,
    pub cpus: String,
    /// Segments whose first half is more like the other arm, of those whose halves differ.
    pub carried_over: [u64; 2],
    /// The median wake-up of A in the first pair and in the last; null without two.
    pub drift_p50_ns: Option<[Nanos; 2]>,
}

/// Work of a load in B divided by that in A.
#[derive(Clone, Debug, Serialize)]
pub struct WorkSummary {
    pub spec: String,
    pub ratio: f64,
    pub ci: Option<[f64; 2]>,
}

/// The measurements of the pairs that count, those of A and those of B.
pub fn arms(folder: &Path, run: &ExperimentRun) -> Result<[Vec<Measurement>; 2]> {
    let tally = PairTally::of(&run.segments);
    let open = |segment: &ExperimentSegment| {
        let mut measured = ReadOptions::default().open(&folder.join(&segment.bundle))?;
        measured.title = format!("{} {}", segment.pair + 1, segment.arm.name());
        Ok(measured)
    };
    let a = tally.pairs.iter().map(|pair| open(pair.a)).collect::<Result<_>>()?;
    let b = tally.pairs.iter().map(|pair| open(pair.b)).collect::<Result<_>>()?;
    Ok([a, b])
}

/// The answer; `stopped` is why the last pair was the last.
pub fn answer(
    run: &ExperimentRun,
    proof: &Proof,
    stopped: &str,
    [a, b]: [&mut [Measurement]; 2],
) -> ProofAnswer {
    let plan = &run.plan;
    let question = CompareQuestion {
        metric: Metric::Rate,
        limit: Some(plan.limit_ns),
        design: Design::Paired,
        margin: Some(plan.rate_margin),
    };
    let mut comparison = compare(a, b, &question, Pairing::Given);
    let tally = PairTally::of(&run.segments);
    decide(&mut comparison, proof, ProofNeeds::of(plan, &tally));
    comparison.compared.metric = metric(plan.counted()).into();
    let units = comparison.compared.a.iter_mut().zip(comparison.compared.b.iter_mut());
    for ((a, b), pair) in units.zip(&tally.pairs) {
        (a.exceedances, b.exceedances) = (Some(pair.a.late), Some(pair.b.late));
    }
    let experiment = ExperimentSummary {
        change: plan.change.clone(),
        arms: [ExperimentArm::A.name(), ExperimentArm::B.name()],
        order: run.segments.iter().map(|segment| segment.arm.name()).collect(),
        seed: plan.seed,
        segment_s: plan.segment_ns.as_secs(),
        segments: run.segments.len(),
        discarded_s: discarded(run).as_secs(),
        settle_s: plan.settle_ns.as_secs(),
        trial: run.trial.clone(),
        astray: proof.astray,
        stopped: stopped.to_owned(),
        confirmed: matches!(proof.verdict, Verdict::Better | Verdict::Worse) && proof.e_value >= proof.level,
        stop_at: proof.level,
        pairs: proof.pairs,
        wins: proof.wins,
        ties: proof.ties,
        dropped: proof.dropped,
        unequal: proof.unequal,
        interrupted: proof.interrupted,
        late: proof.late,
        load: plan.load.clone(),
        works: proof.works.iter().map(work).collect(),
        cpus: plan.cpus.clone(),
        carried_over: [proof.carry_over.towards, proof.carry_over.of],
        drift_p50_ns: proof.drift.map(|drift| [drift.first, drift.last]),
    };
    ProofAnswer { comparison, experiment }
}

fn work(work: &LoadWork) -> WorkSummary {
    WorkSummary { spec: work.spec.clone(), ratio: work.ratio, ci: work.interval }
}

/// Replaces the verdict for a fixed number of runs by that of the pairs: the former does not hold
/// if the data decide when the experiment ends.
fn decide(comparison: &mut ComparisonAnswer, proof: &Proof, needs: ProofNeeds) {
    let compared = &mut comparison.compared;
    (compared.verdict, compared.reason) = (proof.verdict, proof.reason.clone());
    (compared.rate_ratio, compared.ci) = (proof.rate_ratio, proof.enclosing());
    compared.equivalence_ci = None;
    compared.p_value = Some((1.0 / proof.e_value).min(1.0));
    compared.e_value = Some(proof.e_value);
    (compared.exact, compared.event_p_value, compared.overdispersion) = (true, None, None);
    compared.baseline = None;
    compared.smallest_detectable = needs.smallest_detectable;
    compared.units_needed = needs.pairs.and_then(|pairs| usize::try_from(pairs).ok());
    compared.smallest_p = (-ln_sign_e_value(proof.pairs, proof.pairs)).exp().min(1.0);
    debug_assert!(proof.pairs > 0 || proof.verdict == Verdict::Inconclusive);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_followed_threads_cycles_count_and_releases_that_had_none() {
        let row = |lower, count| Bucket { lower: Nanos(lower), upper: Nanos(lower + 1_000_000), count };
        let thread = |late: u64, overrun: u64| ThreadRun {
            cycles: 90 + late,
            overrun,
            response: vec![row(1_000_000, 90), row(50_000_000, late)],
            ..ThreadRun::default()
        };
        let run = Run { threads: vec![thread(3, 2), thread(0, 0)], ..Run::default() };
        assert_eq!(overrun(&run), 2);
        assert_eq!(cycles(&run.threads), vec![row(1_000_000, 180), row(50_000_000, 3)]);
        assert!(!is_silent(&run.threads) && is_silent(&[ThreadRun::default()]) && !is_silent(&[]));
    }

    #[test]
    fn late_seconds_are_counted_in_both_halves() {
        let seconds = [9, 1, 5, 1, 7].map(Nanos);
        assert_eq!(late_halves(&seconds, Nanos(5)), [1, 1], "the one in the middle is in neither");
        assert_eq!((late_halves(&[], Nanos(5)), late_halves(&seconds[..1], Nanos(5))), ([0, 0], [0, 0]));
    }

    #[test]
    fn a_run_without_a_cycle_or_a_wake_up_says_so() {
        let reason = |cycles: u64, threads: Vec<ThreadRun>| {
            let cpus = vec![CpuRun { cycles: Some(cycles), ..CpuRun::default() }];
            nothing_measured(&Run { cpus, threads, ..Run::default() })
        };
        let thread = |cycles| vec![ThreadRun { cycles, ..ThreadRun::default() }];
        assert_eq!(reason(0, vec![]).as_deref(), Some("no wake-up was measured"));
        assert_eq!(reason(9, thread(0)).as_deref(), Some("no cycle was measured"));
        assert_eq!((reason(9, vec![]), reason(9, thread(1))), (None, None));
    }

    #[test]
    fn a_stall_is_late_in_each_slot_that_it_took() {
        let row = |lower, count| Bucket { lower: Nanos(lower), upper: Nanos(lower + 1_000_000), count };
        let counted = CpuRun {
            histogram: vec![row(50_000_000, 1)],
            deadline_histogram: Some(vec![row(40_000_000, 10), row(50_000_000, 1)]),
            ..CpuRun::default()
        };
        let imported = CpuRun { histogram: vec![row(50_000_000, 2)], ..CpuRun::default() };
        let both = [counted, imported];
        assert_eq!(slots(both.iter()), vec![row(40_000_000, 10), row(50_000_000, 3)]);
    }
}
