//! From explained spikes to culprits, ranked by the lateness they caused: one spike at a time, in
//! bounded memory.
//!
//! All time is accounted for: the culprits' times, minor contributions below the reporting limit,
//! and unexplained time sum to the latency of all spikes, as each spike's slices do.

use std::collections::BTreeMap;

use super::advice;
use super::classify;
use super::context::{RunContext, SliceContext, StealInterval};
use super::deferred::{Deferred, GroupMap, Match, count_slice};
use super::group::CulpritGroup;
use super::naming::POOLED;
use super::patterns::{self, Patterns, SpikeSpan};
use super::stopped_from_outside;
use super::turns::{SpikeSlice, slices_of};
use model::keyword::Word;
use model::run::{self, Spike};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::Nanos;
use trace::timeline;

/// Limit of distinct culprits; further ones are pooled by kind.
pub const MAX_GROUPS: usize = 512;
/// Kinds of work in every wake-up: such slices count as a culprit only from this share of the
/// latency on.
const BOOKKEEPING: &[SliceKind] =
    &[SliceKind::Switch, SliceKind::ReturnToUser, SliceKind::TimerIrq, SliceKind::TimerSoftirq];
const MIN_BOOKKEEPING_SHARE: f64 = 0.02;
/// Share of the latency below which anything counts as a minor contribution.
const MIN_SHARE: f64 = 0.000_1;
/// Number of culprits, by time taken, that are searched for a period.
const MAX_PERIOD_SEARCHES: usize = 16;

/// Sums the time of spikes by cause.
#[derive(Default)]
pub struct SpikeTally {
    groups: GroupMap,
    spikes: u64,
    latency: i64,
    unexplained: i64,
    /// The largest spikes with unexplained time, for patterns that show only over many.
    unexplained_spikes: Vec<SpikeSpan>,
    pooled: u64,
    /// Spikes whose unexplained time is counted but not judged, because that of many others was
    /// larger.
    unjudged: u64,
    /// Evidence that is collected over all spikes of the run.
    corroboration: timeline::Corroboration,
    deferred: BTreeMap<timeline::BlamedPlace, Deferred>,
    /// Spikes with deferred time, the largest of them.
    deferred_spikes: Vec<(timeline::BlamedPlace, SpikeSpan)>,
}

/// The culprits of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// Culprits by the lateness that they caused, largest first.
    pub culprits: Vec<run::Culprit>,
    /// Latency of all spikes: the culprits' times, `minor` and `unexplained` sum to it if the
    /// slices of each spike sum to its latency.
    pub latency: Nanos,
    /// Time without an explanation that no counter shows to be a stop from outside.
    pub unexplained: Nanos,
    /// Switches, timer interrupts and minor contributions, below the reporting limit.
    pub minor: Nanos,
    /// Slices whose culprit was pooled with others, because there were too many culprits.
    pub pooled: u64,
    /// Spikes whose unexplained time was not judged by any rule, because that of many others was
    /// larger.
    pub unjudged: u64,
}

impl Ranking {
    /// Stores the culprits in the run, with the totals that their shares refer to.
    pub fn put_into(self, run: &mut run::Run) {
        if let Some(account) = &mut run.recorder {
            (account.latency_ns, account.unexplained_ns) = (self.latency, self.unexplained);
            (account.slices_pooled, account.spikes_unjudged) = (self.pooled, self.unjudged);
        }
        let before = std::mem::replace(&mut run.culprits, self.culprits);
        keep_found(&before, &mut run.culprits);
        advice::renew(run);
    }
}

/// Keeps the facts from /proc about threads when culprits are ranked again.
fn keep_found(before: &[run::Culprit], culprits: &mut [run::Culprit]) {
    let known = before.iter().flat_map(|culprit| &culprit.threads);
    let known: BTreeMap<(i32, &str), _> =
        known.map(|thread| ((thread.tid, thread.comm.as_str()), &thread.found)).collect();
    for thread in culprits.iter_mut().flat_map(|culprit| &mut culprit.threads) {
        thread.found = known.get(&(thread.tid, thread.comm.as_str())).and_then(|found| (*found).clone());
    }
}

