//! Two sets of measurements compared: reasons to refuse, differences of their conditions, and their
//! pairs.

mod measured;

use bundle::read::host_files;
use facts::differences::{Difference, Settings, differences, sides_first};
use model::error::{Failure, Result};
use model::sort::CompactSort;
use model::units::Nanos;
use serde::Serialize;
use stats::compare::summary::{RunSummary, compare_summaries};
use stats::compare::{CompareQuestion, Compared, compare as compare_series, design};
use stats::pair::verdict::Design;
use stats::series::Series;

use crate::measurement::Measurement;

/// Way in which runs are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// As in the question's design.
    Given,
    /// Pairs by time: runs of A and B that alternate.
    ByTime,
}

/// The comparison with its non-statistical parts.
#[derive(Serialize)]
pub struct ComparisonAnswer {
    #[serde(flatten)]
    pub compared: Compared,
    /// Differences between the recorded conditions of the sides.
    pub environment_diff: Vec<Difference>,
    /// True if all runs have a record of their conditions. A list has none; another tool's file
    /// describes the measurement, and of the machine only what it states.
    pub environment_recorded: bool,
    /// Remarks on the inputs.
    pub remarks: Vec<String>,
}

impl ComparisonAnswer {
    /// Differences between the conditions; `None` if a run has no record of them.
    pub fn differing(&self) -> Option<&[Difference]> {
        self.environment_recorded.then_some(self.environment_diff.as_slice())
    }
}

/// Compares the sides, and sorts them by time if that forms pairs.
pub fn compare(
    a: &mut [Measurement],
    b: &mut [Measurement],
    question: &CompareQuestion,
    pairing: Pairing,
) -> ComparisonAnswer {
    let differing = differing(a, b);
    measured::keep_common_quantity(a, b);
    let mut question = *question;
    if pairing == Pairing::ByTime {
        question.design = pair_up(a, b);
    }
    let whole = !are_in_blocks(a, b);
    let mut compared = if whole {
        compare_summaries(&summaries(a), &summaries(b), &question)
    } else {
        compare_series(&series(a), &series(b), &question)
    };
    if let Some((reason, remedy)) = measured::confounded(a, b).filter(|_| whole) {
        compared.no_verdict(&reason, remedy);
    }
    a.iter().chain(&*b).flat_map(flaws).for_each(|flaw| compared.no_verdict(flaw.reason, flaw.remedy));
    let units = compared.a.iter_mut().zip(&*a).chain(compared.b.iter_mut().zip(&*b));
    for (unit, measurement) in units {
        unit.title = measurement.title.clone();
        let rows = measurement.run.as_ref().map(|_| measurement.rows());
        let counted = rows.as_deref().map(|rows| (rows, measurement.overflows()));
        unit.describe(counted, measurement.max());
    }
    ComparisonAnswer {
        compared,
        environment_recorded: differing.is_some(),
        environment_diff: differing.unwrap_or_default(),
        remarks: remarks(a, b, Remarks::All),
    }
}

/// True if all have block records; else all their wake-ups are compared.
fn are_in_blocks(a: &[Measurement], b: &[Measurement]) -> bool {
    a.iter().chain(b).all(|measurement| !measurement.series.blocks.is_empty())
}

/// The summaries of a side's runs, each of all its wake-ups.
fn summaries(side: &[Measurement]) -> Vec<RunSummary> {
    let of = |measurement: &Measurement| RunSummary {
        title: measurement.title.clone(),
        rows: measurement.rows(),
        beyond: measurement.overflows(),
        beyond_from: beyond_from(measurement),
        max: measurement.max().or_else(|| Some(measurement.series.worst()?.max)),
        observed: measurement.series.observed,
        wake_ups: measurement.wake_ups(),
        blocks: measurement.series.blocks.len(),
    };
    side.iter().map(of).collect()
}

/// Latency from which wake-ups are in no row. All threads share one histogram, although one
/// thread's rows may reach further than another's.
fn beyond_from(measurement: &Measurement) -> Option<Nanos> {
    let ends = || measurement.cpus().filter_map(|cpu| cpu.overflows_from_ns);
    ends().find(|from| from.0 < 0).or_else(|| ends().max())
}

