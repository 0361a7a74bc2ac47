//! The way in which runs were measured: tool, interval, number of threads, resolution. Differences
//! in these may explain the differences in the numbers.

use std::collections::BTreeSet;

use facts::differences::{Difference, NOT_STATED, joined};
use model::run::Run;
use model::units::Nanos;
use model::vocabulary::{Command, Quantity};

use crate::measurement::Measurement;

/// One aspect of a run's measurement.
struct Aspect {
    name: &'static str,
    /// Value as text; `""` if it is not known.
    of: fn(&Measurement) -> String,
}

/// Field of the plan that is empty for onbeat's own runs.
const TOOL: &str = "plan.tool";

/// Aspects that are listed if they differ.
const NAMED: [Aspect; 5] = [
    Aspect { name: "command", of: command },
    Aspect { name: TOOL, of: tool },
    Aspect { name: "measures", of: measures },
    Aspect { name: "resolution", of: resolution },
    Aspect { name: "labels", of: labels },
];

/// Aspects that make the numbers of two sides incomparable, unless each value is as frequent on one
/// side as on the other.
const DECISIVE: [Aspect; 3] = [
    Aspect { name: "the tool", of: tool_name },
    Aspect { name: "the interval", of: interval },
    Aspect { name: "the number of threads", of: threads },
];

/// Aspects in which the sides, or the runs of one side, were measured differently.
pub fn differences(a: &[Measurement], b: &[Measurement]) -> Vec<Difference> {
    let named = |aspect: &Aspect| {
        let (a, b) = (aspect.values(a), aspect.values(b));
        (a != b || a.len() > 1).then(|| Difference { what: aspect.name.into(), a: joined(&a), b: joined(&b) })
    };
    NAMED.iter().filter_map(named).collect()
}

/// Aspects of a measurement, each with its value.
pub fn named(one: &Measurement) -> impl Iterator<Item = (&'static str, String)> {
    NAMED.iter().map(|aspect| (aspect.name, (aspect.of)(one)))
}

/// True for a measurement that another tool's file states of a run.
pub fn is_foreign(one: &Measurement) -> bool {
    let imported = one.run.as_ref().is_some_and(|run| run.command == Command::Import);
    imported && one.series.blocks.is_empty()
}

/// True if both sides state the values that differ: another tool's file says little of its machine,
/// and what it omits is not absent.
pub fn is_known(difference: &Difference, a: &[Measurement], b: &[Measurement]) -> bool {
    let stated = |side: &[Measurement], value: &str| {
        !side.iter().any(is_foreign) || value.split(" | ").all(|value| !NOT_STATED.contains(&value))
    };
    difference.what != TOOL && stated(a, &difference.a) && stated(b, &difference.b)
}

/// Aspect to which a difference between the sides may be due, and a remedy.
pub fn confounded(a: &[Measurement], b: &[Measurement]) -> Option<(String, &'static str)> {
    let differs = |aspect: &Aspect| {
        let [in_a, in_b] = [a, b].map(|side| aspect.known(side));
        let values = |side: &[String]| side.iter().cloned().collect::<BTreeSet<_>>();
        (!have_one_share(&in_a, &in_b)).then(|| {
            format!("{} ({} in A, {} in B)", aspect.name, joined(&values(&in_a)), joined(&values(&in_b)))
        })
    };
    let all: Vec<String> = DECISIVE.iter().filter_map(differs).collect();
    let reason =
        format!("A and B differ in {}, so the difference may come from the method", all.join(" and in "));
    (!all.is_empty()).then_some((reason, "measure both sides with the same tool, interval and threads"))
}

/// True if each value has the same share of both sides, so that no exchange of runs makes a
/// difference, or if nothing is known of a side.
fn have_one_share(a: &[String], b: &[String]) -> bool {
    let count = |side: &[String], value: &String| side.iter().filter(|other| *other == value).count();
    let even = |value: &String| count(a, value) * b.len() == count(b, value) * a.len();
    a.is_empty() || b.is_empty() || a.iter().chain(b).all(even)
}

