//! Schedule of a run, from the statements of its threads.

use model::run::Plan;
use model::units::Nanos;
use model::vocabulary::Policy;

use super::imported::ImportedThread;

/// Fills the common priority of all threads, for a program that uses SCHED_FIFO with one and
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

/// Interval of a thread of pmqtest, ptsematest, svsematest or sigwaittest, which state it without
/// its whole seconds (rt-tests 2.4 to 2.10): the option `-i`, in us as well, has them.
pub(super) fn whole_interval(stated_us: u32, given_us: Option<u32>) -> Option<Nanos> {
    const SECOND_US: u32 = 1_000_000;
    let given = given_us.unwrap_or(0);
    // Later threads have longer ones.
    let seconds = given / SECOND_US + u32::from(stated_us < given % SECOND_US);
    let us = i64::from(stated_us) + i64::from(seconds) * i64::from(SECOND_US);
    (us > 0).then_some(Nanos(us * Nanos::MICRO.0))
}

/// Fills the interval of the first thread, and the step to the next one if it is the same for all.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_of_an_interval_are_the_options() {
        let of = |stated, given| whole_interval(stated, given).map(|interval| interval.0 / 1000);
        assert_eq!(of(1000, None), Some(1000));
        assert_eq!(of(500_000, Some(1_500_000)), Some(1_500_000), "ptsematest 2.4 -i 1500000");
        assert_eq!(of(0, Some(1_000_000)), Some(1_000_000));
        assert_eq!((of(400, Some(999_900)), of(0, None)), (Some(1_000_400), None));
    }
}
