//! Next step for a culprit: its cure, or a place to look at; never nothing.

use super::sentences::{self, Cure};
use crate::last_lines::RunPlace;
use crate::words::clean;
use model::run::Culprit;
use model::slice::SliceKind;

/// Next step for the culprit at a place of the list, in a sentence or two.
pub fn next_step(culprits: &[Culprit], at: usize) -> String {
    let rule = culprits[at].rule.as_deref().and_then(rules::culprits::find).map(|rule| rule.id);
    match sentences::cure(culprits, at) {
        Cure::As(above) => format!("As for {}.", clean(&culprits[above].name)),
        Cure::Remedy(remedy, _) if !remedy.is_empty() => full_stop(&remedy),
        Cure::Remedy(_, knobs) if !knobs.is_empty() => format!("Settings that matter: {knobs}."),
        _ => match rule {
            Some(id) => format!("See `onbeat rules {id}`."),
            None if every_wake_up(&culprits[at]) => {
                "A part of every wake-up that took longer than usual: look at a typical spike.".to_owned()
            }
            None if culprits[at].kind == SliceKind::Blocked => {
                "For a mutex use PTHREAD_PRIO_INHERIT and keep critical sections short; for a condition \
                 variable look at the thread that signals it (--syscalls tells which of the two it is)."
                    .to_owned()
            }
            None if culprits[at].kind == SliceKind::Own => {
                "Its cycle computes too long: do less in a cycle, or extend the period.".to_owned()
            }
            None => "No rule matches: look at the evidence and stack of a typical spike.".to_owned(),
        },
    }
}

/// Words of a next step that refer to a spike.
const TYPICAL: &str = "a typical spike";

/// The step with the number of its spike, or with the command that shows the spike if that is
/// short.
pub fn with_spike(step: &str, number: Option<usize>, place: Option<RunPlace>) -> String {
    let Some(number) = number else { return step.to_owned() };
    let reference = match place {
        Some(place) if place.newest => {
            format!("`{}`", place.command("explain", &format!("--spike {number}")))
        }
        _ => format!("number {number}"),
    };
    // Rules of culprits add the owner.
    let of_it = format!("{TYPICAL} of it");
    let named = if step.contains(&of_it) { of_it.as_str() } else { TYPICAL };
    step.replace(named, &format!("{named} ({reference})"))
}

/// True if the step is to look at a spike.
pub fn looks_at_a_spike(step: &str) -> bool {
    step.contains(TYPICAL)
}

/// Short form of the step: the first way, if the rule has several.
pub fn first_step(culprits: &[Culprit], at: usize) -> String {
    let whole = next_step(culprits, at);
    let mut depth = 0;
    let end = whole.char_indices().find(|&(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        // A text that covers both cases is not cut.
        let other_way = letter == ';' && !whole[at..].starts_with("; otherwise ");
        depth == 0 && (other_way || whole[at..].starts_with(", or "))
    });
    end.map_or(whole.clone(), |(end, _)| format!("{}.", &whole[..end]))
}

/// True for kinds on the path of every wake-up, late or not.
fn every_wake_up(culprit: &Culprit) -> bool {
    use SliceKind::{ReturnToUser, Switch, TimerIrq, TimerSoftirq};
    culprit.kind.known().is_some_and(|kind| [ReturnToUser, Switch, TimerIrq, TimerSoftirq].contains(&kind))
}

/// Makes a sentence with a capital and a full stop.
pub fn full_stop(sentence: &str) -> String {
    let mut capital = sentence.trim_end_matches('.').to_owned();
    // Commands and functions keep their spelling.
    if capital.starts_with(|c: char| c.is_ascii_lowercase())
        && capital.split(' ').next().is_some_and(|word| word.chars().all(|c| c.is_ascii_alphabetic()))
    {
        capital[..1].make_ascii_uppercase();
    }
    capital + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_and_end_as_such() {
        assert_eq!(full_stop("keep it off"), "Keep it off.");
        assert_eq!(full_stop("irq/24-eth0 is it."), "irq/24-eth0 is it.");
        assert_eq!(full_stop(""), ".");
    }

    /// Each rule, with its remedy and as in a record that lost it; each kind without one.
    #[test]
    fn nobody_is_named_without_a_next_step() {
        let of_rule = |rule: &rules::culprits::rule::CulpritRule, remedy: &str| Culprit {
            rule: Some(rule.id.into()),
            name: rule.title.into(),
            kind: rule.kinds.first().map_or_else(Default::default, |kind| (*kind).into()),
            remedy: remedy.into(),
            ..Culprit::default()
        };
        let rules = rules::culprits::ALL.iter();
        let known = rules.flat_map(|rule| [of_rule(rule, rule.remedy), of_rule(rule, "")]);
        let kinds = SliceKind::ALL.iter().map(|kind| Culprit { kind: (*kind).into(), ..Culprit::default() });
        let odd = [Culprit { kind: "novel".into(), ..Culprit::default() }];
        for culprit in known.chain(kinds).chain(odd) {
            let one = [culprit];
            for step in [next_step(&one, 0), first_step(&one, 0)] {
                assert!(
                    step.len() > 20 && step.ends_with('.'),
                    "{:?} of {:?}: {step}",
                    one[0].rule,
                    one[0].kind
                );
                assert_eq!(step.matches('`').count() % 2, 0, "{step}");
            }
        }
    }

    #[test]
    fn a_typical_spike_is_shown_by_a_command() {
        let unknown = Culprit { kind: SliceKind::IrqsOff.into(), ..Culprit::default() };
        let place = RunPlace { path: "/runs/x", newest: true, fresh: false, program: "onbeat" };
        let step = with_spike(&first_step(&[unknown], 0), Some(17), Some(place));
        assert!(step.ends_with("of a typical spike (`onbeat explain --spike 17`)."), "{step}");
        let elsewhere = RunPlace { newest: false, ..place };
        let step = with_spike("Look at a typical spike.", Some(17), Some(elsewhere));
        assert_eq!(step, "Look at a typical spike (number 17).");
        let step = with_spike("Look at a typical spike of it: it grew.", Some(17), Some(elsewhere));
        assert_eq!(step, "Look at a typical spike of it (number 17): it grew.");
        assert_eq!(with_spike("Keep it off.", Some(17), Some(place)), "Keep it off.");
        assert_eq!(with_spike("Look at a typical spike.", None, Some(place)), "Look at a typical spike.");
    }

    #[test]
    fn the_first_step_is_one_of_several() {
        let remedy =
            "move it (smp_affinity_list; the driver may not), and pin it; or switch it off".to_owned();
        let culprits = [Culprit { remedy, ..Culprit::default() }];
        assert_eq!(first_step(&culprits, 0), "Move it (smp_affinity_list; the driver may not), and pin it.");
        assert!(next_step(&culprits, 0).ends_with("or switch it off."));
        let both =
            Culprit { remedy: "if it is yours, follow it; otherwise move it".into(), ..Culprit::default() };
        assert_eq!(first_step(&[both], 0), "If it is yours, follow it; otherwise move it.");
    }
}
