//! Late timers of an idle CPU, which nothing inside the machine can delay. Their expiry afterwards
//! proves that they were pending.
//!
//! Sources: kernel/time/hrtimer.c (`__run_hrtimer` records each expiry), kernel/sched/idle.c (an
//! idle CPU sleeps with interrupts on).

use super::case::{Case, Stop, StopCertainty};
use super::gap::{MAX_LATE_INTERRUPT_NS, MAX_LATE_VCPU_NS, StartedTimer, started_timers};
use super::virtual_machine::is_virtual;
use crate::event::{Named, What};

/// True if a timer expired right after a silence, when it was no longer pending: its first event
/// after that is its expiry.
pub(super) fn expires_after(events: &[&Named], timer: u64, end: i64) -> bool {
    let after = events.partition_point(|event| event.time.0 < end);
    let soon = end.saturating_add(MAX_LATE_INTERRUPT_NS);
    let near = events[after..].iter().take_while(|event| event.time.0 <= soon);
    let mut of_it = near.filter_map(|event| match event.what {
        What::TimerEntry { timer: expired, .. } if expired == timer => Some(true),
        What::TimerStart { timer: started, .. } if started == timer => Some(false),
        _ => None,
    });
    of_it.next().unwrap_or(false)
}

/// Stops of the wake-up's virtual CPU while it was idle, independent of other CPUs.
pub(super) fn stops(case: &Case<'_>) -> Vec<(i64, i64, Stop)> {
    if !is_virtual(case.host) {
        return Vec::new();
    }
    let events = case.events(case.home());
    let silent = |pair: &&[&Named]| {
        let (before, after) = (pair[0].time.0, pair[1].time.0);
        after.saturating_sub(before) > MAX_LATE_VCPU_NS && after > case.from && before < case.to
    };
    let stop = |pair: &[&Named]| {
        let (before, after) = (pair[0], pair[1].time.0);
        let due = sleeps(before).then(|| earliest_due(events, before.time.0, after)).flatten()?;
        let stop = Stop { certainty: StopCertainty::Proven, estimated: false };
        (after.saturating_sub(due) > MAX_LATE_VCPU_NS).then_some((due, after, stop))
    };
    events.windows(2).filter(silent).filter_map(stop).collect()
}

/// True if a CPU idles from an event on, and has entered its idle state.
fn sleeps(event: &Named) -> bool {
    event.pid == 0 && matches!(event.what, What::Idle { state: Some(_) })
}

/// Earliest due time, within a silence, of the timers that were started before it and expired right
/// after it.
fn earliest_due(events: &[&Named], start: i64, end: i64) -> Option<i64> {
    let before = &events[..events.partition_point(|event| event.time.0 <= start)];
    let pending = |one: &StartedTimer<'_>| {
        (one.start.time.0..end).contains(&one.due) && expires_after(events, one.timer, end)
    };
    let due = started_timers(before).filter(pending).map(|one| one.due.max(start));
    due.min()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, slice_lines, window};
    use model::run::Host;

    /// The victim's CPU idles and its timer is 20 ms late; the other CPU keeps working.
    fn late(virtualization: &str, last: &str, expiry: &str) -> Vec<String> {
        let events = format!(
            "-600 1 50 d  start 1 hrtimer_wakeup 0
             -500 1 50 d  switch rt/50/19 S swapper/1/0/120
             {last}
             5000  0 8 dh vector+ local_timer
             5010  0 8 dh vector- local_timer
             9000  0 8 dh vector+ local_timer
             9010  0 8 dh vector- local_timer
             15000 0 8 dh vector+ local_timer
             15010 0 8 dh vector- local_timer
             20000 1 0 dh vector+ local_timer
             {expiry}
             20002 1 0 dh waking rt/50/19
             20003 1 0 dNh timer- 1
             20004 1 0 dNh vector- local_timer
             20005 1 0 d  switch swapper/1/0/120 R rt/50/19"
        );
        let host = Host { virtualization: virtualization.to_owned(), ..host() };
        slice_lines(&explained_on(&host, &window(20_010.0, &events)))
    }

    const IDLES: &str = "-490 1 0 d idle 1";
    const EXPIRES: &str = "20001 1 0 dh timer+ 1 hrtimer_wakeup";

    #[test]
    fn an_idle_virtual_cpu_whose_timer_came_late_was_stopped() {
        assert_eq!(late("kvm", IDLES, EXPIRES)[0], "stopped 20000");
    }

    #[test]
    fn a_cpu_of_metal_or_one_that_was_not_asleep_was_not() {
        let stopped = |lines: Vec<String>| lines[0].starts_with("stopped");
        assert!(!stopped(late("none", IDLES, EXPIRES)), "metal leaves idle late by itself");
        assert!(!stopped(late("kvm", "-490 1 0 d idle -", EXPIRES)), "it had left its idle state");
        assert!(!stopped(late("kvm", "-490 1 0 dh irq+ 17 eth0", EXPIRES)), "in an interrupt");
        let anew = "20000 1 0 dh start 1 hrtimer_wakeup 20000\n20001 1 0 dh timer+ 1 hrtimer_wakeup";
        assert!(!stopped(late("kvm", IDLES, anew)), "the timer was not pending");
    }
}
