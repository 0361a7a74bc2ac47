//! Two sets of measurements compared: reasons to refuse, differences of their conditions, and their
//! pairs.

use bundle::read::host_files;
use facts::differences::{Difference, Settings, differences, sides_first};
use model::error::{Failure, Result};
use serde::Serialize;
use stats::compare::{CompareQuestion, Compared, compare as compare_series, design};
use stats::pair::verdict::Design;
use stats::series::Series;

use crate::measurement::Measurement;

/// How runs are put into pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// By the question's design.
    Given,
    /// By their times: runs of A and B that alternate are pairs.
    ByTime,
}

/// The answer with what is not statistics.
#[derive(Serialize)]
pub struct ComparisonAnswer {
    #[serde(flatten)]
    pub compared: Compared,
    /// In what the recorded conditions of the sides differ.
    pub environment_diff: Vec<Difference>,
    /// Whether all runs have a record of their conditions; a list has none.
    pub environment_recorded: bool,
    /// What else is to be known of the inputs.
    pub remarks: Vec<String>,
}

impl ComparisonAnswer {
    /// In what the conditions differ; none where one has no record of them.
    pub fn differing(&self) -> Option<&[Difference]> {
        self.environment_recorded.then_some(self.environment_diff.as_slice())
    }
}

/// Compares. The sides are in the order of time afterwards where that makes pairs of them.
pub fn compare(
    a: &mut [Measurement],
    b: &mut [Measurement],
    question: &CompareQuestion,
    pairing: Pairing,
) -> ComparisonAnswer {
    let differing = differing(a, b);
    let mut question = *question;
    if pairing == Pairing::ByTime {
        question.design = pair_up(a, b);
    }
    let mut compared = compare_series(&series(a), &series(b), &question);
    a.iter().chain(&*b).flat_map(flaws).for_each(|flaw| compared.no_verdict(flaw.reason));
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
        a.sort_by_key(started);
        b.sort_by_key(started);
    }
    found
}

/// In what the sides differ, none where a run has no record of its conditions; the kernel's files
/// are read only here and not kept.
pub fn differing(a: &[Measurement], b: &[Measurement]) -> Option<Vec<Difference>> {
    let settings = |side: &[Measurement]| -> Option<Vec<Settings>> {
        let of = |measurement: &Measurement| {
            Some(Settings::of(measurement.run.as_ref()?, &host_files(&measurement.path)))
        };
        side.iter().map(of).collect()
    };
    // A list does not record conditions, which is not the same as having none.
    let (of_a, of_b) = settings(a).zip(settings(b))?;
    let mut found: Vec<Difference> = commands_of(a, b).into_iter().chain(differences(&of_a, &of_b)).collect();
    sides_first(&mut found);
    Some(found)
}

/// A hunt's recording delays what it measures, and a measurement's loop records nothing.
fn commands_of(a: &[Measurement], b: &[Measurement]) -> Option<Difference> {
    let of = |side: &[Measurement]| {
        let mut all: Vec<&str> =
            side.iter().filter_map(|one| Some(one.run.as_ref()?.command.as_str())).collect();
        all.sort_unstable();
        all.dedup();
        all.join(" | ")
    };
    let (a, b) = (of(a), of(b));
    (a != b || a.contains(" | ")).then(|| Difference { what: "command".into(), a, b })
}

/// Refuses what would compare different things.
pub fn check_comparable(a: &[Measurement], b: &[Measurement]) -> Result<()> {
    let all: Vec<&Measurement> = a.iter().chain(b).collect();
    for (at, measurement) in all.iter().enumerate() {
        if all[..at].iter().any(|other| is_same(other, measurement)) {
            return Err(Failure::usage(format!(
                "{} is given twice: one run is one unit, give each once",
                measurement.title
            )));
        }
    }
    let Some(first) = all.first() else { return Ok(()) };
    all.iter().try_for_each(|other| check_alike(first, other))
}

/// Whether two are one file, or one run.
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
    if first.series.block != other.series.block {
        return refused("the length of their blocks", "their maxima are of different things, measure again");
    }
    let measured = |measurement: &Measurement| {
        let run = measurement.run.as_ref();
        run.map(|run| (run.plan.probe.clone(), run.plan.kind.clone(), run.plan.over_ns, across(run)))
    };
    if measured(first).zip(measured(other)).is_some_and(|(one, two)| one != two) {
        return refused(
            "what they measured",
            "give runs of one command, and of a probe with the same options",
        );
    }
    // Where followed threads happen to run is found, not chosen.
    let own = |measurement: &Measurement| {
        measurement.run.as_ref().filter(|run| !run.follows()).map(|run| run.cpus.len())
    };
    if own(first).zip(own(other)).is_some_and(|(one, two)| one != two) {
        return refused("how many CPUs they measured", "name CPUs that all of them have with -a");
    }
    let interval = |measurement: &Measurement| measurement.run.as_ref().and_then(|run| run.plan.interval_ns);
    if interval(first).zip(interval(other)).is_some_and(|(one, two)| one != two) {
        return refused(
            "their interval",
            "a block's maximum is one of another number of wake-ups, measure both with the same -i",
        );
    }
    Ok(())
}

/// Whether what is handed over comes from another CPU.
fn across(run: &model::run::Run) -> bool {
    run.cpus.iter().any(|cpu| cpu.from_cpu.is_some_and(|from| Some(from) != cpu.cpu))
}

/// Why a run supports no verdict.
struct Flaw {
    /// Of this run, in words.
    remark: String,
    reason: &'static str,
}

/// What of a run forbids a verdict, the weightiest last.
fn flaws(measurement: &Measurement) -> Vec<Flaw> {
    let invalid = measurement.invalid().into_iter().next().map(|reason| Flaw {
        remark: format!("{} was spoiled: {reason}", measurement.title),
        reason: "a run was spoiled: leave it out, or measure again",
    });
    let lost = measurement.series.lost().map(|lost| Flaw {
        remark: format!("{}: {lost}", measurement.title),
        reason: "a run has lost records: leave it out, or measure again",
    });
    let bare = measurement.series.blocks.is_empty().then(|| Flaw {
        remark: format!("{} has no block records: a histogram alone does not say when", measurement.title),
        reason: "a run has no block records: of it only the quantiles are known",
    });
    invalid.into_iter().chain(lost).chain(bare).collect()
}

/// Which remarks on the inputs are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remarks {
    All,
    /// Without those on reading the inputs, which have been shown.
    WithoutReading,
}

/// What else is to be known of the inputs.
pub fn remarks(a: &[Measurement], b: &[Measurement], which: Remarks) -> Vec<String> {
    let all: Vec<&Measurement> = a.iter().chain(b).collect();
    let mut remarks: Vec<String> =
        all.iter().flat_map(|measurement| flaws(measurement)).map(|flaw| flaw.remark).collect();
    if which == Remarks::All {
        remarks.extend(reading_remarks(&all));
    }
    remarks
}

/// Remarks on reading the inputs: what holds for many of them is said once.
pub fn reading_remarks(measurements: &[&Measurement]) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for measurement in measurements {
        for remark in &measurement.remarks {
            match said.iter_mut().find(|(other, _)| other == remark) {
                Some((_, of)) => of.push(&measurement.title),
                None => said.push((remark, vec![&measurement.title])),
            }
        }
    }
    let line = |(remark, of): (&str, Vec<&str>)| match of.as_slice() {
        [first, second, third, _, ..] => {
            format!("{first}, {second}, {third} and {} more: {remark}", of.len() - 3)
        }
        few => format!("{}: {remark}", few.join(", ")),
    };
    said.into_iter().map(line).collect()
}
