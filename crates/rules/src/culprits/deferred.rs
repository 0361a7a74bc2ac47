//! Culprits whose judgement has to wait for the end of the run, kept separately until then.

use std::collections::BTreeMap;

use super::group::CulpritGroup;
use super::names;
use super::naming::{POOLED, group_name};
use super::rule::CulpritRule;
use super::stopped_from_outside;
use super::turns::SpikeSlice;
use model::keyword::Word;
use model::slice::SliceKind;
use trace::timeline;

/// The most culprits that are distinguished in what is judged only when the run is over.
const MAX_GROUPS: usize = 16;

/// What makes a culprit: the rule's id or nothing, the kind where no rule knows it, the name.
pub type GroupKey = (&'static str, Word<SliceKind>, String);

/// Culprits by what makes them.
pub type GroupMap = BTreeMap<GroupKey, CulpritGroup>;

/// The rule that knows a slice, and what matched.
pub type Match = Option<(&'static CulpritRule, String)>;

/// Time of a place that is not certain to be caused by it.
#[derive(Default)]
pub struct Deferred {
    total: i64,
    /// The part of it that is a stop from outside if the place did not cause it.
    stopped: i64,
    groups: GroupMap,
    stops: GroupMap,
}

impl Deferred {
    /// Adds a slice of a spike; how many culprits found no room.
    pub fn add(&mut self, of: &SpikeSlice<'_>, found: Match) -> u64 {
        let ns = of.slice.ns.0.max(0);
        self.total = self.total.saturating_add(ns);
        if of.slice.contested {
            self.stopped = self.stopped.saturating_add(ns);
            let stop = timeline::contested_as_stop(of.slice);
            let evidence = stop.evidence.clone();
            let stop = SpikeSlice::alone(of.number, of.cpu, &stop, of.end);
            count_slice(&mut self.stops, MAX_GROUPS, &stop, Some((&stopped_from_outside::CULPRIT, evidence)));
        }
        count_slice(&mut self.groups, MAX_GROUPS, of, found)
    }

    /// The time in ns that stays unexplained if the place is not its cause.
    pub fn unexplained(&self) -> i64 {
        self.total.saturating_sub(self.stopped)
    }

    /// Counts it after all, for the place or as a stop.
    pub fn merge_into(&self, groups: &mut GroupMap, place: bool) {
        for (key, group) in if place { &self.groups } else { &self.stops } {
            match groups.get_mut(key) {
                Some(there) => there.merge(group),
                None => drop(groups.insert(key.clone(), group.clone())),
            }
        }
    }
}

/// Counts a slice of a spike; how many culprits found no room.
pub fn count_slice(groups: &mut GroupMap, most: usize, of: &SpikeSlice<'_>, found: Match) -> u64 {
    let slice = of.slice;
    let key = match &found {
        Some((rule, _)) => (rule.id, Word::default(), group_name(rule.grouping, slice)),
        None => ("", slice.kind.clone(), names::fallback_name(slice)),
    };
    let (rule, evidence) = found.unzip();
    let room = groups.len() < most || groups.contains_key(&key);
    let key = if room { key } else { pool(key, &slice.kind) };
    let group = groups.entry(key).or_insert_with(|| CulpritGroup::new(rule));
    group.add(of, evidence.unwrap_or_else(|| slice.evidence.clone()));
    u64::from(!room)
}

/// The key of those that found no room.
fn pool(key: GroupKey, kind: &Word<SliceKind>) -> GroupKey {
    match key.0 {
        // A bundle's kinds are external text: unknown kinds share a pool.
        "" if kind.known().is_some() => ("", kind.clone(), POOLED.to_owned()),
        "" => ("", Word::default(), POOLED.to_owned()),
        rule => (rule, Word::default(), POOLED.to_owned()),
    }
}
