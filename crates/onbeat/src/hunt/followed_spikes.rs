//! Selection of spikes among the wake-ups of followed threads: those beyond a given threshold, or
//! one taken from the first wake-ups, unless a late cycle explains them.

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

/// Number of wake-ups for an automatic threshold, and the maximum wait for them.
const FIRST_WAKEUPS: u64 = 400;
const MAX_FIRST_WAIT: Nanos = Nanos(2_000_000_000);

/// Time for which a spike waits for its cycle's end: later its events may be lost.
const MAX_HELD: Nanos = Nanos(200_000_000);

/// Limits that end the hunt, besides a signal and the end of all followed threads.
#[derive(Clone, Copy, Debug)]
pub struct FollowLimits {
    pub duration: Option<Nanos>,
    /// Latency at which the hunt stops.
    pub latency: Option<Nanos>,
    /// Wake-ups of all followed threads together.
    pub wakeups: Option<u64>,
}

/// Options of a hunt that follows threads.
#[derive(Clone, Copy, Debug)]
pub struct FollowOptions {
    /// Latency from which a wake-up is a spike; if none, the first wake-ups determine it.
    pub over: Option<Nanos>,
    /// Response time from which a cycle is late; by default the period of each thread.
    pub deadline: Option<Nanos>,
    pub stacks: bool,
    /// Time for which system calls are recorded, which slows down every process.
    pub syscalls: Option<Nanos>,
}

/// Selection among wake-ups, and its state.
pub struct FollowedSpikes {
    limits: FollowLimits,
    threshold: Option<Nanos>,
    /// Latencies of the wake-ups before there was a threshold.
    first_counts: Counts,
    /// Number of wake-ups up to now.
    pub wakeups: u64,
    pub limit_reached: bool,
    /// Spikes in cycles that have not ended.
    held: Vec<LateTask>,
}

impl FollowedSpikes {
    /// A selection with a threshold, if one was given.
    pub fn new(limits: FollowLimits, threshold: Option<Nanos>) -> FollowedSpikes {
        let first_counts = Counts::default();
        FollowedSpikes { limits, threshold, first_counts, wakeups: 0, limit_reached: false, held: Vec::new() }
    }

    pub fn threshold(&self) -> Option<Nanos> {
        self.threshold
    }

    /// Counts a wake-up, and returns it if it is a spike. `found` receives a new threshold and its
    /// reason.
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

    /// Determines the threshold from the first wake-ups, once there are enough.
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
        Some((threshold, why.replace("before the run", "at its start")))
    }

    /// Spikes to explain now: late cycles, and late wake-ups outside of them. A wake-up waits until
    /// its cycle has ended.
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

    /// Integrity entry for a run in which no followed thread woke up.
    pub fn nothing(&self, elapsed: Nanos) -> Integrity {
        let watched = elapsed.spoken();
        let detail = format!("no followed thread woke up in {watched}: nothing was measured");
        entry(IntegrityKind::Victim, None, false, detail)
    }

    /// Reason why the wake-ups gave no threshold, if there is none.
    pub fn too_few(&self) -> Option<String> {
        let seen = || several(self.wakeups, "wake-up", "wake-ups");
        self.threshold()
            .is_none()
            .then(|| format!("{} are too few for a threshold: set it with --over", seen()))
    }

    /// Integrity entry for a run whose threads have all ended.
    pub fn ended(&self, after: Nanos) -> Integrity {
        let kept = match self.wakeups {
            0 => "no wake-up was recorded",
            _ => "results up to then are stored",
        };
        let detail = format!("all followed threads have ended after {}: {kept}", after.spoken());
        entry(IntegrityKind::Victim, None, false, detail)
    }

    /// Spikes that still wait at the end of the run.
    pub fn rest(&mut self) -> Vec<LateTask> {
        std::mem::take(&mut self.held)
    }
}
