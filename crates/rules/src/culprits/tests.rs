//! Checks for every culprit rule: its record is complete, and it behaves as its examples show.

use super::context::SliceContext;
use std::collections::BTreeSet;

use super::ALL;
use super::fixture::Scene;
use super::rule::CulpritRule;
use crate::knobs;

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
        // A rule on the kind alone can only be missed by another kind.
        assert!(rule.fallback || of_its_kind(rule.examples.silent), "{} is no near miss", rule.id);
        assert_ne!(rule.examples.fires, rule.examples.silent);
    }
}

#[test]
fn no_two_rules_know_the_same_slice_equally_well() {
    for rule in ALL {
        let scene = Scene::of(rule.examples.fires);
        let (run, patterns) = (scene.run(), super::patterns::Patterns::default());
        for (spike, slice) in
            scene.spikes.iter().flat_map(|spike| spike.slices.iter().map(move |slice| (spike, slice)))
        {
            let context = SliceContext { spike, slice, run: &run, patterns: &patterns };
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

#[test]
fn links_lead_both_ways() {
    for rule in ALL {
        for knob in rule.cured_by {
            assert!(super::cured_by(knob).iter().any(|back| back.id == rule.id));
        }
    }
    assert!(knobs::ALL.iter().any(|knob| !super::cured_by(knob.id).is_empty()));
}
