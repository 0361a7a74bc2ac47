//! Text of an experiment's plan.

use super::chosen::ChosenProof;
use super::timing::{pair_length, trial_of};
use crate::cli::suite::spoken;
use experiment::length::{LEAST, MOST};
use experiment::order::letters;
use experiment::proof::fewest_pairs;
use model::experiment::ExperimentPlan;
use model::plan::PlanDocument;
use model::text::clean;
use model::units::Nanos;
use report::proving::{conditions, heading};

/// Text of the plan, as fixed before the first measurement.
pub fn plan_text(chosen: &ChosenProof, changes: Option<&PlanDocument>) -> String {
    let plan = &chosen.plan;
    let mut text = format!("{}\n{}\n", heading(plan), conditions(plan));
    for change in changes.iter().flat_map(|changes| &changes.changes) {
        let now = if change.now.is_empty() { "?" } else { &change.now };
        text += &format!("  {}: {} -> {}\n", change.setting.key, clean(now), clean(&change.setting.wanted));
    }
    text += &format!(
        "test: whether fewer {} are late with the change than without it, pair by pair; if it has no \
         effect, either is equally likely\n\
         ends: when the evidence is {} to 1 (the e-value; {} pairs if all agree), or after {} pairs\n\
         order: {}\n",
        plan.counted().many(),
        plan.stop_at,
        fewest_pairs(plan),
        plan.most_pairs,
        letters(plan.seed, plan.most_pairs)
    );
    text += &format!(
        "equivalent: within a factor of {}; against the change: a median later by more than {:.0} % and {}, \
         or a load that does less than {:.0} % of its work\n",
        plan.rate_margin,
        100.0 * (plan.p50_factor - 1.0),
        plan.p50_ns.spaced(),
        100.0 * plan.load_share
    );
    if plan.settle_trial_ns.0 > 0 {
        text += &format!(
            "settling: a run of {} after a switch in each direction determines the time to skip, {} to {}\n",
            spoken(plan.settle_trial_ns),
            spoken(plan.settle_ns),
            spoken(plan.settle_trial_ns)
        );
    }
    text + &lengths(chosen)
}

fn lengths(chosen: &ChosenProof) -> String {
    let plan = &chosen.plan;
    let warm_up = spoken(chosen.warm_up);
    let of = |segment_ns| {
        let one = pair_length(&ExperimentPlan { segment_ns, ..plan.clone() });
        let before = chosen.warm_up.0.saturating_add(trial_of(plan).0);
        let all = |pairs: u32| Nanos(one.0.saturating_mul(i64::from(pairs)).saturating_add(before));
        [fewest_pairs(plan), plan.most_pairs].map(|pairs| spoken(all(pairs)))
    };
    match plan.segment_ns.0 {
        0 => {
            let ([least, _], [_, most]) = (of(LEAST), of(MOST));
            format!(
                "takes {least} to {most}: a warm-up of {warm_up} determines the length of a run, {} to {}\n",
                spoken(LEAST),
                spoken(MOST)
            )
        }
        _ => {
            let [least, most] = of(plan.segment_ns);
            format!("takes {least} to {most}, with a warm-up of {warm_up}\n")
        }
    }
}
