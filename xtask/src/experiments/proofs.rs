//! Experiments of `prove`: the rate of verdicts for a change without effect, and the time until one
//! that helps is found, through the whole decision.

use experiment::design::usual;
use experiment::fixture::DrawnExperiment;
use experiment::proof::Proof;
use stats::pair::e_value::STOP_AT;
use stats::pair::sign_sequence::reach;
use stats::pair::verdict::Verdict;
use stats::rng::{Rng, SEED};

use super::line::ResultLine;
use super::{Experiment, Length};

pub fn all() -> Vec<Experiment> {
    let nothing = [("steady", DrawnExperiment::STEADY), ("shifts, drift", DrawnExperiment::RESTLESS)];
    let rare = DrawnExperiment { late: 1.0, ..DrawnExperiment::RESTLESS };
    let spoiled = DrawnExperiment { spoiled: 0.05, ..DrawnExperiment::RESTLESS };
    let nothing = nothing.into_iter().chain([("rare events", rare), ("spoiled segments", spoiled)]);
    let mut all: Vec<Experiment> = Vec::new();
    for (name, machine) in nothing {
        all.push(("prove-nothing", Box::new(move |length| vec![called_something(name, machine, length)])));
    }
    all.push(("prove-helps", Box::new(helps)));
    all
}

fn declares(proof: &Proof) -> bool {
    matches!(proof.verdict, Verdict::Better | Verdict::Worse)
}

/// The design allows 130 of 2,000; if no pair is tied or dropped, a fair coin is known to do it
/// less often.
fn called_something(name: &str, machine: DrawnExperiment, length: Length) -> ResultLine {
    let reps = length.of(2_000, 400);
    let mut rng = Rng::new(SEED);
    let proofs: Vec<Proof> = (0..reps).map(|_| machine.run(&usual(), &mut rng)).collect();
    let share = |is: &dyn Fn(&Proof) -> bool| {
        proofs.iter().filter(|proof| is(proof)).count() as f64 / f64::from(reps)
    };
    let equivalent = share(&|proof| proof.verdict == Verdict::Equivalent);
    let carried = share(&|proof| proof.carry_over.is_seen(STOP_AT));
    let coin = reach(0.5, usual().most_pairs as usize, STOP_AT);
    ResultLine::rate(format!("prove, no effect, {name}: better or worse"), share(&declares), reps)
        .at_most(130.0 / 2_000.0)
        .note(format!("a fair coin {coin:.3}; equivalent {equivalent:.2}; carry-over seen {carried:.3}"))
}

fn helps(length: Length) -> Vec<ResultLine> {
    let reps = length.of(1_000, 100);
    let of = |what: &str, machine: DrawnExperiment| {
        let mut rng = Rng::new(SEED);
        let proofs: Vec<Proof> = (0..reps).map(|_| machine.run(&usual(), &mut rng)).collect();
        let within =
            proofs.iter().filter(|proof| proof.verdict == Verdict::Better && proof.pairs <= 12).count();
        let pairs = proofs.iter().map(|proof| proof.pairs as f64).sum::<f64>() / f64::from(reps);
        let better = proofs.iter().filter(|proof| proof.verdict == Verdict::Better).count();
        ResultLine::rate(format!("prove, {what}: better in 12 pairs"), within as f64 / f64::from(reps), reps)
            .note(format!("better at the end {better}; {pairs:.1} pairs on average"))
    };
    let fifth = DrawnExperiment { factor: 0.2, ..DrawnExperiment::STEADY };
    let restless = DrawnExperiment { factor: 0.2, ..DrawnExperiment::RESTLESS };
    let half = DrawnExperiment { factor: 0.5, ..DrawnExperiment::STEADY };
    vec![
        of("10 a segment cut to a fifth", fifth).at_least(0.9),
        of("the same with shifts, drift", restless),
        of("10 a segment cut to half", half),
    ]
}
