//! Experiments of `cure`: the rate at which it keeps a change without effect, and at which it cures
//! a curable machine, through the whole decision.

use experiment::cure::fixture::{DrawnFault, DrawnMachine, drawn_plan};
use experiment::fixture::DrawnExperiment;
use model::cure::CureRun;
use stats::rng::{Rng, SEED};

use super::line::ResultLine;
use super::{Experiment, Length};

pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for (name, unrest) in [
        ("steady", DrawnExperiment::STEADY),
        ("shifts, drift", DrawnExperiment::RESTLESS),
        ("spoiled segments", DrawnExperiment { spoiled: 0.05, ..DrawnExperiment::RESTLESS }),
    ] {
        all.push(("cure-nothing", Box::new(move |length| vec![keeps(name, unrest, length)])));
    }
    all.push(("cure-helps", Box::new(helps)));
    all
}

/// Two culprits, each with changes that do nothing.
fn incurable(unrest: DrawnExperiment) -> DrawnMachine {
    let none = |names: &[&'static str]| names.iter().map(|name| (*name, 1.0)).collect();
    let first = DrawnFault { name: "interrupt", rate: 1.0, changes: none(&["a", "b", "c", "d"]) };
    let second = DrawnFault { name: "thread", rate: 0.5, changes: none(&["e", "f", "g"]) };
    DrawnMachine { faults: vec![first, second], unrest }
}

/// The design allows 2 of 200.
fn keeps(name: &str, unrest: DrawnExperiment, length: Length) -> ResultLine {
    let reps = length.of(2_000, 200);
    let mut rng = Rng::new(SEED);
    let machine = incurable(unrest);
    let cures: Vec<CureRun> = (0..reps).map(|_| machine.cure(drawn_plan(), &mut rng)).collect();
    let kept = cures.iter().filter(|cure| cure.kept_changes() > 0).count();
    let tried: usize = cures.iter().map(|cure| cure.steps.len()).sum();
    let minutes: f64 = cures.iter().map(|cure| cure.spent_ns.as_secs() / 60.0).sum();
    let late = cures.iter().filter(|cure| cure.spent_ns > cure.plan.at_most_ns || cure.held).count();
    ResultLine::rate(
        format!("cure, nothing helps, {name}: keeps something"),
        kept as f64 / f64::from(reps),
        reps,
    )
    .at_most(2.0 / 200.0)
    .note(format!(
        "{kept} of {reps}; {:.1} changes tried in {:.0} min; {late} held or beyond their time",
        tried as f64 / f64::from(reps),
        minutes / f64::from(reps)
    ))
}

fn helps(length: Length) -> Vec<ResultLine> {
    let reps = length.of(500, 60);
    let of = |what: &str, unrest: DrawnExperiment| {
        let faults = vec![
            DrawnFault { name: "interrupt", rate: 2.0, changes: vec![("none", 1.0), ("affinity", 0.0)] },
            DrawnFault { name: "thread", rate: 1.0, changes: vec![("priority", 0.0), ("harm", 2.0)] },
        ];
        let machine = DrawnMachine { faults, unrest };
        let mut rng = Rng::new(SEED);
        let cures: Vec<CureRun> = (0..reps).map(|_| machine.cure(drawn_plan(), &mut rng)).collect();
        let held = cures.iter().filter(|cure| cure.held).count();
        let harmed = cures
            .iter()
            .filter(|cure| cure.steps.iter().any(|step| step.kept && step.change == "harm"))
            .count();
        let minutes: f64 = cures.iter().map(|cure| cure.spent_ns.as_secs() / 60.0).sum();
        ResultLine::rate(format!("cure, two faults, {what}: held"), held as f64 / f64::from(reps), reps)
            .note(format!("{harmed} kept what harms; {:.0} min on average", minutes / f64::from(reps)))
    };
    vec![of("steady", DrawnExperiment::STEADY).at_least(0.9), of("shifts, drift", DrawnExperiment::RESTLESS)]
}