impl Aspect {
    /// Known values of the runs.
    fn known(&self, side: &[Measurement]) -> Vec<String> {
        side.iter().map(self.of).filter(|value| !value.is_empty()).collect()
    }

    fn values(&self, side: &[Measurement]) -> BTreeSet<String> {
        side.iter().map(self.of).collect()
    }
}

fn of_run(measurement: &Measurement, of: impl Fn(&Run) -> Option<String>) -> String {
    measurement.run.as_ref().and_then(of).unwrap_or_default()
}

/// A hunt delays what it measures by recording; the loop of a measurement records nothing.
fn command(measurement: &Measurement) -> String {
    of_run(measurement, |run| Some(run.command.as_str().to_owned()))
}

fn tool(measurement: &Measurement) -> String {
    let own = |run: &Run| if run.command == Command::Import { "" } else { "onbeat" };
    of_run(measurement, |run| {
        Some(if run.plan.tool.is_empty() { own(run) } else { &run.plan.tool }.to_owned())
    })
}

/// The user's own words for a run: a condition that onbeat cannot read.
fn labels(measurement: &Measurement) -> String {
    of_run(measurement, |run| Some(run.labels.words()))
}

/// Name without its version: another version is not another way to measure.
fn tool_name(measurement: &Measurement) -> String {
    tool(measurement).split(' ').next().unwrap_or_default().to_owned()
}

fn measures(measurement: &Measurement) -> String {
    of_run(measurement, |run| Some(quantities(run).into_iter().collect::<Vec<_>>().join(", ")))
}

fn quantities(run: &Run) -> BTreeSet<String> {
    run.cpus.iter().map(|cpu| cpu.quantity().to_owned()).collect()
}

/// Quantity that all runs have measured, preferably the one a program sees; `None` if they have
/// none in common, or no run states it.
fn common_quantity(all: &[&Measurement]) -> Option<String> {
    let mut runs = all.iter().filter_map(|one| one.run.as_ref()).filter(|run| !run.cpus.is_empty());
    let mut common = quantities(runs.next()?);
    runs.for_each(|run| common.retain(|quantity| quantities(run).contains(quantity)));
    let preferred = [Quantity::User, Quantity::Wakeup].map(|quantity| quantity.name().to_owned());
    preferred.into_iter().find(|quantity| common.contains(quantity)).or_else(|| common.pop_first())
}

/// True if all runs have measured a common quantity.
pub fn have_common_quantity(all: &[&Measurement]) -> bool {
    let has_results = all.iter().any(|one| one.run.as_ref().is_some_and(|run| !run.cpus.is_empty()));
    !has_results || common_quantity(all).is_some()
}

/// Reduces each run to the entries of the common quantity.
pub fn keep_common_quantity(a: &mut [Measurement], b: &mut [Measurement]) {
    let Some(quantity) = common_quantity(&a.iter().chain(&*b).collect::<Vec<_>>()) else { return };
    for run in a.iter_mut().chain(b).filter_map(|one| one.run.as_mut()) {
        run.cpus.retain(|cpu| cpu.quantity() == quantity);
    }
}

fn interval(measurement: &Measurement) -> String {
    of_run(measurement, |run| run.plan.interval_ns.map(Nanos::spoken))
}

fn threads(measurement: &Measurement) -> String {
    // The CPUs of followed threads are an observation, not a choice.
    of_run(measurement, |run| (!run.follows()).then(|| run.cpus.len().to_string()))
}

/// Resolution of the recorded latencies: constant with other tools, growing with the latency with
/// onbeat.
fn resolution(measurement: &Measurement) -> String {
    of_run(measurement, |run| {
        if run.command != Command::Import {
            return Some("1.6 %".to_owned());
        }
        let rows = run.cpus.iter().flat_map(|cpu| &cpu.histogram);
        rows.map(|row| Nanos(row.upper.0.saturating_sub(row.lower.0))).min().map(Nanos::spoken)
    })
}
