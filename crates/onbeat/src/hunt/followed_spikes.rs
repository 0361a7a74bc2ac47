//! Which wake-ups of followed threads are spikes: those beyond a threshold that is given, or taken
//! from the first of them; and not what a late cycle explains as well.

use super::followed_cycles::FollowedCycles;
use super::late_task::LateTask;
use super::threshold::automatic;
use crate::measure::integrity::entry;
use crate::measure::late::LateWakeup;
use host::clock;
use model::histogram::{Counts, bucket_of};
use model::run::Integrity;
use model::text::several;
use model::units::Nanos;
use model::vocabulary::IntegrityKind;
use trace::wakeups::Wakeup;

/// Wake-ups from which a threshold is taken where none is given, and how long to wait for them.
const FIRST_WAKEUPS: u64 = 400;
const MAX_FIRST_WAIT: Nanos = Nanos(2_000_000_000);

/// How long a spike waits for its cycle to end: after that its events may be gone.
const MAX_HELD: Nanos = Nanos(200_000_000);

/// What ends the hunt, other than a signal and the end of all victims.
#[derive(Clone, Copy, Debug)]
pub struct FollowLimits {
    pub duration: Option<Nanos>,
    /// A latency at which it stops.
    pub latency: Option<Nanos>,
    /// Wake-ups of all victims together.
    pub wakeups: Option<u64>,
}

/// What a hunt that follows threads looks for.
#[derive(Clone, Copy, Debug)]
pub struct FollowOptions {
    /// The latency from which on a wake-up is a spike, or none: then the first wake-ups give one.
    pub over: Option<Nanos>,
    /// The response from which on a cycle is late; by default each thread's period.
    pub deadline: Option<Nanos>,
    pub stacks: bool,
    /// For how long the threads' system calls are recorded, which slows down every process.
    pub syscalls: Option<Nanos>,
}

/// The choice among wake-ups.
pub struct FollowedSpikes {
    limits: FollowLimits,
    threshold: Option<Nanos>,
    /// Wake-ups before there was a threshold.
    first_counts: Counts,
    /// Wake-ups so far.
    pub wakeups: u64,
    pub limit_reached: bool,
    /// Spikes in cycles that have not ended.
    held: Vec<LateTask>,
}

impl FollowedSpikes {
    /// With a threshold, if one was given.
    pub fn new(limits: FollowLimits, threshold: Option<Nanos>) -> FollowedSpikes {
        let first_counts = Counts::default();
        FollowedSpikes { limits, threshold, first_counts, wakeups: 0, limit_reached: false, held: Vec::new() }
    }

    pub fn threshold(&self) -> Option<Nanos> {
        self.threshold
    }

    /// Counts a wake-up; it is returned if it is a spike. `found` has the threshold when it is new,
    /// and how it came about.
    pub fn count(
        &mut self,
        wakeup: &Wakeup,
        began: Nanos,
        found: &mut Option<(Nanos, String)>,
    ) -> Option<LateTask> {
        let Wakeup { task, cpu, expected, actual, .. } = *wakeup;
        let latency = actual - expected;
        self.wakeups += 1;
        self.limit_reached |= self.limits.latency.is_some_and(|limit| latency >= limit);
        let wakeup = LateWakeup { cpu, cycle: 0, expected, actual };
        let late = LateTask { wakeup, cycle: None, victim: task, own: false, deadline: None, previous: None };
        if self.threshold.is_none() {
            *found = self.look(latency, began);
            return None;
        }
        (latency >= self.threshold?).then_some(late)
    }

    /// Takes the threshold from the first wake-ups, once there are enough.
    fn look(&mut self, latency: Nanos, began: Nanos) -> Option<(Nanos, String)> {
        self.first_counts.add(bucket_of(latency), 1);
        let wait =
            self.limits.duration.map_or(MAX_FIRST_WAIT, |length| Nanos(length.0 / 4).min(MAX_FIRST_WAIT));
        if self.wakeups < FIRST_WAKEUPS && clock::monotonic() - began < wait {
            return None;
        }
        let (threshold, why) = automatic(&self.first_counts);
        let threshold = self.limits.latency.map_or(threshold, |limit| threshold.min(limit));
        self.threshold = Some(threshold);
        Some((threshold, why.replace("before the run", "at its begin")))
    }

    /// What is to be explained by now: late cycles, and late wake-ups that lie in none. A wake-up
    /// waits until its cycle has ended.
    pub fn choose(
        &mut self,
        wakeups: Vec<LateTask>,
        mut cycles: Vec<LateTask>,
        all: &FollowedCycles,
        now: Nanos,
    ) -> Vec<LateTask> {
        self.held.extend(wakeups);
        let within = |wakeup: &LateTask| {
            cycles.iter().any(|cycle| {
                let (span, one) = (&cycle.wakeup, &wakeup.wakeup);
                let same = cycle.victim.pid == wakeup.victim.pid;
                same && span.expected <= one.expected && one.actual <= span.actual
            })
        };
        self.held.retain(|wakeup| !within(wakeup));
        let waits = |late: &LateTask| {
            now - late.wakeup.actual < MAX_HELD && all.is_in_cycle(late.victim.pid, late.wakeup.expected)
        };
        let (held, free): (_, Vec<LateTask>) = self.held.drain(..).partition(waits);
        self.held = held;
        let overran =
            |late: &LateTask| all.overran(late.victim.pid, late.wakeup.expected, late.wakeup.actual);
        cycles.extend(free.into_iter().map(|late| LateTask { previous: overran(&late), ..late }));
        cycles
    }

    /// Nothing that is followed woke up.
    pub fn nothing(&self, elapsed: Nanos) -> Integrity {
        let watched = elapsed.spoken();
        let detail = format!("no thread that is followed woke up in {watched}: nothing was measured");
        entry(IntegrityKind::Victim, None, false, detail)
    }

    /// Why the wake-ups gave no threshold, if they gave none.
    pub fn too_few(&self) -> Option<String> {
        let seen = || several(self.wakeups, "wake-up", "wake-ups");
        self.threshold()
            .is_none()
            .then(|| format!("{} in so short a time give none: name it with --over", seen()))
    }

    /// The entry of a run whose threads have all ended, after so long.
    pub fn ended(&self, after: Nanos) -> Integrity {
        let kept = match self.wakeups {
            0 => "no wake-up was recorded",
            _ => "what was seen until then is kept",
        };
        let detail = format!("every thread that was followed has ended after {}: {kept}", after.spoken());
        entry(IntegrityKind::Victim, None, false, detail)
    }

    /// What still waits; the run is over.
    pub fn rest(&mut self) -> Vec<LateTask> {
        std::mem::take(&mut self.held)
    }
}
