//! Paths of bounded work, above all the measuring thread's: from its clock read to its sleep, and
//! from its timer back to its clock read. They are part of every cycle, and the run has measured
//! their cost. A CPU that takes far longer there did not run: something outside stopped it, and the
//! name of the place is no evidence.
//!
//! Sources: kernel/time/hrtimer.c (`do_nanosleep`), kernel/sched/core.c (`__schedule`),
//! kernel/entry/common.c.

use super::case::{Case, Cause};
use super::state::{Hard, RunningContext, Stretch};
use crate::kernel_functions::is_core_timer;
use model::run::Run;
use model::slice::SliceKind;
use model::units::Nanos;

/// Longest time between two events in a path of bounded work, in ns; a CPU that takes longer was
/// stalled.
pub(super) const MAX_BOUNDED_NS: i64 = 1_000_000;

/// Factor over the measured cost of onbeat's own path that is accepted: cold caches, and events
/// recorded on the way.
const COST_FACTOR: i64 = 4;

/// Time of onbeat's own path that is always accepted, in ns: a few cache misses and the work of a
/// tick.
const MIN_COST_NS: i64 = 100_000;

/// Measured cost of the measuring threads' own path; unknown if the run did not measure it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost(Option<Nanos>);

impl Cost {
    /// Cost from the data of a run: a median wake-up with tracing, an iteration of the loop, and a
    /// read of the clock.
    pub fn of(run: &Run) -> Cost {
        let medians = run.recorder.iter().flat_map(|recorder| recorder.median_ns).flatten();
        let (turn, read) = (run.overhead.loop_ns, run.overhead.clock_read_ns);
        let rest = turn.map_or(0, |ns| ns.0).saturating_add(read.map_or(0, |ns| ns.0));
        Cost(medians.max().map(|median| Nanos(median.0.saturating_add(rest))))
    }

    /// Longest time that the path takes between two events, in ns.
    pub(super) fn bound(self) -> i64 {
        self.0
            .map_or(MAX_BOUNDED_NS, |ns| ns.0.saturating_mul(COST_FACTOR).clamp(MIN_COST_NS, MAX_BOUNDED_NS))
    }
}

/// True if a piece is longer than the work of its cause can take.
pub(super) fn stood_still(case: &Case<'_>, piece: &Stretch<'_>, cause: &Cause) -> bool {
    most(case, piece, cause).is_some_and(|most| piece.end.saturating_sub(piece.start) > most)
}

/// True if a CPU that stalled there was stopped: nothing inside takes this long. Before a switch a
/// thread may have had preemption off without any sign of it.
pub(super) fn is_stop(piece: &Stretch<'_>, cause: &Cause) -> bool {
    let held = matches!(cause.kind, SliceKind::Switch | SliceKind::PageFault | SliceKind::TimerSoftirq);
    !held && piece.end.saturating_sub(piece.start) > 4 * MAX_BOUNDED_NS
}

/// Longest time between two events in the work of a cause, in ns; none if it has no bound.
fn most(case: &Case<'_>, piece: &Stretch<'_>, cause: &Cause) -> Option<i64> {
    let own = if case.window.own { case.own } else { MAX_BOUNDED_NS };
    let known = match (cause.kind, &piece.top) {
        (SliceKind::Switch | SliceKind::ReturnToUser, _) => Some(own),
        (SliceKind::TimerIrq, RunningContext::Hard(Hard { timer: None | Some("hrtimer_wakeup"), .. })) => {
            Some(own)
        }
        (SliceKind::TimerIrq, _) => Some(MAX_BOUNDED_NS),
        // A softirq has entry and exit events, and a timer's function in it may run for long.
        (SliceKind::TimerSoftirq, RunningContext::Soft { function, .. }) if !is_bounded(function) => None,
        (SliceKind::TimerSoftirq, _) => Some(MAX_BOUNDED_NS),
        (SliceKind::PageFault, _) if case.window.own => Some(MAX_BOUNDED_NS),
        _ => None,
    };
    known.or_else(|| section(case, cause))
}

/// Longest time of a thread's section, by thread and function.
fn section(case: &Case<'_>, cause: &Cause) -> Option<i64> {
    let sections =
        matches!(cause.kind, SliceKind::IrqsOff | SliceKind::PreemptOff | SliceKind::LockContention);
    if cause.kind != SliceKind::Thread && !sections {
        return None;
    }
    let own = case.window.own && cause.who.pid == case.window.victim.pid;
    let balances = || cause.stack.iter().any(|frame| is_balancing(frame));
    if own && !balances() {
        return Some(case.own);
    }
    (sections && goes_to_sleep(&cause.who.function)).then_some(MAX_BOUNDED_NS)
}

/// True if a softirq is in its own code, or in a timer's function that only wakes threads.
fn is_bounded(function: &str) -> bool {
    function.is_empty() || is_core_timer(function)
}

/// True for functions on any thread's way into a timed sleep, and out of the kernel. Since 7.2
/// sleeps of user space start their timer in a separate function, and the clock device is set on
/// the way out (`hrtimer_start_range_ns_user`, `__hrtimer_rearm_deferred`).
fn goes_to_sleep(function: &str) -> bool {
    let name = function.split(['.', ' ']).next().unwrap_or_default().trim_start_matches('_');
    let starts = [
        "syscall_exit_",
        "exit_to_user_mode",
        "irqentry_exit",
        "entry_SYSCALL",
        "x64_sys_clock_nano",
        "hrtimer_start_",
        "hrtimer_rearm",
    ];
    starts.iter().any(|start| name.starts_with(start))
        || matches!(
            name,
            "do_nanosleep"
                | "hrtimer_nanosleep"
                | "common_nsleep"
                | "common_nsleep_timens"
                | "hrtimer_sleeper_start_expires"
                | "hrtimer_reprogram"
                | "hrtimer_cancel"
                | "hrtimer_try_to_cancel"
                | "schedule_hrtimeout_range"
                | "schedule_hrtimeout_range_clock"
                | "do_sigtimedwait"
                | "tick_program_event"
                | "clockevents_program_event"
                | "do_syscall_64"
                | "x64_sys_call"
        )
}

