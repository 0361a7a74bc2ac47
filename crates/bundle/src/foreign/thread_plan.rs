//! The schedule of a run, from what its threads state.

use model::run::Plan;
use model::units::Nanos;
use model::vocabulary::Policy;

use super::imported::ImportedThread;

/// Takes the priority that all threads have, for a program that uses SCHED_FIFO with one and
/// SCHED_OTHER without.
pub(super) fn fill_policy(plan: &mut Plan, mut priorities: impl Iterator<Item = u32>) {
    let Some(first) = priorities.next() else { return };
    let policy = if first == 0 { Policy::Other } else { Policy::Fifo };
    let others: Vec<u32> = priorities.collect();
    if others.iter().all(|&other| (other == 0) == (first == 0)) {
        plan.policy = policy.into();
    }
    if others.iter().all(|&other| other == first) {
        plan.priority = Some(first);
    }
}

/// Takes the interval of the first thread, and the step to the next one where it is the same for
/// all.
pub(super) fn fill_intervals(plan: &mut Plan, threads: &[ImportedThread]) {
    let intervals: Vec<i64> = threads.iter().filter_map(|thread| Some(thread.interval?.0)).collect();
    if let Some(&first) = intervals.first() {
        plan.interval_ns = Some(Nanos(first));
    }
    let mut steps = intervals.windows(2).map(|pair| pair[1] - pair[0]);
    if let Some(step) = steps.next().filter(|&step| steps.all(|other| other == step)) {
        plan.distance_ns = Some(Nanos(step));
    }
}