impl SpikeTally {
    /// Matches the spike's slices with rules, and counts them.
    pub fn add(&mut self, spike: &mut Spike, host: &run::Host) {
        let run = RunContext::of_machine(host);
        let rule_of = |slice| classify(&SliceContext { spike, slice, run: &run });
        let found: Vec<Match> = spike.slices.iter().map(rule_of).collect();
        self.spikes += 1;
        self.corroboration.note(host, spike);
        self.latency = self.latency.saturating_add(spike.latency_ns.0.max(0));
        for (slice, found) in spike.slices.iter_mut().zip(&found) {
            slice.rule = found.as_ref().map(|(rule, _)| rule.id.to_owned());
        }
        for (of, found) in slices_of(self.spikes, spike).iter().zip(found) {
            let slice = of.slice;
            let span = SpikeSpan {
                cpu: spike.cpu,
                from: spike.expected_ns,
                to: spike.actual_ns,
                unexplained: Nanos(if slice.contested { 0 } else { slice.ns.0.max(0) }),
                stopped: Nanos(if slice.contested { slice.ns.0.max(0) } else { 0 }),
            };
            match timeline::needs_corroboration(host, slice) {
                None => self.count(of, found),
                Some(place) => self.defer(place, of, found, span),
            }
        }
        self.note_unexplained(spike);
    }

    /// Evidence collected over all spikes.
    pub fn corroboration(&self) -> &timeline::Corroboration {
        &self.corroboration
    }

    /// Counts separately a slice that can only be judged at the end of the run.
    fn defer(&mut self, place: timeline::BlamedPlace, of: &SpikeSlice<'_>, found: Match, span: SpikeSpan) {
        if self.deferred.len() >= MAX_GROUPS && !self.deferred.contains_key(&place) {
            let ns = span.unexplained.0.saturating_add(span.stopped.0);
            self.unexplained = self.unexplained.saturating_add(ns);
            self.pooled += 1;
            return;
        }
        // A spike has few slices of one place; a malformed one may have any number.
        match self.deferred_spikes.last_mut() {
            Some((last, same))
                if *last == place && (same.cpu, same.from, same.to) == (span.cpu, span.from, span.to) =>
            {
                same.unexplained = Nanos(same.unexplained.0.saturating_add(span.unexplained.0));
                same.stopped = Nanos(same.stopped.0.saturating_add(span.stopped.0));
            }
            _ => self.deferred_spikes.push((place.clone(), span)),
        }
        if self.deferred_spikes.len() >= 2 * patterns::MAX_SPIKES {
            self.deferred_spikes.compact_sort_by_key(|(_, span)| std::cmp::Reverse(span.unexplained));
            self.unjudged += self.deferred_spikes.len().saturating_sub(patterns::MAX_SPIKES) as u64;
            self.deferred_spikes.truncate(patterns::MAX_SPIKES);
        }
        let deferred = self.deferred.entry(place).or_default();
        self.pooled += deferred.add(of, found);
    }

    /// Time of places that the run does not corroborate, by spike.
    fn rejected(&self) -> impl Iterator<Item = &SpikeSpan> {
        self.deferred_spikes
            .iter()
            .filter(|(place, _)| !self.corroboration.believe(place))
            .map(|(_, span)| span)
    }

    fn count(&mut self, of: &SpikeSlice<'_>, found: Match) {
        self.pooled += count_slice(&mut self.groups, MAX_GROUPS, of, found);
    }

    fn note_unexplained(&mut self, spike: &Spike) {
        let unexplained = Nanos(spike.unexplained_ns.0.max(0));
        if unexplained.0 == 0 && spike.stopped_ns.0 <= 0 {
            return;
        }
        self.unexplained = self.unexplained.saturating_add(unexplained.0);
        let (from, to, stopped) = (spike.expected_ns, spike.actual_ns, spike.stopped_ns);
        self.unexplained_spikes.push(SpikeSpan { cpu: spike.cpu, from, to, unexplained, stopped });
        if self.unexplained_spikes.len() >= 2 * patterns::MAX_SPIKES {
            self.keep_largest();
        }
    }

