//! One culprit while it is counted: its time, its spikes, its functions and its matches, each
//! bounded.

use std::collections::BTreeMap;

use super::cpu_time::{TakenFrom, TimeTaken};
use super::naming::full_name;
use super::patterns::{Recurrence, recurrence};
use super::rule::CulpritRule;
use super::spike_set::SpikeSet;
use super::turns::{SpikeSlice, ThreadTurns};
use super::{names, subsystems};
use model::keyword::Word;
use model::run;
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::text::several;
use model::units::Nanos;

/// Limit of functions and of observations that are counted separately; the rest is pooled.
const MAX_KEYS: usize = 32;
/// Observations in the ranking.
const MAX_EVIDENCE: usize = 5;
/// Functions in the ranking.
const MAX_FUNCTIONS: usize = 8;
/// Limit of times of spikes for the search of a period.
const MAX_TIMES: usize = 1000;
/// The minimum number of spikes for a reported period.
const MIN_TIMES_FOR_PERIOD: usize = 8;

/// Time taken by one culprit so far.
#[derive(Clone)]
pub struct CulpritGroup {
    rule: Option<&'static CulpritRule>,
    total: i64,
    /// Part of the total in cycles that were due during an earlier one.
    inherited: i64,
    /// Part of the total whose length is estimated.
    estimated: i64,
    cpu_time: TimeTaken,
    spikes: SpikeSet,
    kinds: BTreeMap<Word<SliceKind>, i64>,
    functions: BTreeMap<String, (i64, u64)>,
    /// Slices whose function had no room among these.
    other_functions: u64,
    modules: BTreeMap<String, String>,
    evidence: BTreeMap<String, u64>,
    other_evidence: u64,
    /// End times of its spikes, with their numbers: the first `MAX_TIMES`.
    times: Vec<(u64, Nanos)>,
    turns: ThreadTurns,
}

impl CulpritGroup {
    pub fn new(rule: Option<&'static CulpritRule>) -> CulpritGroup {
        CulpritGroup {
            rule,
            total: 0,
            inherited: 0,
            estimated: 0,
            cpu_time: TimeTaken::default(),
            spikes: SpikeSet::default(),
            kinds: BTreeMap::new(),
            functions: BTreeMap::new(),
            other_functions: 0,
            modules: BTreeMap::new(),
            evidence: BTreeMap::new(),
            other_evidence: 0,
            times: Vec::new(),
            turns: ThreadTurns::default(),
        }
    }

    pub fn total(&self) -> i64 {
        self.total
    }

    /// Kind with most of its time.
    pub fn kind(&self) -> Word<SliceKind> {
        self.kinds.iter().max_by_key(|kind| kind.1).map(|kind| kind.0.clone()).unwrap_or_default()
    }

    /// Adds a slice of a spike.
    pub fn add(&mut self, of: &SpikeSlice<'_>, evidence: String) {
        let slice = of.slice;
        let ns = slice.ns.0.max(0);
        self.total = self.total.saturating_add(ns);
        if slice.overrun_of_ns.is_some() {
            self.inherited = self.inherited.saturating_add(ns);
        }
        if slice.estimated {
            self.estimated = self.estimated.saturating_add(ns);
        }
        if self.spikes.add(of.number) && self.times.len() < MAX_TIMES {
            self.times.push((of.number, of.end));
        }
        self.cpu_time.add(TakenFrom::of(of.cpu, slice), slice.start_ns, Nanos(ns));
        self.turns.add(of);
        if room(&self.kinds, &slice.kind) {
            let took = self.kinds.entry(slice.kind.clone()).or_default();
            *took = took.saturating_add(slice.ns.0.max(0));
        }
        let function = names::function_with_module(&slice.who);
        if function.is_empty() {
        } else if room(&self.functions, &function) {
            let took = self.functions.entry(function.clone()).or_default();
            *took = (took.0.saturating_add(slice.ns.0.max(0)), took.1 + 1);
            if let Some(subsystem) = subsystems::of(&slice.who.function, &slice.who.module) {
                self.modules.insert(function, subsystem.to_owned());
            }
        } else {
            self.other_functions += 1;
        }
        if evidence.is_empty() {
        } else if room(&self.evidence, &evidence) {
            *self.evidence.entry(evidence).or_default() += 1;
        } else {
            self.other_evidence += 1;
        }
    }

