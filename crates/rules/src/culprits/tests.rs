//! Checks for every culprit rule: its record is complete, and it behaves as its examples show.

use std::collections::BTreeSet;

use super::ALL;
use super::belonging::place_of;
use super::context::{RunContext, SliceContext};
use super::fixture::Scene;
use super::names::fallback_name;
use super::rule::CulpritRule;
use super::tally::rank_all;
use crate::knobs;
use model::run::{Host, Slice, Spike, Who};
use model::slice::SliceKind;
use model::units::Nanos;

#[test]
fn each_rule_fires_and_stays_silent() {
    for rule in ALL {
        let id = rule.id.to_owned();
        assert_eq!(
            Scene::of(rule.examples.fires).rules(),
            std::slice::from_ref(&id),
            "{id} should fire, alone"
        );
        assert!(!Scene::of(rule.examples.silent).rules().contains(&id), "{id} should be silent");
    }
}

#[test]
fn ids_are_sorted_and_unique_across_both_kinds() {
    let ids: Vec<&str> = ALL.iter().map(|rule| rule.id).collect();
    let sorted: Vec<&str> = ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(ids, sorted);
    for id in ids {
        assert!(crate::find(id).is_none(), "{id} is a knob too");
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{id}");
    }
}

/// Complaints about the texts of a record.
fn complaints(rule: &CulpritRule) -> Vec<String> {
    let mut found = Vec::new();
    let mut complain = |wrong: bool, what: &str| {
        if wrong {
            found.push(format!("{}: {what}", rule.id));
        }
    };
    for (name, text) in [("looks", rule.signature), ("tell", rule.detection)] {
        complain(text.len() < 60 || text.len() > 1200, &format!("`{name}` has {} bytes", text.len()));
        complain(!text.ends_with('.'), &format!("`{name}` ends without a full stop"));
    }
    for (name, text) in [("title", rule.title), ("remedy", rule.remedy), ("provoke", rule.provoke)] {
        complain(
            text.ends_with('.') || text.contains('\n'),
            &format!("`{name}` is no line without full stop"),
        );
        complain(text.len() < 5, &format!("`{name}` is missing"));
    }
    complain(rule.sources.is_empty(), "no source");
    for source in rule.sources {
        complain(!source.url.starts_with("https://") || source.title.is_empty(), "a source cannot be opened");
    }
    complain(rule.kinds.is_empty(), "it knows no kind");
    for id in rule.cured_by {
        let Some(knob) = crate::find(id) else {
            complain(true, &format!("there is no knob {id}"));
            continue;
        };
        let shared = knob.cures.iter().any(|kind| rule.kinds.contains(kind));
        complain(!shared, &format!("{id} cures none of its kinds"));
    }
    found
}

#[test]
fn records_are_complete() {
    let found: Vec<String> = ALL.iter().flat_map(|rule| complaints(rule)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn examples_are_near_misses() {
    for rule in ALL {
        let of_its_kind = |text: &str| {
            let mut words = text.lines().filter_map(|line| line.split_whitespace().next());
            words.any(|word| rule.covers(&word.into()))
        };
        assert!(of_its_kind(rule.examples.fires), "{} fires at another kind", rule.id);
        // A fallback rule matches its whole kind: only another kind can be a miss.
        assert!(rule.fallback || of_its_kind(rule.examples.silent), "{} is no near miss", rule.id);
        assert_ne!(rule.examples.fires, rule.examples.silent);
    }
}

#[test]
fn no_two_rules_know_the_same_slice_equally_well() {
    for rule in ALL {
        let scene = Scene::of(rule.examples.fires);
        let run = scene.run();
        for (spike, slice) in
            scene.spikes.iter().flat_map(|spike| spike.slices.iter().map(move |slice| (spike, slice)))
        {
            let context = SliceContext { spike, slice, run: &run };
            for fallback in [false, true] {
                let knows = |other: &&&CulpritRule| {
                    other.fallback == fallback
                        && other.covers(&slice.kind)
                        && (other.matches)(&context).is_some()
                };
                assert!(ALL.iter().filter(knows).count() <= 1, "{} shares a slice of its example", rule.id);
            }
        }
    }
}

/// Possible slices of a cycle: kernel and user threads, above, below and equal to the victim, with
/// and without a name.
fn slices_of_cycles() -> Vec<Slice> {
    let functions = ["", "futex_do_wait", "__futex_wait", "futex_lock_pi", "n_tty_write [tty]", "write"];
    let kinds = [SliceKind::Own, SliceKind::Preempted, SliceKind::Blocked, SliceKind::PageFault];
    let mut slices = Vec::new();
    for kind in kinds.into_iter().chain([SliceKind::Syscall]) {
        for comm in ["", "hog", "irq/24-eth0", "ksoftirqd/1", "rcuc/1"] {
            for (prio, function) in [-1, 0, 19, 50, 98, 99, 120]
                .into_iter()
                .flat_map(|prio| functions.iter().map(move |function| (prio, *function)))
            {
                let itself = matches!(kind, SliceKind::Own | SliceKind::Syscall);
                let pid = if itself { VICTIM } else { VICTIM + 1 };
                let who = Who { comm: comm.into(), pid, prio, function: function.into(), ..Who::default() };
                let evidence = "what was seen".to_owned();
                slices.push(Slice { kind: kind.into(), ns: Nanos(1_000), who, evidence, ..Slice::default() });
            }
        }
    }
    slices
}

const VICTIM: i32 = 70;

#[test]
fn every_part_of_a_cycle_has_a_rule_with_a_next_step_and_keeps_its_name() {
    for prio in [19, 120] {
        for slice in slices_of_cycles() {
            let mut spike = Spike { slices: vec![slice], latency_ns: Nanos(1_000), ..Spike::default() };
            (spike.victim.pid, spike.victim.prio) = (VICTIM, prio);
            let found = rank_all(std::slice::from_mut(&mut spike), &RunContext::of_machine(&Host::default()));
            let [culprit] = &found.culprits[..] else { panic!("{:?}", found.culprits) };
            let slice = &spike.slices[0];
            assert!(culprit.rule.is_some() && !culprit.remedy.is_empty(), "{slice:?}");
            if matches!(slice.kind.known(), Some(SliceKind::Own | SliceKind::Preempted | SliceKind::Blocked))
            {
                assert_eq!(culprit.name, fallback_name(slice));
            }
            assert_eq!(place_of(&found.culprits, slice), Some(0));
        }
    }
}

#[test]
fn links_lead_both_ways() {
    for rule in ALL {
        for knob in rule.cured_by {
            assert!(super::cured_by(knob).iter().any(|back| back.id == rule.id));
        }
    }
    assert!(knobs::ALL.iter().any(|knob| !super::cured_by(knob.id).is_empty()));
}
