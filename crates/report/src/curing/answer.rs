//! First screen of a cure's page: the culprits, the outcome for each, the next steps.

use maud::{Markup, html};

use super::sentences::{CULPRITS, late, next_step};
use crate::hunt::sentences::percent;
use crate::plot::axis::number;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{capitalised, clean, span};
use experiment::cure::negligible::share;
use model::cure::{CureCulprit, CureHunt, CureRun, CureStep};

/// Culprits of the first hunt as bars; nothing without a hunt.
pub fn bars(record: &CureRun) -> Markup {
    let hunt = record.hunts.first();
    html! {
        @if let Some(hunt) = hunt.filter(|hunt| !hunt.culprits.is_empty()) {
            ol class="bars" {
                @for culprit in hunt.culprits.iter().take(CULPRITS) { (bar(culprit, hunt, record)) }
            }
        }
    }
}

fn bar(culprit: &CureCulprit, hunt: &CureHunt, record: &CureRun) -> Markup {
    let part = share(culprit, hunt);
    html! {
        li {
            div class="bar" {
                span class="share" { @if let Some(part) = part { (percent(part)) } }
                span class="who" { (clean(&culprit.name)) }
                span class="took" {
                    (span(culprit.lost_ns)) " in " (late(culprit.spikes, record.plan.counted()))
                }
                svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                    rect width="100" height="4" fill=(PAGE.grid) {}
                    @let width = (part.unwrap_or(0.0) * 100.0).max(0.5);
                    rect width=(number(width)) height="4" fill=(PAGE.lines[0]) {}
                }
            }
            p class="cure" { (prose(&became(culprit, record))) }
        }
    }
}

/// Outcome for a culprit: the changes, or what its cure needs.
fn became(culprit: &CureCulprit, record: &CureRun) -> String {
    let steps = |is_kept: bool, name: &dyn Fn(&CureStep) -> String| -> Vec<String> {
        let against = record.steps.iter().filter(|step| step.culprit == culprit.name && step.kept == is_kept);
        against.map(name).collect()
    };
    // Both numbers are of the same time: each pair has both runs.
    let helped = |step: &CureStep| {
        format!("{} ({} late without it, {} with it)", clean(&step.change), step.late[0], step.late[1])
    };
    let (helpful, tried) = (steps(true, &helped), steps(false, &|step| clean(&step.change)));
    // The need is a reboot, a kernel or hardware; else the reason that nothing was done.
    let left = record.remaining.iter().filter(|one| one.culprit == culprit.name);
    let left = left.min_by_key(|one| one.needs == "decision");
    let takes = left.map(|one| {
        let what = clean(one.what.trim_end_matches('.'));
        match one.needs.as_str() {
            "decision" if what.starts_with("not tried") => format!("{}.", capitalised(&what)),
            "decision" => format!("Not changed: {what}."),
            _ => format!("Needed: {what}."),
        }
    });
    let done = match (helpful.as_slice(), tried.as_slice()) {
        ([], []) if takes.is_some() => None,
        ([], []) => Some("Nothing was tried against it.".to_owned()),
        ([], tried) => Some(format!("Tried and undone: {}.", tried.join(", "))),
        (changes, _) => Some(format!("Kept: {}.", changes.join(", "))),
    };
    // If a change helped, further needs are listed below.
    let takes = takes.filter(|_| helpful.is_empty());
    done.into_iter().chain(takes).collect::<Vec<_>>().join(" ")
}

/// Next steps, for every kind of end.
pub fn next_steps(record: &CureRun) -> Vec<String> {
    let ended = match (record.held, record.ended.as_str()) {
        (true, _) => None,
        (false, "signal" | "") => {
            Some("`onbeat cure --resume` with the folder of this one continues where it ended.".to_owned())
        }
        (false, "time") => Some(
            "A new `onbeat cure` with a longer `--for` continues from the kept changes; the time of this one \
             is over."
                .to_owned(),
        ),
        (false, _) if record.remaining.is_empty() => {
            Some("Nothing is left to try here: `onbeat hunt` shows each late one.".to_owned())
        }
        (false, _) => Some("Further needs are listed below, under \u{201c}What remains\u{201d}.".to_owned()),
    };
    let steps: Vec<String> = ended.into_iter().chain(next_step(record)).collect();
    if steps.is_empty() {
        vec!["No change was needed: `onbeat watch` shows when this is no longer so.".to_owned()]
    } else {
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cured, untouched};
    use super::*;

    #[test]
    fn every_culprit_and_every_end_has_a_next_step() {
        for mut record in [cured(), untouched(), CureRun::default()] {
            let text = bars(&record).into_string();
            for paragraph in text.split("class=\"cure\">").skip(1) {
                assert!(!paragraph.starts_with("</p>"), "{text}");
            }
            for (held, ended) in [(true, "held"), (false, "time"), (false, "no-gain"), (false, "")] {
                (record.held, record.ended) = (held, ended.into());
                assert!(!next_steps(&record).concat().is_empty());
            }
        }
        let text = bars(&cured()).into_string();
        assert!(
            text.contains("Kept: irq-affinity (160 late without it, 0 with it).")
                && text.contains("Tried and undone: swap."),
            "{text}"
        );
    }

    #[test]
    fn what_people_decide_is_not_said_to_be_what_it_takes() {
        let mut record = cured();
        record.steps.clear();
        for (needs, opening) in [("reboot", "Needed"), ("decision", "Not changed")] {
            record.remaining[0].needs = needs.into();
            let text = bars(&record).into_string();
            assert!(text.contains(&format!("{opening}: isolation-lists")), "{text}");
        }
        record.remaining[0].what = "not tried, because it took 0.3 % of the time lost: swap".into();
        let text = bars(&record).into_string();
        assert!(text.contains("\">Not tried, because it took 0.3 % of the time lost: swap.<"), "{text}");
    }
}