/// The series of a side.
pub fn series(side: &[Measurement]) -> Vec<&Series> {
    side.iter().map(|measurement| &measurement.series).collect()
}

/// Puts runs that alternate in time into pairs; their order is that of time then.
fn pair_up(a: &mut [Measurement], b: &mut [Measurement]) -> Design {
    let started = |measurement: &Measurement| {
        measurement.run.as_ref().map_or_else(String::new, |run| run.started.clone())
    };
    let starts = |side: &[Measurement]| side.iter().map(started).collect::<Vec<_>>();
    let found = design::of_starts(&starts(a), &starts(b));
    if found == Design::Paired {
        a.compact_sort_by_key(started);
        b.compact_sort_by_key(started);
    }
    found
}

/// The conditions of a measurement, which a comparison and a page of several runs list alike; none
/// of a list.
pub fn settings(one: &Measurement) -> Option<Settings> {
    let own = Settings::of(one.run.as_ref()?, &host_files(&one.path));
    let all = measured::named(one).fold(own, |own, (name, value)| own.with(name, value));
    Some(if measured::is_foreign(one) { all.partial() } else { all })
}

/// Differences between the sides, `None` if a run has no record of its conditions; the kernel's
/// files are read only here and not kept.
pub fn differing(a: &[Measurement], b: &[Measurement]) -> Option<Vec<Difference>> {
    let settings = |side: &[Measurement]| -> Option<Vec<Settings>> {
        let of = |measurement: &Measurement| {
            Some(Settings::of(measurement.run.as_ref()?, &host_files(&measurement.path)))
        };
        side.iter().map(of).collect()
    };
    // A list does not record conditions, which is not the same as having none.
    let (of_a, of_b) = settings(a).zip(settings(b))?;
    let mut found = measured::differences(a, b);
    found.extend(differences(&of_a, &of_b).into_iter().filter(|one| measured::is_known(one, a, b)));
    sides_first(&mut found);
    // A condition that another tool's file does not state is not known to be the same.
    (!found.is_empty() || a.iter().chain(b).all(on_record)).then_some(found)
}

/// True for a run that has a record of its conditions.
fn on_record(one: &Measurement) -> bool {
    one.run.as_ref().is_some_and(|run| !measured::is_foreign(one) || !run.host.release.is_empty())
}

/// Refuses to compare different things.
pub fn check_comparable(a: &[Measurement], b: &[Measurement]) -> Result<()> {
    let all: Vec<&Measurement> = a.iter().chain(b).collect();
    for (at, measurement) in all.iter().enumerate() {
        if all[..at].iter().any(|other| is_same(other, measurement)) {
            return Err(Failure::usage(format!("{} is given twice: give each run once", measurement.title)));
        }
    }
    let Some(first) = all.first() else { return Ok(()) };
    if !measured::have_common_quantity(&all) {
        let differ = "the runs have no measured quantity in common";
        return Err(Failure::usage(format!(
            "{differ}: give runs that measure the same quantity, like wake-ups"
        )));
    }
    all.iter().try_for_each(|other| check_alike(first, other))
}

/// True if both are the same file or the same run.
fn is_same(one: &Measurement, other: &Measurement) -> bool {
    let ids = one.run.as_ref().zip(other.run.as_ref());
    let one_file = one.identity.is_some() && one.identity == other.identity;
    one_file || ids.is_some_and(|(one, other)| !one.id.is_empty() && one.id == other.id)
}

