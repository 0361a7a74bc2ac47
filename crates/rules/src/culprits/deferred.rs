//! Culprits that can only be judged at the end of the run, kept separately until then.

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

/// Limit of distinct culprits among those that are judged only at the end of the run.
const MAX_GROUPS: usize = 16;

/// Key of a culprit: the rule's ID or `""`, the kind if no rule matched, the name.
pub type GroupKey = (&'static str, Word<SliceKind>, String);

/// Culprits by key.
pub type GroupMap = BTreeMap<GroupKey, CulpritGroup>;

/// The rule that matches a slice, and the description of the match.
pub type Match = Option<(&'static CulpritRule, String)>;

/// Time attributed to a place that may not be its cause.
#[derive(Default)]
pub struct Deferred {
    total: i64,
    /// Part that is a stop from outside if the place is not its cause.
    stopped: i64,
    groups: GroupMap,
    stops: GroupMap,
}

impl Deferred {
    /// Adds a slice of a spike; returns the number of culprits without room.
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

    /// Time in ns that stays unexplained if the place is not its cause.
    pub fn unexplained(&self) -> i64 {
        self.total.saturating_sub(self.stopped)
    }

    /// Merges it into `groups` after all, for the place or as a stop.
    pub fn merge_into(&self, groups: &mut GroupMap, place: bool) {
        for (key, group) in if place { &self.groups } else { &self.stops } {
            match groups.get_mut(key) {
                Some(there) => there.merge(group),
                None => drop(groups.insert(key.clone(), group.clone())),
            }
        }
    }
}

/// Counts a slice of a spike; returns the number of culprits without room.
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

/// Key of the pool for culprits without room.
fn pool(key: GroupKey, kind: &Word<SliceKind>) -> GroupKey {
    match key.0 {
        // A bundle's kinds are external text: unknown kinds share a pool.
        "" if kind.known().is_some() => ("", kind.clone(), POOLED.to_owned()),
        "" => ("", Word::default(), POOLED.to_owned()),
        rule => (rule, Word::default(), POOLED.to_owned()),
    }
}
