//! Basis of the verdict of an experiment, in sentences.

use std::collections::BTreeSet;

use crate::words::{capitalised, clean, duration, several, span, us};
use experiment::needs::ProofNeeds;
use experiment::proof::{ExperimentEnd, Proof};
use experiment::settling::discarded;
use experiment::veto::LoadWork;
use model::experiment::{CountedUnit, ExperimentArm, ExperimentPlan, ExperimentRun};
use model::units::Nanos;
use stats::pair::verdict::Verdict;

/// Basis of the verdict, in sentences.
pub fn numbers(run: &ExperimentRun, proof: &Proof, needs: ProofNeeds) -> Vec<String> {
    let plan = &run.plan;
    let mut lines = vec![of_pairs(proof), duration_sentence(run)];
    lines.extend(settling(run).map(|clause| format!("{}.", capitalised(&clause))));
    let missing = [(proof.dropped, "dropped"), (proof.interrupted, "interrupted")];
    for (pairs, how) in missing.into_iter().filter(|(pairs, _)| *pairs > 0) {
        lines.push(match pairs {
            1 => format!("1 pair was {how} and counts for neither side."),
            _ => format!("{pairs} pairs were {how} and count for neither side."),
        });
    }
    if proof.unequal > 0 {
        lines.push(format!(
            "Of the dropped pairs, {} runs of different length: measure both sides for the same time.",
            several(u64::from(proof.unequal), "has", "have")
        ));
    }
    lines.extend(astray(run, proof));
    lines.extend(proof.works.iter().map(of_work));
    lines.extend(others(plan, proof));
    lines.extend(detectable(plan, proof, needs));
    if proof.carry_over.is_seen(plan.stop_at) {
        let why = match plan.settle_ns.0 {
            0 => "begin the runs later after the boot".to_owned(),
            _ => format!(
                "the change may take longer than {} to settle; increase --settle",
                length(plan.settle_ns)
            ),
        };
        lines.push(format!(
            "In {} of {} segments the first half resembles the other side: {why}.",
            proof.carry_over.towards, proof.carry_over.of
        ));
    }
    if let Some(drift) = proof.drift.filter(|drift| drift.is_large()) {
        lines.push(format!(
            "The median drifted: without the change it was {} us in the first pair and {} us in the last. \
             Pairs begin with either side, which keeps this out of the verdict.",
            us(drift.first),
            us(drift.last)
        ));
    }
    lines
}

fn of_work(work: &LoadWork) -> String {
    let interval = work.interval.map_or_else(String::new, |[lower, upper]| {
        format!(" (in the typical pair from {} to {}, with 95 %)", digits(lower), digits(upper))
    });
    format!(
        "With the change the load {} did {} times the work that it did without it{interval}.",
        clean(&work.spec),
        digits(work.ratio)
    )
}

fn of_pairs(proof: &Proof) -> String {
    let [a, b] = proof.late;
    let ratio =
        proof.rate_ratio.map_or_else(String::new, |ratio| format!(", {} times as often", digits(ratio)));
    let interval = proof.typical().map_or_else(String::new, |ends| {
        format!(" (in the typical pair {}, with 95 %)", between(ends, proof.verdict))
    });
    let ties = match proof.ties {
        0 => String::new(),
        ties => format!(", as many in {ties}"),
    };
    let signed = proof.pairs - proof.ties;
    format!(
        "Late {}: {a} without the change, {b} with it{ratio}{interval}; fewer in {} of {signed} \
         pairs{ties}: e-value {}, and {} decides.",
        proof.counted.many(),
        proof.wins,
        digits(proof.e_value),
        digits(proof.level)
    )
}

fn duration_sentence(run: &ExperimentRun) -> String {
    let count = i64::try_from(run.segments.len()).unwrap_or(i64::MAX);
    format!(
        "It took {}: {} measured, {} skipped after switches.",
        several(run.segments.len() as u64, "segment", "segments"),
        length(Nanos(run.plan.segment_ns.0.saturating_mul(count))),
        length(discarded(run))
    )
}

