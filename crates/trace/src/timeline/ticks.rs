//! Ticks as evidence: a CPU that runs a thread has one in every period, unless it is tickless or
//! interrupts are off.
//!
//! Sources: Documentation/timers/no_hz.rst, kernel/time/tick-sched.c.

use super::case::{Case, Cause};
use super::state::{RunningContext, Stretch};
use super::virtual_machine::is_virtual;
use crate::event::{Named, Vector, What};
use model::run::Host;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

/// Number of periods without a tick that rules out chance.
pub(super) const PERIODS: i64 = 3;

/// Tick period of the kernel; the longest possible one if unknown (CONFIG_HZ=100).
pub(super) fn period(host: &Host) -> i64 {
    host.hz.filter(|&hz| hz > 0).map_or(10_000_000, |hz| 1_000_000_000 / i64::from(hz))
}

/// True if a piece would be attributed to a thread, a work item or a softirq although several ticks
/// are missing in it.
///
/// Either interrupts were off or the virtual CPU did not run, and no event shows which.
pub(super) fn are_missing(case: &Case<'_>, cpu: Cpu, piece: &Stretch<'_>, cause: &Cause) -> bool {
    let interruptible = matches!(
        cause.kind,
        SliceKind::Thread
            | SliceKind::Workqueue
            | SliceKind::PreemptOff
            | SliceKind::PriorityInversion
            | SliceKind::Softirq
            | SliceKind::TimerSoftirq
            | SliceKind::FairServer
            | SliceKind::Throttled
    );
    let runs =
        matches!(piece.top, RunningContext::Thread | RunningContext::Work(_) | RunningContext::Soft { .. })
            && piece.pid != Some(0);
    let tick = period(case.host);
    let long = piece.end.saturating_sub(piece.start) > tick.saturating_mul(PERIODS);
    let tickless = || CpuSet::parse(&case.host.nohz_full).unwrap_or_default().contains(cpu);
    let known = case.window.events_lost == 0 && case.host.hz.is_some();
    interruptible
        && runs
        && long
        && known
        && is_virtual(case.host)
        && !tickless()
        && came_around(case.events(cpu), piece.start, piece.end, tick)
}

/// True if the tick came in the two periods before or the one after, and the CPU resumes within
/// that.
pub(super) fn came_around(events: &[&Named], start: i64, end: i64, tick: i64) -> bool {
    let within = |from: i64, to: i64| {
        let begin = events.partition_point(|event| event.time.0 < from);
        events[begin..].iter().take_while(move |event| event.time.0 <= to)
    };
    let mut around = within(start.saturating_sub(tick.saturating_mul(2)), end.saturating_add(tick));
    around.any(|event| is_tick(event)) && within(end, end.saturating_add(tick)).next().is_some()
}

fn is_tick(event: &Named) -> bool {
    match &event.what {
        What::VectorEntry { vector } => *vector == Vector::LocalTimer,
        What::TimerEntry { function, .. } => function.starts_with("tick_"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, slice_lines, window};
    use model::run::Host;

    /// FIFO thread that has the CPU for 20 ms, with ticks at these microseconds.
    fn hog(virtualization: &str, ticks: &[u32]) -> String {
        let tick =
            |us: &u32| format!("{us} 1 60 dh vector+ local_timer\n{} 1 60 dh vector- local_timer\n", us + 1);
        let events = format!(
            "-2000 1 50 dh vector+ local_timer
             -1999 1 50 dh vector- local_timer
             -500  1 50 d  switch rt/50/19 S hog/60/9
             2     1 60 dh vector+ local_timer
             3     1 60 dh timer+ 1 hrtimer_wakeup
             4     1 60 dh waking rt/50/19
             5     1 60 dh timer- 1
             5     1 60 dh vector- local_timer
             {}
             20005 1 60 d  switch hog/60/9 S rt/50/19",
            ticks.iter().map(tick).collect::<String>()
        );
        let host = Host { virtualization: virtualization.to_owned(), ..host() };
        let spike = explained_on(&host, &window(20_005.0, &events));
        slice_lines(&spike)
            .into_iter()
            .filter(|line| line.starts_with("thread"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn a_virtual_cpu_without_ticks_did_not_run_its_thread() {
        assert_eq!(hog("kvm", &[19_990]), "thread hog 14");
        // The stop lies between the ticks of a thread that ran before and after it.
        assert_eq!(hog("kvm", &[2_000, 18_000]), "thread hog 1995, thread hog 2004");
    }

    #[test]
    fn a_thread_that_was_seen_running_keeps_its_time() {
        let whole = "thread hog 1995, thread hog 3999, thread hog 3999, thread hog 3999, thread hog 3999, thread hog 2004";
        assert_eq!(
            hog("kvm", &[2_000, 6_000, 10_000, 14_000, 18_000]).replace(" 1999", ""),
            whole.replace(" 1999", "")
        );
        assert!(
            hog("none", &[19_990]).starts_with("thread hog 199"),
            "on metal nothing stops a CPU and lets it go on"
        );
    }
}