    /// Merges another group. A spike in both counts once.
    pub fn merge(&mut self, other: &CulpritGroup) {
        self.total = self.total.saturating_add(other.total);
        self.inherited = self.inherited.saturating_add(other.inherited);
        self.estimated = self.estimated.saturating_add(other.estimated);
        self.cpu_time.merge(&other.cpu_time);
        self.spikes.merge(&other.spikes);
        for (name, ns) in &other.kinds {
            if room(&self.kinds, name) {
                let took = self.kinds.entry(name.clone()).or_default();
                *took = took.saturating_add(*ns);
            }
        }
        for (name, (ns, slices)) in &other.functions {
            if room(&self.functions, name) {
                let took = self.functions.entry(name.clone()).or_default();
                *took = (took.0.saturating_add(*ns), took.1 + slices);
            } else {
                self.other_functions += slices;
            }
        }
        self.other_functions += other.other_functions;
        self.modules.extend(other.modules.iter().map(|(name, of)| (name.clone(), of.clone())));
        self.other_evidence += other.other_evidence;
        for (text, count) in &other.evidence {
            if room(&self.evidence, text) {
                *self.evidence.entry(text.clone()).or_default() += count;
            } else {
                self.other_evidence += count;
            }
        }
        self.turns.merge(&other.turns);
        self.times.extend(&other.times);
        self.times.compact_sort_by_key(|time| time.0);
        self.times.dedup_by_key(|time| time.0);
        self.times.truncate(MAX_TIMES);
    }

    /// The culprit for the bundle; `apart` distinguishes it from others of its rule, `all` is the
    /// number of the run's spikes; with a resolution of times, a period is searched for.
    pub fn culprit(&self, apart: &str, share: f64, all: u64, resolution: Option<Nanos>) -> run::Culprit {
        let rule = self.rule;
        let mut functions: Vec<(&String, &(i64, u64))> = self.functions.iter().collect();
        functions.compact_sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let unlisted = functions.iter().skip(MAX_FUNCTIONS).map(|seen| seen.1.1).sum::<u64>();
        let functions: Vec<String> =
            functions.into_iter().take(MAX_FUNCTIONS).map(|(name, _)| name.clone()).collect();
        let ((threads, threads_seen), turns) = (self.turns.threads(), self.turns.summary());
        run::Culprit {
            rule: rule.map(|rule| rule.id.to_owned()),
            name: full_name(rule, apart),
            kind: self.kind(),
            spikes: self.spikes.count().min(all),
            total_ns: Nanos(self.total),
            cpu_time_ns: Some(self.cpu_time.total().min(Nanos(self.total))),
            inherited_ns: Nanos(self.inherited),
            estimated_ns: Nanos(self.estimated),
            share,
            evidence: self.observations(&functions, resolution),
            functions,
            functions_unlisted: self.other_functions + unlisted,
            knobs: rule.map_or(&[][..], |rule| rule.cured_by).iter().map(|id| (*id).to_owned()).collect(),
            remedy: rule.map_or_else(|| without_rule(&self.kind()), |rule| rule.remedy).to_owned(),
            provoke: rule.map_or(String::new(), |rule| rule.provoke.to_owned()),
            threads,
            threads_seen,
            turns,
        }
    }