    fn keep_largest(&mut self) {
        self.unexplained_spikes.compact_sort_by_key(|span| std::cmp::Reverse(span.unexplained));
        self.unjudged += self.unexplained_spikes.len().saturating_sub(patterns::MAX_SPIKES) as u64;
        self.unexplained_spikes.truncate(patterns::MAX_SPIKES);
    }

    /// Drops steal that is near no spike with time that is or may become unexplained, and ended
    /// before `recent`.
    pub fn retain_steal_near_spikes(&self, steal: &mut Vec<StealInterval>, recent: Nanos) {
        let deferred_spikes = self.deferred_spikes.iter().map(|(_, span)| span);
        super::steal::retain_near(steal, self.unexplained_spikes.iter().chain(deferred_spikes), recent);
    }

    /// Culprits of a finished run.
    pub fn final_ranking(&self, run: &RunContext) -> Ranking {
        self.rank(run, MAX_PERIOD_SEARCHES)
    }

    /// Culprits so far, without the search for periods, which takes time.
    pub fn interim_ranking(&self, run: &RunContext) -> Ranking {
        self.rank(run, 0)
    }

    fn rank(&self, run: &RunContext, with_periods: usize) -> Ranking {
        let mut groups = self.groups.clone();
        let mut minor = 0i64;
        let mut unexplained = self.unexplained;
        for (place, deferred) in &self.deferred {
            let believed = self.corroboration.believe(place);
            deferred.merge_into(&mut groups, believed);
            if !believed {
                unexplained = unexplained.saturating_add(deferred.unexplained());
            }
        }
        let (named, unjudged) = self.name_unexplained(run, &mut groups);
        let share = |ns: i64| if self.latency > 0 { ns as f64 / self.latency as f64 } else { 0.0 };
        let mut ranked: Vec<(&String, &CulpritGroup)> = Vec::new();
        for ((_, _, name), group) in &groups {
            let least = if group.kind().known().is_some_and(|kind| BOOKKEEPING.contains(&kind)) {
                MIN_BOOKKEEPING_SHARE
            } else {
                MIN_SHARE
            };
            if share(group.total()) < least {
                minor = minor.saturating_add(group.total());
            } else {
                ranked.push((name, group));
            }
        }
        ranked.compact_sort_by_key(|(_, group)| std::cmp::Reverse(group.total()));
        let resolution = run.interval.unwrap_or(Nanos::MILLI);
        let culprit = |(place, (name, group)): (usize, &(&String, &CulpritGroup))| {
            // Pooled slices have many causes: a period of their times shows nothing.
            let one = place < with_periods && name.as_str() != POOLED;
            group.culprit(name, share(group.total()), self.spikes, one.then_some(resolution))
        };
        let mut culprits: Vec<run::Culprit> = ranked.iter().enumerate().map(culprit).collect();
        culprits.compact_sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        Ranking {
            culprits,
            latency: Nanos(self.latency),
            unexplained: Nanos(unexplained.saturating_sub(named)),
            minor: Nanos(minor),
            pooled: self.pooled,
            unjudged,
        }
    }

