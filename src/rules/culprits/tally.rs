//! From explained spikes to culprits, ranked by the time they took: one spike at a time, in bounded memory.
//!
//! Everything is accounted for: the culprits' times, the small change that is not worth a line, and what nothing
//! explains sum to the latency of all spikes, as each spike's slices do.

use std::collections::BTreeMap;

use super::group::Group;
use super::patterns::{self, Mark, Patterns};
use super::{About, Culprit, Sight, known, who};
use crate::bundle::run::{self, Spike};
use crate::units::Nanos;

/// At most so many culprits are told apart; those beyond are pooled by kind.
pub const MOST_GROUPS: usize = 512;
/// The work that every wake-up has: such slices are a culprit only from this share of the latency on.
const BOOKKEEPING: &[&str] = &["switch", "return-to-user", "timer-irq", "timer-softirq"];
const WORTH_A_LINE: f64 = 0.02;
const POOLED: &str = "many others";

/// What makes a culprit: the rule's id or nothing, the kind where no rule knows it, the name.
type Key = (&'static str, String, String);

/// Counts spikes by what took their time.
#[derive(Default)]
pub struct Tally {
    groups: BTreeMap<Key, Group>,
    spikes: u64,
    latency: i64,
    unexplained: i64,
    /// Spikes with unexplained time, the largest at least, for what is seen only over many.
    outside: Vec<Mark>,
    pooled: u64,
}

/// The culprits of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// By the time they took, largest first.
    pub culprits: Vec<run::Culprit>,
    /// Latency of all spikes: the culprits' times, `minor` and `unexplained` sum to it where the spikes' slices do.
    pub latency: Nanos,
    /// What nothing explains and no rule names.
    pub unexplained: Nanos,
    /// Switches and timer interrupts that are not worth a line.
    pub minor: Nanos,
    /// Slices whose culprit was pooled with others, because there were too many to tell apart.
    pub pooled: u64,
}

impl Tally {
    /// Gives the spike's slices their rules, and counts them.
    pub fn add(&mut self, spike: &mut Spike, host: &run::Host) {
        let (about, all) = (About::machine(host), Patterns::default());
        let told = |slice| known(&Sight { spike, slice, about: &about, all: &all });
        let found: Vec<Option<(&'static Culprit, String)>> = spike.slices.iter().map(told).collect();
        self.spikes += 1;
        self.latency = self.latency.saturating_add(spike.latency_ns.0.max(0));
        for (slice, found) in spike.slices.iter_mut().zip(found) {
            slice.rule = found.as_ref().map(|(rule, _)| rule.id.to_owned());
            self.count(slice, found, spike.actual_ns);
        }
        self.note_unexplained(spike);
    }

    fn count(&mut self, slice: &run::Slice, found: Option<(&'static Culprit, String)>, at: Nanos) {
        let key = match &found {
            Some((rule, _)) => (rule.id, String::new(), who::apart(rule.apart, slice)),
            None => ("", slice.kind.clone(), who::most_telling(slice)),
        };
        let (rule, evidence) = found.unzip();
        let key = self.placed(key, &slice.kind);
        let group = self.groups.entry(key).or_insert_with(|| Group::new(rule));
        group.add(self.spikes, slice, evidence.unwrap_or_else(|| slice.evidence.clone()), at);
    }

    /// The key itself while there is room, else that of the pool.
    fn placed(&mut self, key: Key, kind: &str) -> Key {
        if self.groups.len() < MOST_GROUPS || self.groups.contains_key(&key) {
            return key;
        }
        self.pooled += 1;
        match key.0 {
            // A bundle's kinds are words from outside: what is no kind has no pool of its own.
            "" if super::is_kind(kind) => ("", kind.to_owned(), POOLED.to_owned()),
            "" => ("", String::new(), POOLED.to_owned()),
            rule => (rule, String::new(), POOLED.to_owned()),
        }
    }

    fn note_unexplained(&mut self, spike: &Spike) {
        if spike.unexplained_ns.0 <= 0 {
            return;
        }
        self.unexplained = self.unexplained.saturating_add(spike.unexplained_ns.0);
        let (from, to, unexplained) = (spike.expected_ns, spike.actual_ns, spike.unexplained_ns);
        self.outside.push(Mark { cpu: spike.cpu, from, to, unexplained });
        if self.outside.len() >= 2 * patterns::MOST {
            self.keep_largest();
        }
    }

    fn keep_largest(&mut self) {
        self.outside.sort_by_key(|mark| std::cmp::Reverse(mark.unexplained));
        self.outside.truncate(patterns::MOST);
    }

    /// The culprits as of now.
    pub fn ranked(&self, about: &About) -> Ranked {
        let mut groups = self.groups.clone();
        let named = self.name_unexplained(about, &mut groups);
        let mut minor = 0i64;
        let share = |ns: i64| if self.latency > 0 { ns as f64 / self.latency as f64 } else { 0.0 };
        let mut culprits = Vec::new();
        for ((_, _, name), group) in &groups {
            let little = BOOKKEEPING.contains(&group.kind());
            if little && share(group.total()) < WORTH_A_LINE {
                minor = minor.saturating_add(group.total());
            } else {
                culprits.push(group.told(name, share(group.total()), about.interval));
            }
        }
        culprits.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        Ranked {
            culprits,
            latency: Nanos(self.latency),
            unexplained: Nanos(self.unexplained.saturating_sub(named)),
            minor: Nanos(minor),
            pooled: self.pooled,
        }
    }

    /// Adds what rules name of the unexplained time; how much that is.
    fn name_unexplained(&self, about: &About, groups: &mut BTreeMap<Key, Group>) -> i64 {
        let mut marks = self.outside.clone();
        marks.sort_by_key(|mark| std::cmp::Reverse(mark.unexplained));
        marks.truncate(patterns::MOST);
        let all = Patterns::of(&marks, about.cpus.len(), about.interval.unwrap_or(Nanos::MILLI));
        let mut named = 0i64;
        for (number, mark) in (self.spikes..).skip(1).zip(&marks) {
            let (spike, slice) = as_slice(mark);
            let Some((rule, evidence)) = known(&Sight { spike: &spike, slice: &slice, about, all: &all })
            else {
                continue;
            };
            named = named.saturating_add(mark.unexplained.0);
            let group = groups
                .entry((rule.id, String::new(), String::new()))
                .or_insert_with(|| Group::new(Some(rule)));
            group.add(number, &slice, evidence, mark.to);
        }
        named
    }
}

/// Unexplained time as rules see it.
fn as_slice(mark: &Mark) -> (Spike, run::Slice) {
    let spike = Spike {
        cpu: mark.cpu,
        expected_ns: mark.from,
        actual_ns: mark.to,
        latency_ns: Nanos(mark.to.0.saturating_sub(mark.from.0)),
        unexplained_ns: mark.unexplained,
        ..Spike::default()
    };
    let slice = run::Slice {
        kind: super::UNEXPLAINED.to_owned(),
        start_ns: mark.from,
        ns: mark.unexplained,
        ..run::Slice::default()
    };
    (spike, slice)
}

/// Gives all slices of all spikes their rules, and ranks what took their time.
pub fn blame(spikes: &mut [Spike], about: &About) -> Ranked {
    let mut tally = Tally::default();
    spikes.iter_mut().for_each(|spike| tally.add(spike, about.host));
    tally.ranked(about)
}