/// Refuses two that measured different things.
fn check_alike(first: &Measurement, other: &Measurement) -> Result<()> {
    let refused = |what: &str, remedy: &str| {
        Err(Failure::usage(format!("{} and {} differ in {what}: {remedy}", first.title, other.title)))
    };
    let in_blocks = |one: &Measurement| !one.series.blocks.is_empty();
    if first.series.block != other.series.block && in_blocks(first) && in_blocks(other) {
        return refused("the length of their blocks", "their maxima are not comparable, measure again");
    }
    let measured = |measurement: &Measurement| {
        let run = measurement.run.as_ref();
        run.map(|run| (run.plan.probe.clone(), run.plan.kind.clone(), run.plan.over_ns, across(run)))
    };
    if measured(first).zip(measured(other)).is_some_and(|(one, two)| one != two) {
        return refused(
            "the measured quantity",
            "give runs of one command, and of a probe with the same options",
        );
    }
    // For runs whose wake-ups are compared, a remark says so and no verdict is given.
    if !(in_blocks(first) && in_blocks(other)) {
        return Ok(());
    }
    // The CPUs of followed threads are an observation, not a choice.
    let own = |measurement: &Measurement| {
        measurement.run.as_ref().filter(|run| !run.follows()).map(|run| run.cpus.len())
    };
    if own(first).zip(own(other)).is_some_and(|(one, two)| one != two) {
        return refused("the number of measured CPUs", "choose common CPUs with -a");
    }
    let interval = |measurement: &Measurement| measurement.run.as_ref().and_then(|run| run.plan.interval_ns);
    if interval(first).zip(interval(other)).is_some_and(|(one, two)| one != two) {
        return refused(
            "their interval",
            "a block's maximum depends on the number of wake-ups, measure both with the same -i",
        );
    }
    Ok(())
}

/// True if the wake-ups are hand-overs from another CPU.
fn across(run: &model::run::Run) -> bool {
    run.cpus.iter().any(|cpu| cpu.from_cpu.is_some_and(|from| Some(from) != cpu.cpu))
}

/// The reason for which a run supports no verdict, and what to do.
struct Flaw {
    /// Flaw of this run, in words.
    remark: String,
    reason: &'static str,
    remedy: &'static str,
}

/// Flaws of a run that forbid a verdict, the most severe last.
fn flaws(measurement: &Measurement) -> Vec<Flaw> {
    let remedy = "remove that run, or measure it again";
    let invalid = measurement.invalid().into_iter().next().map(|reason| Flaw {
        remark: format!("{} is invalid: {reason}", measurement.title),
        reason: "a run is invalid",
        remedy,
    });
    let lost = measurement.series.lost().map(|lost| Flaw {
        remark: format!("{}: {lost}", measurement.title),
        reason: "a run has lost records",
        remedy,
    });
    invalid.into_iter().chain(lost).collect()
}

/// Remark that seconds are not compared, with the runs that have none.
fn without_blocks(all: &[&Measurement]) -> Option<String> {
    let bare = |measurement: &&&Measurement| measurement.series.blocks.is_empty();
    let titles: Vec<&str> = all.iter().filter(bare).map(|one| one.title.as_str()).collect();
    let why = "no block records, because a histogram has no times: all wake-ups are compared, not seconds";
    (!titles.is_empty()).then(|| of_these(&titles, why))
}

/// Selection of remarks on the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remarks {
    All,
    /// All except those on reading the inputs, which have been shown.
    WithoutReading,
}

/// Remarks on the inputs.
pub fn remarks(a: &[Measurement], b: &[Measurement], which: Remarks) -> Vec<String> {
    let all: Vec<&Measurement> = a.iter().chain(b).collect();
    let mut remarks: Vec<String> =
        all.iter().flat_map(|measurement| flaws(measurement)).map(|flaw| flaw.remark).collect();
    remarks.extend(without_blocks(&all));
    if which == Remarks::All {
        remarks.extend(reading_remarks(&all));
    }
    remarks
}

/// Remarks on reading the inputs; one that applies to many of them appears once.
pub fn reading_remarks(measurements: &[&Measurement]) -> Vec<String> {
    let mut sources: Vec<(&str, Vec<&str>)> = Vec::new();
    for measurement in measurements {
        for remark in &measurement.remarks {
            match sources.iter_mut().find(|(other, _)| other == remark) {
                Some((_, of)) => of.push(&measurement.title),
                None => sources.push((remark, vec![&measurement.title])),
            }
        }
    }
    sources.into_iter().map(|(remark, of)| of_these(&of, remark)).collect()
}

/// A remark with the first of those that it is of.
fn of_these(titles: &[&str], remark: &str) -> String {
    match titles {
        [first, second, third, _, ..] => {
            format!("{first}, {second}, {third} and {} more: {remark}", titles.len() - 3)
        }
        few => format!("{}: {remark}", few.join(", ")),
    }
}
