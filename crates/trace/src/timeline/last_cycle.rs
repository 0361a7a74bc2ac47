//! Sleep of a thread's last cycle that a timer ended: the late release of that cycle itself, or a
//! sleep within it that ended in time.
//!
//! Sources: kernel/time/hrtimer.c (`__run_hrtimer` calls the function that wakes between the two
//! events of a timer's expiry).

use super::cycle_evidence::{CycleEvidence, Response};
use super::earlier::within;
use super::explain::append;
use super::segments::{CycleSegment, Doing};
use crate::event::{Named, What};
use model::run::Slice;
use model::slice::SliceKind;
use model::units::Nanos;

/// Limit of events of a CPU before a waking that are searched for its timer.
const MAX_EVENTS: usize = 256;

/// Longest delay of a timer on the trace's clock, in nanoseconds.
const MAX_LATE: u64 = 60_000_000_000;

/// Longest time to start a timer, in nanoseconds.
const MAX_ASKING: i64 = 100_000;

impl Response {
    /// Takes a sleep whose timer was due before the segment began: the time belongs to the delay of
    /// the timer, not to the thread's sleep. Returns true if it was one.
    pub(super) fn overdue(&mut self, cycle: &CycleEvidence<'_>, segment: &CycleSegment<'_>) -> bool {
        let timer = segment.woken.and_then(|waking| timer_around(cycle.ordered, waking).zip(Some(waking)));
        let Some((timer, waking)) = timer else { return false };
        let due = due(cycle.ordered, timer, waking);
        if due.is_some_and(|due| due > segment.start) {
            return false;
        }
        self.inherited += segment.end - segment.start;
        let Some(due) = due else {
            // No event shows its due time, or none on this clock.
            self.overran += segment.end - segment.start;
            return true;
        };
        let whole = CycleSegment { start: due, doing: Doing::Waiting, slept: None, ..segment.clone() };
        let part = cycle.explain(&whole);
        let slices = within(&part.slices, Nanos(segment.start), Nanos(segment.end));
        let explained: i64 = slices.iter().map(|slice| slice.ns.0).sum();
        let rest = segment.end - segment.start - explained;
        self.overran += rest;
        for mut slice in slices {
            slice.overrun_of_ns = Some(Nanos(due));
            append(&mut self.slices, slice);
        }
        true
    }
}

/// Relabels a short section with interrupts off in which the thread itself requested a release that
/// was over by then: nothing delayed it there.
pub(super) fn asks_for_release(slice: &mut Slice, victim: i32) {
    if slice.kind == SliceKind::IrqsOff && slice.who.pid == victim && slice.ns.0 <= MAX_ASKING {
        slice.kind = SliceKind::Own.into();
        slice.who.function.clear();
        slice.stack.clear();
        "it asked for its next release, which was over".clone_into(&mut slice.evidence);
    }
}

/// Timer in whose function a waking was.
fn timer_around(ordered: &[&Named], waking: &Named) -> Option<u64> {
    let end = ordered.partition_point(|event| event.time <= waking.time);
    let at = ordered[..end].iter().rposition(|event| std::ptr::eq(*event, waking))?;
    let same = |event: &&&Named| {
        event.cpu == waking.cpu
            && event.pid == waking.pid
            && event.context.hard_irq() == waking.context.hard_irq()
    };
    let before = ordered[..at].iter().rev().take(MAX_EVENTS).filter(same);
    let mut timers = before.filter_map(|event| match event.what {
        What::TimerEntry { timer, .. } => Some(Some(timer)),
        What::TimerExit { .. } | What::Switch { .. } => Some(None),
        _ => None,
    });
    timers.next().flatten()
}