/// Origin of the settling time, as a part of a sentence; none if it was requested.
pub fn settling(run: &ExperimentRun) -> Option<String> {
    let left_out = length(run.plan.settle_ns);
    let side = |arm| if arm == ExperimentArm::B { "with the change" } else { "without it" };
    if let Some(run) = run.trial.iter().find(|one| one.unsettled) {
        let altered = length(run.altered_ns.unwrap_or_default());
        return Some(format!(
            "after a switch, the results {} still changed after {altered}: {left_out} are skipped after \
             each, which may be too little; increase --settle",
            side(run.arm)
        ));
    }
    if let Some(run) = run.trial.iter().find(|one| one.altered_ns.is_none()) {
        return Some(format!(
            "the settling time {} could not be determined ({}): {left_out} are skipped after each switch",
            side(run.arm),
            clean(&run.why)
        ));
    }
    let longest = run.trial.iter().max_by_key(|one| one.altered_ns)?;
    Some(match longest.altered_ns.unwrap_or_default() {
        Nanos(0) => {
            format!(
                "no change of the results was seen after either switch: {left_out} are skipped after each"
            )
        }
        altered => format!(
            "after a switch, the results {} changed for {}: {left_out} are skipped after each",
            side(longest.arm),
            length(altered)
        ),
    })
}

/// Limit of interrupts that are named.
const NAMED: usize = 8;

/// Interrupts that arrived on CPUs where neither side has them.
fn astray(run: &ExperimentRun, proof: &Proof) -> Option<String> {
    let valid = run.segments.iter().filter(|segment| segment.valid);
    let all: BTreeSet<u32> = valid.flat_map(|segment| segment.astray.iter().copied()).collect();
    let mut named: Vec<String> = all.iter().take(NAMED).map(u32::to_string).collect();
    if all.len() > NAMED {
        named.push(format!("and {} more", all.len() - NAMED));
    }
    (proof.astray > 0).then(|| {
        format!(
            "In {} of {}, interrupts arrived on CPUs where their side does not place them ({}): they are too \
             rare to wait for, and make both sides more alike.",
            proof.astray,
            several(proof.pairs, "pair", "pairs"),
            named.join(", ")
        )
    })
}

/// Knowledge of the CPUs that were not measured.
fn others(plan: &ExperimentPlan, proof: &Proof) -> Option<String> {
    let of_threads = plan.counted() == CountedUnit::Cycles;
    let known = if proof.works.is_empty() {
        "the effect of the change there is not known"
    } else {
        "only the effect on the load's work there is known"
    };
    (!of_threads && proof.pairs > 0)
        .then(|| format!("Wake-ups of CPUs other than {} were not measured: {known}.", clean(&plan.cpus)))
}

/// Detectable change for this number of pairs, if they found none.
fn detectable(plan: &ExperimentPlan, proof: &Proof, needs: ProofNeeds) -> Option<String> {
    if proof.verdict != Verdict::Inconclusive || proof.late == [0, 0] {
        return None;
    }
    let more = match proof.fewest_more {
        // Neither side can win any more.
        _ if proof.end == Some(ExperimentEnd::Futile) => String::new(),
        0 => String::new(),
        more => format!(" At least {} more could decide it.", several(u64::from(more), "pair", "pairs")),
    };
    let seen = needs.smallest_detectable.map_or_else(
        || format!("With so few pairs or late {}, no change can be detected.", proof.counted.many()),
        |factor| {
            format!(
                "This number of pairs detects a change to 1/{} or less four times in five.",
                digits(factor)
            )
        },
    );
    let needed = needs.pairs.map_or_else(String::new, |pairs| {
        format!(" A change to 1/{} needs {pairs} pairs.", digits(plan.rate_margin))
    });
    Some(format!("{seen}{needed}{more}"))
}

/// Length in seconds, or in minutes from two minutes on.
pub fn length(span_of: Nanos) -> String {
    match span_of.0 {
        0 => "nothing".to_owned(),
        1..120_000_000_000 => span(span_of),
        _ => duration(span_of),
    }
}

/// Interval in words. Equal pairs pull an end to exactly 1: the test that decided excludes that.
pub fn between([lower, upper]: [f64; 2], verdict: Verdict) -> String {
    match verdict {
        Verdict::Better if upper >= 1.0 => format!("from {} to below 1", digits(lower)),
        Verdict::Worse if lower <= 1.0 && upper > 1.0 => format!("from above 1 to {}", digits(upper)),
        _ => format!("from {} to {}", digits(lower), digits(upper)),
    }
}

/// Number with three digits.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(0.01..10_000.0).contains(&size) => format!("{value:.1e}"),
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