    /// Adds the unexplained time that rules can name; returns its amount, and the number of spikes
    /// that were not judged.
    fn name_unexplained(&self, run: &RunContext, groups: &mut GroupMap) -> (i64, u64) {
        let mut spans = self.unexplained_spikes.clone();
        for deferred in self.rejected() {
            let same = |span: &&mut SpikeSpan| {
                (span.cpu, span.from, span.to) == (deferred.cpu, deferred.from, deferred.to)
            };
            match spans.iter_mut().find(same) {
                Some(span) => {
                    span.unexplained = Nanos(span.unexplained.0.saturating_add(deferred.unexplained.0));
                    span.stopped = Nanos(span.stopped.0.saturating_add(deferred.stopped.0));
                }
                None => spans.push(*deferred),
            }
        }
        spans.compact_sort_by_key(|span| std::cmp::Reverse(span.unexplained));
        let beyond = spans.len().saturating_sub(patterns::MAX_SPIKES) as u64;
        let unjudged = (self.unjudged + beyond).min(self.spikes);
        spans.truncate(patterns::MAX_SPIKES);
        let all = Patterns::of(&spans, run.cpus.len(), run.interval.unwrap_or(Nanos::MILLI));
        let mut named = 0i64;
        for (number, span) in (self.spikes..).skip(1).zip(&spans) {
            let Some(evidence) = stopped_from_outside::counted_outside(span, run, &all) else { continue };
            named = named.saturating_add(span.unexplained.0);
            let rule = &stopped_from_outside::CULPRIT;
            let group = groups
                .entry((rule.id, Word::default(), String::new()))
                .or_insert_with(|| CulpritGroup::new(Some(rule)));
            let slice = run::Slice {
                kind: SliceKind::Stopped.into(),
                start_ns: span.from,
                ns: span.unexplained,
                estimated: true,
                ..run::Slice::default()
            };
            group.add(&SpikeSlice::alone(number, span.cpu, &slice, span.to), evidence);
        }
        (named, unjudged)
    }
}