/// Due time of a timer that expired at a waking, from its last start.
fn due(ordered: &[&Named], timer: u64, waking: &Named) -> Option<i64> {
    let end = ordered.partition_point(|event| event.time < waking.time);
    let expires = ordered[..end].iter().rev().find_map(|event| match event.what {
        What::TimerStart { timer: started, expires, .. } if started == timer => Some(expires.0),
        _ => None,
    });
    expires.filter(|expires| expires.abs_diff(waking.time.0) <= MAX_LATE)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{E, adds_up, host, slice_lines, window};
    use super::super::{Cost, explain_window};
    use super::*;
    use crate::window::Window;
    use model::run::{Host, Spike, Who};

    /// Loop of 1 ms whose release at -3000 comes at 12000, because another thread has the CPU; it
    /// catches up, and the cycle is the one that was due at 0.
    fn events(start: &str, stack: &str) -> String {
        let again = |at: i64, due: i64| {
            format!(
                "{at} 1 50 . start 1 hrtimer_wakeup {due}
                 {} 1 50 dh vector+ local_timer
                 {} 1 50 dh timer+ 1 hrtimer_wakeup
                 {} 1 50 dh waking rt/50/19
                 {} 1 50 dh timer- 1
                 {} 1 50 dh vector- local_timer\n",
                at + 1,
                at + 2,
                at + 3,
                at + 4,
                at + 5
            )
        };
        let catches_up: String =
            [(12_020, -2_000), (12_040, -1_000), (12_060, 0)].map(|(at, due)| again(at, due)).concat();
        format!(
            "{start}
             -3940 1 50 d  switch rt/50/19 S busy/60/120
             -3940 1 50 d  stack schedule,do_nanosleep,hrtimer_nanosleep
             12000 1 60 dh vector+ local_timer
             12001 1 60 dh timer+ 1 hrtimer_wakeup
             {stack}
             12002 1 60 dh waking rt/50/19
             12003 1 60 dNh timer- 1
             12004 1 60 dNh vector- local_timer
             12005 1 60 d  switch busy/60/120 P rt/50/19
             {catches_up}"
        )
    }

    const START: &str = "-3950 1 50 . start 1 hrtimer_wakeup -3000";
    const HOLD: &str = "12001 1 60 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,hold,write 2";

    fn explained(host: &Host, events: &str) -> Spike {
        let window = Window { own: false, deadline_ns: Some(Nanos(1_000_000)), ..window(12_090.0, events) };
        let spike = explain_window(&window, host, Cost::default());
        adds_up(&spike);
        spike
    }

    fn blames_sleep(spike: &Spike) -> bool {
        spike
            .slices
            .iter()
            .any(|slice| slice.evidence.contains("time-out") || slice.who.function == "do_nanosleep")
    }

    #[test]
    fn a_late_release_of_an_earlier_cycle_has_what_kept_its_timer() {
        let spike = explained(&host(), &events(START, HOLD));
        let lines = slice_lines(&spike);
        assert_eq!(lines[0], "irqs-off hold/busy 12000", "{lines:#?}");
        assert_eq!(spike.slices[0].overrun_of_ns, Some(Nanos(E - 3_000_000)));
        assert!(!blames_sleep(&spike) && spike.inherited_ns == Nanos(12_002_000), "{spike:#?}");
    }

    #[test]
    fn an_overrun_without_a_cause_is_not_the_thread_s_sleep() {
        // The timer's start is not recorded, is of another clock, or no cause is visible.
        let other_clock = START.replace("-3000", "900000000000");
        for (start, stack) in [("", HOLD), (other_clock.as_str(), HOLD), (START, "")] {
            let spike = explained(&host(), &events(start, stack));
            assert!(!blames_sleep(&spike), "{spike:#?}");
            assert!(spike.unexplained_ns.0 > 11_900_000, "{:#?}", slice_lines(&spike));
            assert!(
                spike.unexplained_why.starts_with("its previous cycle overran"),
                "{}",
                spike.unexplained_why
            );
        }
    }

    #[test]
    fn a_sleep_within_the_last_cycle_that_its_program_asked_for_is_its_own() {
        // At -3950 it requested a sleep until 11000.
        let asked = START.replace("-3000", "11000");
        let spike = explained(&host(), &events(&asked, HOLD));
        let lines = slice_lines(&spike);
        assert_eq!(lines[..2], ["blocked do_nanosleep 11000", "irqs-off hold/busy 1000"], "{lines:#?}");
        assert_eq!(spike.slices[0].overrun_of_ns, None);
    }

    #[test]
    fn a_thread_that_asks_for_a_release_that_is_over_keeps_nobody_waiting() {
        let off = |ns: i64, pid: i32| {
            let who = Who { pid, comm: "rt".into(), function: "do_nanosleep".into(), ..Who::default() };
            let mut slice = Slice { kind: SliceKind::IrqsOff.into(), ns: Nanos(ns), who, ..Slice::default() };
            asks_for_release(&mut slice, 50);
            (slice.kind.known(), slice.who.function)
        };
        assert_eq!(off(12_000, 50), (Some(SliceKind::Own), String::new()));
        let section = (Some(SliceKind::IrqsOff), "do_nanosleep".to_owned());
        assert_eq!(off(12_000, 51), section, "another thread's");
        assert_eq!(off(5_000_000, 50), section, "too long for that alone");
    }

    #[test]
    fn a_timer_that_another_function_serves_is_a_release_as_well() {
        let timerfd = |text: &str| {
            text.replace("hrtimer_wakeup", "timerfd_tmrproc").replace("do_nanosleep", "timerfd_read")
        };
        let spike = explained(&host(), &timerfd(&events(START, HOLD)));
        assert_eq!(slice_lines(&spike)[0], "irqs-off hold/busy 12000");
        // An interrupt of a device that woke it for another reason had no due time.
        let device = events(START, HOLD)
            .replace("12001 1 60 dh timer+ 1 hrtimer_wakeup", "12001 1 60 dh irq+ 17 eth0");
        let spike = explained(&host(), &device);
        assert!(
            spike.slices.iter().any(|slice| slice.evidence.contains("until an interrupt woke it")),
            "{spike:#?}"
        );
    }
}
