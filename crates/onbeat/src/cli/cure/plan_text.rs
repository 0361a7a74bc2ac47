//! Text of `cure --dry-run`: the fixed parameters, and the possible changes on this machine.

use std::fmt::Write;

use super::chosen::ChosenCure;
use super::course::allowed;
use experiment::cure::choice::rank;
use experiment::cure::level::level;
use experiment::cure::long_run;
use model::error::Result;
use model::text::clean;
use report::curing::conditions;
use study::curing::curable;

/// Text of the plan. The culprits decide which of the changes are tried.
pub fn plan_text(chosen: &ChosenCure) -> Result<String> {
    let plan = &chosen.plan;
    let mut text = format!("{}\n", conditions(plan));
    let _ = writeln!(
        text,
        "held: when a run of {} after the last change supports the limit for {}",
        long_run(plan.horizon_ns).spoken(),
        plan.horizon_ns.spoken()
    );
    let levels: Vec<String> = (1..=3).map(|number| format!("{:.0}", level(number))).collect();
    let _ = writeln!(
        text,
        "kept: changes that are better, and better again in new pairs, at an e-value of {} for the first \
         changes",
        levels.join(", ")
    );
    let machine = curable(&chosen.cpus)?;
    let may = |risk| rank(risk) <= rank(allowed(plan));
    if !machine.offered.iter().any(|change| may(change.risk)) {
        text += "no change can be tried here";
        text += if plan.yes { "\n" } else { " without --yes\n" };
    }
    for change in &machine.offered {
        let needs = if may(change.risk) { "" } else { ", needs --yes" };
        let _ = writeln!(text, "{} ({} risk{needs})", change.rule, change.risk.name());
        for one in &change.changes {
            let _ = writeln!(text, "  {}", clean(one));
        }
    }
    Ok(text)
}