/// True for functions that move threads between CPUs, which a thread on its way to sleep may have
/// to do, and which may take long.
fn is_balancing(frame: &str) -> bool {
    frame.contains("balance") || frame.contains("update_blocked_averages") || frame.contains("pull_rt_task")
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::fixture::{adds_up, host, slice_lines, window};
    use super::*;
    use model::run::{Host, Overhead, Recorder};

    fn cost(median: i64) -> Cost {
        let median_ns = [Some(Nanos(1)), None, Some(Nanos(median))];
        let recorder = Some(Recorder { median_ns, ..Recorder::default() });
        let overhead = Overhead { loop_ns: Some(Nanos(90)), ..Overhead::default() };
        Cost::of(&Run { recorder, overhead, ..Run::default() })
    }

    fn with(own: bool, cost: Cost, late: f64, events: &str) -> Vec<String> {
        let host = Host { virtualization: "kvm".to_owned(), ..host() };
        let mut window = window(late, events);
        window.own = own;
        let spike = explain(&window, &host, cost);
        adds_up(&spike);
        slice_lines(&spike)
    }

    #[test]
    fn the_bound_is_a_few_times_the_measured_cost() {
        assert_eq!(Cost::default().bound(), MAX_BOUNDED_NS);
        assert_eq!(Cost::of(&Run::default()).bound(), MAX_BOUNDED_NS);
        assert_eq!(cost(5_000).bound(), MIN_COST_NS);
        assert_eq!(cost(59_910).bound(), 240_000);
        assert_eq!(cost(i64::MAX).bound(), MAX_BOUNDED_NS);
    }

    /// The timer is armed, the CPU stops, and the interrupt arrives where arming re-enabled
    /// interrupts.
    fn arming(function: &str) -> String {
        format!(
            "-40   1 50 d  switch swapper/0/120 R rt/50/19
             -20   1 50 d  start 1 hrtimer_wakeup 0
             17000 1 50 dh vector+ local_timer
             17001 1 50 dh timer+ 1 hrtimer_wakeup
             17001 1 50 dh stack hrtimer_interrupt,asm_sysvec,_raw_spin_unlock_irqrestore,{function},hrtimer_nanosleep 2
             17002 1 50 dh waking rt/50/19
             17003 1 50 dNh timer- 1
             17004 1 50 dNh vector- local_timer"
        )
    }

    #[test]
    fn a_stop_between_arming_the_timer_and_sleeping_is_nobodys() {
        for function in ["do_nanosleep", "hrtimer_start_range_ns", "schedule", "anything"] {
            let lines = with(true, cost(5_000), 17_010.0, &arming(function));
            assert_eq!(lines[..2], ["stopped 17000", "timer-irq local_timer 4"], "{function}: {lines:?}");
        }
        // Another thread may run for long, but no thread's way into its sleep takes that long.
        for function in [
            "do_nanosleep",
            "hrtimer_start_range_ns",
            "hrtimer_start_range_ns_user",
            "__hrtimer_rearm_deferred",
        ] {
            let lines = with(false, Cost::default(), 17_010.0, &arming(function));
            assert_eq!(lines[0], "stopped 17000", "{function}");
        }
        assert_eq!(with(false, Cost::default(), 17_010.0, &arming("hold"))[0], "irqs-off hold/rt 17000");
        // Looking for work of other CPUs is not part of the path.
        let balance = arming("sched_balance_newidle");
        assert_eq!(with(true, cost(5_000), 17_010.0, &balance)[0], "irqs-off sched_balance_newidle/rt 17000");
    }

    #[test]
    fn the_thread_itself_is_not_late_by_more_than_its_path_costs() {
        let events = "-500 1 60 d switch busy/60/120 S rt/50/19\n-400 1 50 . fault";
        let of = |own, us: u32| with(own, cost(30_000), f64::from(us), events).join(", ");
        assert_eq!(of(true, 120), "thread rt 120, unexplained 0");
        assert_eq!(of(true, 130), "unexplained 130");
        assert_eq!(of(true, 21_000), "stopped 21000, unexplained 0");
        assert_eq!(of(false, 21_000), "thread rt 21000, unexplained 0");
    }

    #[test]
    fn what_lies_between_waking_and_clock_is_held_to_the_measured_cost() {
        let events = |to_user: u32| {
            let end = 20 + to_user;
            (
                f64::from(end),
                "-500 1 50 d switch rt/50/19 S swapper/0/120
                 2  1 0 dh vector+ local_timer
                 3  1 0 dh timer+ 1 hrtimer_wakeup
                 4  1 0 dh waking rt/50/19
                 5  1 0 dh timer- 1
                 5  1 0 dh vector- local_timer
                 20 1 0 d switch swapper/0/120 R rt/50/19",
            )
        };
        let of = |cost, us| {
            let (late, events) = events(us);
            with(true, cost, late, events).swap_remove(2)
        };
        assert_eq!(of(cost(5_000), 90), "return-to-user 90");
        assert_eq!(of(cost(5_000), 300), "unexplained 302");
        assert_eq!(of(Cost::default(), 300), "return-to-user 300");
    }
}