    /// Matches, most frequent first, and patterns over all its spikes.
    fn observations(&self, functions: &[String], resolution: Option<Nanos>) -> Vec<String> {
        let mut seen: Vec<(&String, u64)> =
            self.evidence.iter().map(|(text, &count)| (text, count)).collect();
        seen.compact_sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let others = self.other_evidence + seen.iter().skip(MAX_EVIDENCE).map(|seen| seen.1).sum::<u64>();
        let counted = |(text, count): &(&String, u64)| match count {
            1 => (*text).clone(),
            _ => format!("{text} ({count} times)"),
        };
        let mut lines: Vec<String> = seen.iter().take(MAX_EVIDENCE).map(counted).collect();
        if others > 0 {
            lines.push(several(others, "other observation", "other observations"));
        }
        if let Some((function, subsystem)) =
            functions.iter().find_map(|name| self.modules.get_key_value(name))
        {
            lines.push(format!("{function} belongs to {subsystem}"));
        }
        // Threads that appear and end have no common clock; for one thread the distances of its
        // turns show more than the ends of spikes.
        let turns = self.turns.summary();
        let has_own = turns.is_some_and(|turns| turns.every_ns.is_some()) || self.turns.threads().1 > 1;
        let enough = self.times.len() >= MIN_TIMES_FOR_PERIOD && !has_own;
        let period = resolution.filter(|_| enough).and_then(|resolution| {
            let times: Vec<Nanos> = self.times.iter().map(|time| time.1).collect();
            recurrence(&times, resolution)
        });
        let cut = self.spikes.count() > self.times.len() as u64;
        let period = period.map(|period| Recurrence { cut: cut || period.cut, ..period });
        lines.extend(period.filter(Recurrence::covers_most).map(|period| period.sentence()));
        lines
    }
}

/// Next step for time without a rule, so that the user is not left with only a name.
fn without_rule(kind: &Word<SliceKind>) -> &'static str {
    use SliceKind::{
        Blocked, Own, Preempted, ReturnToUser, Switch, Syscall, TimerIrq, TimerSoftirq, Unexplained,
    };
    match kind.known() {
        Some(Switch | ReturnToUser | TimerIrq | TimerSoftirq) => {
            "look at a typical spike: this is a part of every wake-up, and takes longer here than elsewhere"
        }
        Some(Own | Preempted | Blocked | Syscall | Unexplained) => "",
        _ => "look at the evidence and the stack of a typical spike: no rule matches it",
    }
}

fn room<K: Ord, V>(known: &BTreeMap<K, V>, key: &K) -> bool {
    known.len() < MAX_KEYS || known.contains_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Cpu;

    #[test]
    fn nobody_is_named_without_a_next_step() {
        let remedy = |kind: &str| {
            let mut group = CulpritGroup::new(None);
            let slice = run::Slice { kind: kind.into(), ns: Nanos(1000), ..run::Slice::default() };
            group.add(&SpikeSlice::alone(1, Cpu(0), &slice, Nanos(0)), String::new());
            group.culprit("who", 1.0, 1, None).remedy
        };
        assert!(remedy("timer-irq").contains("every wake-up"));
        assert!(remedy("thread").contains("typical spike") && remedy("novel").contains("typical spike"));
    }

    #[test]
    fn a_period_has_the_number_of_spikes_searched() {
        let evidence = |spikes: u64| {
            let mut group = CulpritGroup::new(None);
            let slice = run::Slice { kind: "thread".into(), ns: Nanos(1000), ..run::Slice::default() };
            for spike in 0..spikes {
                let jitter = spike as i64 * 7919 % 20_000;
                let end = Nanos(spike as i64 * 1_300_000_000 + jitter);
                group.add(&SpikeSlice::alone(spike + 1, Cpu(0), &slice, end), String::new());
            }
            group.culprit("hog", 1.0, spikes, Some(Nanos::MILLI)).evidence
        };
        assert_eq!(evidence(40), ["40 of 40 recur every 1.300000 s"], "to its error's first digit");
        let many = evidence(1_200);
        assert!(many[0].starts_with("1000 of the first 1000 recur every 1.300000"), "{many:?}");
    }
}