/// Matches all slices of all spikes with rules, and ranks the causes.
pub fn rank_all(spikes: &mut [Spike], run: &RunContext) -> Ranking {
    let mut tally = SpikeTally::default();
    spikes.iter_mut().for_each(|spike| tally.add(spike, run.host));
    tally.final_ranking(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{Host, Slice, Who};
    use model::units::Cpu;
    use proptest::prelude::*;

    fn slice(kind: &str, ns: i64, comm: &str, prio: i32, function: &str) -> Slice {
        let who = Who { comm: comm.into(), prio, function: function.into(), ..Who::default() };
        Slice { kind: kind.into(), ns: Nanos(ns), who, ..Slice::default() }
    }

    fn spike(at: i64, slices: Vec<Slice>, unexplained: i64) -> Spike {
        let latency = slices.iter().map(|slice| slice.ns.0).sum::<i64>() + unexplained;
        Spike {
            cpu: Cpu(1),
            expected_ns: Nanos(at),
            actual_ns: Nanos(at + latency),
            latency_ns: Nanos(latency),
            unexplained_ns: Nanos(unexplained),
            victim: Who { comm: "onbeat".into(), prio: 19, ..Who::default() },
            slices,
            ..Spike::default()
        }
    }

    /// Sum of all time: culprits, minor contributions, and unexplained.
    fn whole(ranked: &Ranking) -> i64 {
        ranked.culprits.iter().map(|culprit| culprit.total_ns.0).sum::<i64>()
            + ranked.unexplained.0
            + ranked.minor.0
    }

    #[test]
    fn culprits_are_ranked_and_add_up() {
        let mut spikes: Vec<Spike> = (0..10)
            .map(|n| {
                let hog = || slice("thread", 300, "hog", 9, "");
                let section = slice("irqs-off", 500, "cat", 120, "hold");
                let switch = slice("switch", 10, "onbeat", 19, "");
                spike(n * 1_000_000, vec![section, hog(), hog(), switch], 90)
            })
            .collect();
        let host = Host::default();
        let ranked = rank_all(&mut spikes, &RunContext::of_machine(&host));
        let totals: Vec<_> =
            ranked.culprits.iter().map(|culprit| (culprit.name.as_str(), culprit.total_ns.0)).collect();
        assert_eq!(
            totals,
            [
                ("a real-time thread that runs first: hog", 6000),
                ("a section with interrupts off: hold", 5000)
            ]
        );
        assert_eq!((ranked.culprits[0].spikes, ranked.culprits[0].kind.as_str()), (10, "thread"));
        assert!((ranked.culprits[0].share - 0.5).abs() < 1e-12);
        assert_eq!(
            ranked.culprits[0].evidence[0],
            "hog, real-time priority 90 ran before onbeat, real-time priority 80 (20 times)"
        );
        assert_eq!(ranked.culprits[1].functions, ["hold"]);
        assert_eq!((ranked.minor.0, ranked.unexplained.0, whole(&ranked)), (100, 900, 12_000));
        assert_eq!(spikes[3].slices[0].rule.as_deref(), Some("irqs-off-section"));
        assert_eq!(spikes[3].slices[3].rule, None);
    }

    #[test]
    fn a_slice_without_a_rule_is_ranked_by_its_name() {
        let nmi = slice("nmi", 700, "", 0, "ghes_notify_nmi");
        let unknown = slice("thread", 200, "low", 30, "");
        let ranked =
            rank_all(&mut [spike(0, vec![nmi, unknown], 0)], &RunContext::of_machine(&Host::default()));
        let names: Vec<_> = ranked
            .culprits
            .iter()
            .map(|culprit| (culprit.rule.clone(), culprit.name.as_str(), culprit.kind.as_str()))
            .collect();
        assert_eq!(names, [(None, "ghes_notify_nmi", "nmi"), (None, "low", "thread")]);
    }

    #[test]
    fn in_a_virtual_machine_a_function_is_named_from_the_third_spike_on() {
        let host = Host { virtualization: "kvm".into(), ..Host::default() };
        let of = |count: i64| {
            let off = || slice("irqs-off", 300, "cat", 120, "hold");
            let mut spikes: Vec<Spike> =
                (0..count).map(|n| spike(n * 1_000_000, vec![off(), off()], 90)).collect();
            let ranked = rank_all(&mut spikes, &RunContext::of_machine(&host));
            assert_eq!(whole(&ranked), 690 * count);
            let named = ranked
                .culprits
                .iter()
                .map(|culprit| (culprit.spikes, culprit.total_ns.0))
                .collect::<Vec<_>>();
            (named, ranked.unexplained.0)
        };
        assert_eq!(of(2), (vec![], 1380));
        assert_eq!(of(3), (vec![(3, 1800)], 270));
        assert_eq!(of(5), (vec![(5, 3000)], 450));
    }

    #[test]
    fn a_spike_with_a_culprit_in_several_places_counts_once() {
        let host = Host { virtualization: "kvm".into(), ..Host::default() };
        let host = Host { preempt: "none".into(), ..host };
        let ran_on = |comm: &str, ns: i64| slice("preempt-off", ns, comm, 120, "");
        let (long, short) = (|comm: &str| ran_on(comm, 60_000), ran_on("sh", 40_000));
        let all = [long("cat"), long("dd"), short];
        // One certain and one held, two held places, and both.
        for slices in [&all[1..], &all[..2], &all[..]].map(<[Slice]>::to_vec) {
            let mut spikes: Vec<Spike> =
                (0..18).map(|n| spike(n * 1_000_000_000, slices.clone(), 0)).collect();
            let ranked = rank_all(&mut spikes, &RunContext::of_machine(&host));
            let doubted =
                slices.iter().filter(|slice| timeline::needs_corroboration(&host, slice).is_some()).count();
            assert_eq!(doubted, slices.iter().filter(|slice| slice.ns.0 == 60_000).count());
            let [one] = &ranked.culprits[..] else { panic!("{:?}", ranked.culprits) };
            assert_eq!((one.rule.as_deref(), one.spikes), (Some("unpreempted-kernel"), 18));
            let recur: Vec<_> = one.evidence.iter().filter(|text| text.contains("recur every")).collect();
            assert!(recur.len() == 1 && recur[0].starts_with("18 of 18 recur every 1.0000"), "{recur:?}");
            assert_eq!(whole(&ranked), ranked.latency.0);
        }
    }

    #[test]
    fn one_stall_that_makes_many_cycles_late_is_one_time_and_one_turn() {
        // 15 ms once a second; each cycle of a 1 ms loop that was due in that time is late.
        let milli = 1_000_000;
        let mut spikes: Vec<Spike> = (0..8 * 15)
            .map(|n| {
                let (at, due) = (n / 15 * 1_000 * milli, n % 15 * milli);
                let mut hog = slice("thread", 15 * milli - due, "hog", 9, "");
                (hog.who.pid, hog.start_ns) = (9, Nanos(at + due));
                hog.overrun_of_ns = (due > 0).then_some(Nanos(at));
                spike(at + due, vec![hog], 0)
            })
            .collect();
        let ranked = rank_all(&mut spikes, &RunContext::of_machine(&Host::default()));
        let [hog] = &ranked.culprits[..] else { panic!("{:?}", ranked.culprits) };
        assert_eq!((hog.spikes, hog.total_ns), (120, Nanos(8 * 120 * milli)));
        assert_eq!(hog.cpu_time_ns, Some(Nanos(8 * 15 * milli)));
        assert_eq!(hog.inherited_ns, Nanos(8 * 105 * milli));
        let turns = hog.turns.as_ref().expect("turns");
        assert_eq!(
            (turns.count, turns.median_ns, turns.every_ns),
            (8, Nanos(15 * milli), Some(Nanos(1_000 * milli)))
        );
        assert_eq!(whole(&ranked), ranked.latency.0);
    }

    #[test]
    fn too_many_culprits_are_pooled_and_counted() {
        let many = MAX_GROUPS as i64 + 100;
        let mut spikes: Vec<Spike> = (0..many)
            .map(|n| spike(n * 1000, vec![slice("irqs-off", 10, "cat", 120, &format!("hold_{n}"))], 0))
            .collect();
        let ranked = rank_all(&mut spikes, &RunContext::of_machine(&Host::default()));
        assert_eq!((ranked.culprits.len(), ranked.pooled), (MAX_GROUPS + 1, 100));
        assert_eq!(
            (ranked.culprits[0].name.as_str(), ranked.culprits[0].spikes),
            ("a section with interrupts off: many others", 100)
        );
        assert_eq!(whole(&ranked), 10 * many);
    }

    #[test]
    fn one_at_a_time_is_the_same_as_all_together() {
        let spikes = || {
            (0..50)
                .map(|n| spike(n * n * 1000, vec![slice("thread", n, "hog", 9, "")], n))
                .collect::<Vec<_>>()
        };
        let host = Host::default();
        let mut tally = SpikeTally::default();
        spikes().iter_mut().for_each(|spike| tally.add(spike, &host));
        assert_eq!(
            tally.final_ranking(&RunContext::of_machine(&host)),
            rank_all(&mut spikes(), &RunContext::of_machine(&host))
        );
    }

    #[test]
    fn unexplained_time_beyond_the_bound_is_still_counted() {
        let count = 3 * patterns::MAX_SPIKES as i64;
        let mut spikes: Vec<Spike> = (0..count).map(|n| spike(n * 1_000_000, Vec::new(), 100)).collect();
        let ranked = rank_all(&mut spikes, &RunContext::of_machine(&Host::default()));
        assert_eq!((ranked.unexplained.0, ranked.culprits.len()), (100 * count, 0));
    }

    proptest! {
        #[test]
        fn the_sums_hold_for_any_bundle(made in prop::collection::vec(
            (prop::collection::vec(("[a-z-]{0,12}|thread|irqs-off|ipi|timer-irq", 0i64..1_000_000,
                "[a-z/0-9]{0,6}", -2i32..140, "[a-z_]{0,5}"), 0..6), 0i64..1000), 0..20))
        {
            let mut spikes: Vec<Spike> = made.iter().enumerate().map(|(n, (slices, unexplained))| {
                let slices = slices
                    .iter()
                    .map(|(kind, ns, comm, prio, function)| slice(kind, *ns, comm, *prio, function));
                spike(n as i64 * 1_000_000, slices.collect(), *unexplained)
            }).collect();
            let ranked = rank_all(&mut spikes, &RunContext::of_machine(&Host::default()));
            prop_assert_eq!(whole(&ranked), ranked.latency.0);
            prop_assert!(ranked.culprits.windows(2).all(|pair| pair[0].total_ns >= pair[1].total_ns));
            let bounded = |of: &run::Culprit| of.evidence.len() <= 8 && of.functions.len() <= 8;
            prop_assert!(ranked.culprits.iter().all(bounded));
            let is_within_total = |of: &run::Culprit| of.cpu_time_ns.is_some_and(|ns| ns <= of.total_ns);
            prop_assert!(ranked.culprits.iter().all(is_within_total));
        }
    }
}
