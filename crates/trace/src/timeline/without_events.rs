//! Cause of a late wake-up without events: a recorder that runs for months has only two stacks and
//! the threads around them.
//!
//! Evidence is weaker than in a timeline, so fewer causes are named: a section with interrupts off
//! if the timer's interrupt arrived right after the instruction that enabled them, a section with
//! preemption off if the function that ended it called the scheduler, a thread of at least equal
//! priority that had the CPU until the switch, for at least half of the latency. Of a section that
//! ends by releasing a raw lock, the thread that released a contended one right before has the time
//! up to that. A late timer
//! without such a section was stopped from outside if the hypervisor counted as much steal, or a
//! timer of another CPU was late at the same time; so was a wait without such a holder, if a pulse
//! on another CPU was late and both resumed at once. Anything else is unknown.

use super::interrupted::{Found, below};
use super::own::MAX_BOUNDED_NS;
use super::preempt_off::let_in;
use super::spinning::handover;
use super::virtual_machine::is_virtual;
use crate::kernel_functions::{is_entry, is_idle_function, is_lock_helper, named, unlocks_raw};
use model::run::{Host, Slice, Spike, Who};
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};

/// Function at the end of every switch: in a virtual machine it cannot rule out a stop of the CPU.
const AFTER_SWITCH: &str = "finish_task_switch";

/// Functions below which a soft interrupt runs in the thread that it found.
const SOFT_INTERRUPT: [&str; 2] = ["handle_softirqs", "__do_softirq"];

/// Start of the evidence if the thread checked for a switch: no event shows if it did so because
/// the kernel's model waits until then, or because preemption was off.
pub const OFF_OR_NOT_PREEMPTED: &str = "preemption was off, or the kernel does not preempt its own code";

/// Late wake-up, as far as it was observed.
pub struct Witness<'a> {
    pub cpu: Cpu,
    /// Time of the switch to the thread.
    pub at: Nanos,
    /// Thread that was late.
    pub victim: &'a Who,
    /// True if a timer of another CPU was late at the same time: all may have been stopped.
    pub contested: bool,
    /// True if a pulse of another CPU, with interrupts on, was late at the same time and arrived
    /// when this CPU resumed.
    pub at_once: bool,
    /// Steal counted by the hypervisor for the CPU in this interval; none if it counts nothing.
    pub stolen: Option<Nanos>,
    /// Delay of its timer; 0 without a timer.
    pub timer: Nanos,
    /// Time that the thread then waited for its CPU.
    pub wakeup: Nanos,
    /// Time of that wait in which the previous thread had the CPU, in one piece or more, if its
    /// switch was seen.
    pub held: Option<Nanos>,
    /// True if the holder of the CPU has a lower priority, or is the idle thread.
    pub lower: bool,
    /// Thread that ran before the switch.
    pub previous: &'a Who,
    /// Thread that the timer's interrupt found.
    pub interrupted: &'a Who,
    /// Stack in that interrupt, innermost first; empty if none was recorded.
    pub expiry: &'a [String],
    /// Index of its frame that was interrupted as interrupts were re-enabled.
    pub enables: Option<usize>,
    /// Stack at the switch.
    pub switch: &'a [String],
    /// Last release of a contended lock on another CPU before the switch.
    pub release: Option<LockRelease<'a>>,
}

/// Release of a contended lock.
#[derive(Clone, Copy, Debug)]
pub struct LockRelease<'a> {
    pub at: Nanos,
    /// Time of the last release before it by another thread.
    pub before: Nanos,
    /// Thread that released it, and its stack.
    pub holder: &'a Who,
    pub stack: &'a [String],
}

/// Spike of at most one slice, the cause of the larger part, T or W, if the evidence shows one; the
/// rest is unexplained.
pub fn spike(seen: &Witness<'_>, host: &Host) -> Spike {
    let late = seen.timer >= seen.wakeup;
    let slice = if late { before_the_timer(seen, host) } else { before_the_switch(seen) };
    let latency = Nanos(seen.timer.0.saturating_add(seen.wakeup.0));
    let explained = slice.as_ref().map_or(0, |slice| slice.ns.0);
    Spike {
        cpu: seen.cpu,
        expected_ns: Nanos(seen.at.0.saturating_sub(latency.0)),
        actual_ns: seen.at,
        latency_ns: latency,
        unexplained_ns: Nanos(latency.0.saturating_sub(explained)),
        classes: slice.iter().map(|slice| slice.kind.clone()).collect(),
        slices: slice.into_iter().collect(),
        victim: seen.victim.clone(),
        switched_ns: Some(seen.at),
        ..Spike::default()
    }
}

/// Longest tick in ns, in which the kernel counts steal.
pub const STEAL_TICK: i64 = 10_000_000;

/// Stop from outside that took the larger part, T or W, if nothing inside is named for it. Its
/// length is estimated: a counter has the sum of an interval, and a late timer elsewhere is only an
/// upper bound.
pub fn stopped(seen: &Witness<'_>, host: &Host) -> Option<Slice> {
    let late = seen.timer >= seen.wakeup;
    let ns = seen.timer.max(seen.wakeup);
    if ns.0 < MAX_BOUNDED_NS {
        return None;
    }
    let counted =
        seen.stolen.is_some_and(|stolen| late && stolen.0 > 0 && stolen.0.saturating_add(STEAL_TICK) >= ns.0);
    // A section on all CPUs, as in the stopper, ends like one that waits for another CPU's lock.
    let section = if late { before_the_timer(seen, host) } else { before_the_switch(seen) };
    let stopper = seen.interrupted.comm.starts_with("migration/");
    let idle = seen.interrupted.pid == 0;
    let evidence = match section {
        _ if counted => "the hypervisor counted as much steal on this CPU in this interval",
        None if seen.at_once => "a steady timer of another CPU was late until the same moment",
        None if late && seen.contested && !stopper && (idle || is_virtual(host)) => {
            "a timer of another CPU was late at the same time"
        }
        _ => return None,
    };
    Some(Slice {
        kind: SliceKind::Stopped.into(),
        start_ns: Nanos(seen.at.0.saturating_sub(if late { seen.wakeup.0 } else { 0 }).saturating_sub(ns.0)),
        ns,
        evidence: format!("{evidence}; the length is estimated"),
        estimated: true,
        ..Slice::default()
    })
}

/// Section with interrupts off while the timer was due.
fn before_the_timer(seen: &Witness<'_>, host: &Host) -> Option<Slice> {
    // An idle CPU always enables interrupts at the same place, which is no proof.
    if seen.interrupted.pid == 0 {
        return None;
    }
    let stack = seen.expiry.get(seen.enables?..)?;
    let function = stack.iter().find(|frame| !is_lock_helper(frame)).or(stack.first())?;
    if function.is_empty() || is_idle_function(function) || (function == AFTER_SWITCH && is_virtual(host)) {
        return None;
    }
    let end = seen.at.0.saturating_sub(seen.wakeup.0);
    let start = end.saturating_sub(seen.timer.0);
    if stack.first().is_some_and(|frame| unlocks_raw(frame))
        && let Some(waited) = waited(seen, function, start, end)
    {
        return Some(waited);
    }
    Some(Slice {
        kind: SliceKind::IrqsOff.into(),
        start_ns: Nanos(start),
        ns: seen.timer,
        who: named(seen.interrupted.clone(), function),
        stack: stack.to_vec(),
        evidence: format!("the timer's interrupt came in where {function} let interrupts in again"),
        contested: seen.contested,
        ..Slice::default()
    })
}

/// Wait for a lock that a thread on another CPU released right before the end of a section that
/// ends by releasing a raw lock. Releases by several threads at that time prove nothing, and one in
/// an interrupt's handler is not the thread's.
fn waited(seen: &Witness<'_>, function: &str, start: i64, end: i64) -> Option<Slice> {
    let LockRelease { at, before, holder, stack } = seen.release?;
    let since = end.saturating_sub(handover(start, end));
    let ns = at.0.saturating_sub(start);
    let proves = (since..=end).contains(&at.0) && before.0 < since && ns >= end.saturating_sub(start) / 2;
    let in_handler = stack.iter().any(|frame| is_entry(frame) || SOFT_INTERRUPT.contains(&frame.as_str()));
    let place = stack.iter().find(|frame| !is_lock_helper(frame))?;
    (proves && !in_handler && holder.pid != 0).then(|| Slice {
        kind: SliceKind::LockContention.into(),
        start_ns: Nanos(start),
        ns: Nanos(ns),
        who: named(holder.clone(), place),
        stack: stack.to_vec(),
        evidence: format!(
            "{} waited for a lock in {function}: it continued when {} released a contended lock in {place}",
            seen.interrupted.comm, holder.comm
        ),
        contested: seen.contested,
        ..Slice::default()
    })
}

/// Cause of the wait for the CPU.
fn before_the_switch(seen: &Witness<'_>) -> Option<Slice> {
    if seen.previous.pid == 0 {
        return None;
    }
    let slice = Slice {
        start_ns: Nanos(seen.at.0.saturating_sub(seen.wakeup.0)),
        ns: seen.wakeup,
        who: seen.previous.clone(),
        contested: seen.contested,
        ..Slice::default()
    };
    if !seen.lower {
        return slice_of_holder(seen, slice);
    }
    let stack = &seen.switch[let_in(seen.switch)?..];
    let function = stack.first()?;
    let asked = seen.switch.iter().any(|frame| frame.contains("cond_resched"));
    let evidence = if asked {
        format!("{OFF_OR_NOT_PREEMPTED}: it asked in {function} whether to switch")
    } else {
        format!("{function} let it in again")
    };
    Some(Slice {
        kind: SliceKind::PreemptOff.into(),
        who: named(slice.who, function),
        stack: stack.to_vec(),
        evidence,
        ..slice
    })
}

/// Slice of a thread with precedence, which may have got the CPU only at the end of the wait: then
/// the thread before it is unknown.
fn slice_of_holder(seen: &Witness<'_>, slice: Slice) -> Option<Slice> {
    let ns = seen.held?.min(seen.wakeup);
    if ns.0.saturating_mul(2) < seen.timer.0.saturating_add(seen.wakeup.0) {
        return None;
    }
    let start_ns = Nanos(seen.at.0.saturating_sub(ns.0));
    Some(Slice { kind: SliceKind::Thread.into(), start_ns, ns, ..slice })
}

/// True if the timer's interrupt found user mode: then no kernel function delayed it.
pub fn found_user_mode(expiry: &[String]) -> bool {
    below(expiry) == Found::User
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::vocabulary::Preempt;

    const TIMER: &str = "hrtimer_interrupt sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt";

    fn thread(pid: i32, prio: i32) -> Who {
        Who { comm: format!("t{pid}"), pid, prio, ..Who::default() }
    }

    struct Case {
        timer: i64,
        wakeup: i64,
        lower: bool,
        held: Option<i64>,
        previous: i32,
        interrupted: i32,
        expiry: String,
        enables: Option<usize>,
        switch: &'static str,
    }

    impl Case {
        fn late_timer(below: &str, enables: usize) -> Case {
            let (expiry, enables) = (format!("{TIMER} {below}"), Some(enables));
            Case {
                timer: 90,
                wakeup: 10,
                lower: true,
                held: Some(90),
                previous: 7,
                interrupted: 7,
                expiry,
                enables,
                switch: "",
            }
        }

        fn waited(switch: &'static str, lower: bool) -> Case {
            Case { timer: 10, wakeup: 90, lower, switch, ..Case::late_timer("x", 3) }
        }

        fn found(&self, host: &Host) -> Option<(SliceKind, String, i64)> {
            let spike = self.seen(|seen| spike(&seen, host));
            let sum: i64 = spike.slices.iter().map(|slice| slice.ns.0).sum();
            assert_eq!((sum + spike.unexplained_ns.0, spike.latency_ns.0), (100, 100));
            let slice = spike.slices.into_iter().next()?;
            Some((slice.kind.known()?, slice.who.function, slice.ns.0))
        }

        fn seen<T>(&self, judge: impl FnOnce(Witness<'_>) -> T) -> T {
            let stack = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
            judge(Witness {
                cpu: Cpu(1),
                at: Nanos(1000),
                victim: &thread(50, 19),
                contested: false,
                at_once: false,
                stolen: None,
                timer: Nanos(self.timer),
                wakeup: Nanos(self.wakeup),
                held: self.held.map(Nanos),
                lower: self.lower,
                previous: &thread(self.previous, 120),
                interrupted: &thread(self.interrupted, 120),
                expiry: &stack(&self.expiry),
                enables: self.enables,
                switch: &stack(self.switch),
                release: None,
            })
        }
    }

    fn rt() -> Host {
        Host { preempt: Preempt::Rt.into(), ..Host::default() }
    }

    #[test]
    fn interrupts_that_were_off_have_the_name_of_where_they_came_on() {
        let off = Case::late_timer("_raw_spin_unlock_irqrestore hold write", 3);
        assert_eq!(off.found(&rt()), Some((SliceKind::IrqsOff, "hold".into(), 90)));
        assert_eq!(Case { enables: None, ..off }.found(&rt()), None, "any other place proves nothing");
        let idle = Case::late_timer("default_idle do_idle", 3);
        assert_eq!(idle.found(&rt()), None);
        assert_eq!(Case { interrupted: 0, ..Case::late_timer("hold", 3) }.found(&rt()), None);
        assert_eq!(Case { enables: Some(9), ..Case::late_timer("hold", 3) }.found(&rt()), None);
        let switched = Case::late_timer("finish_task_switch __schedule", 3);
        let guest = Host { virtualization: "kvm".into(), ..rt() };
        assert!(switched.found(&rt()).is_some());
        assert_eq!(switched.found(&guest), None);
    }

    #[test]
    fn who_released_the_lock_is_named_and_not_its_waiter() {
        const MS: i64 = 1_000_000;
        let own = (SliceKind::IrqsOff, "take".to_owned(), 90);
        let named = |expiry: &str, at: i64, before: i64, pid: i32, below: &str| {
            let holder = thread(pid, 89);
            let release: Vec<String> = below.split(' ').map(str::to_owned).collect();
            let case = Case { timer: 90 * MS, wakeup: 10 * MS, ..Case::late_timer(expiry, 3) };
            let found = case.seen(|seen| {
                let (at, before) = (Nanos(at * MS), Nanos(before * MS));
                let release = LockRelease { at, before, holder: &holder, stack: &release };
                spike(&Witness { at: Nanos(1000 * MS), release: Some(release), ..seen }, &rt())
            });
            let slice = found.slices.into_iter().next().unwrap();
            (slice.kind.known().unwrap(), slice.who.function, slice.ns.0 / MS)
        };
        // The section lasts from 900 to 990.
        let (taken, hold) = ("_raw_spin_unlock_irqrestore take write", "_raw_spin_unlock hold kthread");
        let held = (SliceKind::LockContention, "hold".to_owned(), 88);
        assert_eq!(named(taken, 988, 0, 8, hold), held);
        assert_eq!(named("take write", 988, 0, 8, hold), own, "it released no lock at its end");
        assert_eq!(named(taken, 995, 0, 8, hold), own, "after the end");
        assert_eq!(named(taken, 970, 0, 8, hold), own, "long before it");
        assert_eq!(named(taken, 988, 987, 8, hold), own, "another thread, too");
        assert_eq!(named(taken, 988, 0, 0, hold), own, "an idle CPU");
        let handler = format!("_raw_spin_unlock handler {TIMER} hold");
        assert_eq!(named(taken, 988, 0, 8, &handler), own, "in a handler");
    }

    #[test]
    fn preemption_that_was_off_has_the_name_of_who_let_it_in() {
        let off = Case::waited("__schedule preempt_schedule preempt_schedule_thunk hold write", true);
        assert_eq!(off.found(&rt()), Some((SliceKind::PreemptOff, "hold".into(), 90)));
        for unknown in [
            "",
            "__schedule preempt_schedule_irq irqentry_exit asm_sysvec_apic_timer_interrupt hold",
            "__schedule schedule nanosleep",
        ] {
            assert_eq!(Case::waited(unknown, true).found(&rt()), None, "{unknown}");
        }
    }

    #[test]
    fn a_thread_that_goes_first_is_named_and_the_idle_one_never() {
        let first = Case::waited("__schedule schedule nanosleep", false);
        assert_eq!(first.found(&rt()), Some((SliceKind::Thread, String::new(), 90)));
        assert_eq!(Case { previous: 0, ..first }.found(&rt()), None);
    }

    #[test]
    fn a_thread_that_goes_first_has_no_more_than_the_time_that_it_had_the_cpu() {
        let held = |held| Case { held, ..Case::waited("__schedule schedule nanosleep", false) }.found(&rt());
        let found = |ns| Some((SliceKind::Thread, String::new(), ns));
        assert_eq!(held(Some(70)), found(70), "another one before it");
        assert_eq!(held(Some(50)), found(50));
        assert_eq!(held(Some(49)), None, "most of the time was another one's");
        assert_eq!(held(Some(500)), found(90), "it ran before the wait");
        assert_eq!(held(None), None, "when it got the CPU was not seen");
    }

    #[test]
    fn a_late_timer_is_a_stop_where_the_hypervisor_counted_it_or_another_cpu_was_late() {
        let idle = Who::default();
        let seen = |stolen: Option<i64>, contested, interrupted, timer| Witness {
            cpu: Cpu(1),
            at: Nanos(1_000_000_000),
            victim: &idle,
            contested,
            at_once: false,
            stolen: stolen.map(Nanos),
            timer: Nanos(timer),
            wakeup: Nanos(100_000),
            held: None,
            lower: true,
            previous: &idle,
            interrupted,
            expiry: &[],
            enables: None,
            switch: &[],
            release: None,
        };
        let (guest, metal) = (Host { virtualization: "kvm".into(), ..rt() }, rt());
        let busy = thread(7, 120);
        let ms = 1_000_000;
        let found = |seen: Witness<'_>, host: &Host| stopped(&seen, host).map(|slice| slice.ns.0);
        assert_eq!(found(seen(Some(20 * ms), false, &busy, 19 * ms), &guest), Some(19 * ms));
        assert_eq!(found(seen(Some(20 * ms), false, &busy, 40 * ms), &guest), None, "too little");
        assert_eq!(found(seen(Some(0), false, &busy, 19 * ms), &guest), None);
        assert_eq!(found(seen(None, true, &busy, 19 * ms), &guest), Some(19 * ms));
        assert_eq!(found(seen(None, true, &busy, 19 * ms), &metal), None, "it may have had interrupts off");
        assert_eq!(found(seen(None, true, &idle, 19 * ms), &metal), Some(19 * ms));
        assert_eq!(found(seen(None, false, &idle, 19 * ms), &guest), None, "nothing shows it");
        assert_eq!(found(seen(Some(20 * ms), true, &idle, 50_000), &guest), None, "no stop is that short");
    }

    #[test]
    fn a_pulse_that_was_late_at_once_shows_a_stop_where_no_section_is_seen() {
        let guest = Host { virtualization: "kvm".into(), ..rt() };
        let ms = 1_000_000;
        let seen = |case: &Case, at_once, contested, interrupted: &str| {
            let who = Who { comm: interrupted.into(), ..thread(case.interrupted, 120) };
            case.seen(|seen| {
                stopped(&Witness { at_once, contested, interrupted: &who, ..seen }, &guest)
                    .map(|slice| slice.ns.0)
            })
        };
        let long = |case: Case| Case { timer: case.timer * ms, wakeup: case.wakeup * ms, ..case };
        let late = |below, enables| long(Case { enables, ..Case::late_timer(below, 3) });
        assert_eq!(seen(&late("read", None), true, true, "busy"), Some(90 * ms));
        assert_eq!(seen(&late("read", None), false, false, "busy"), None, "the pulse came in time");
        assert_eq!(seen(&late("hold", Some(3)), true, true, "busy"), None, "it had interrupts off");
        assert_eq!(seen(&late("read", None), false, true, "busy"), Some(90 * ms));
        assert_eq!(seen(&late("read", None), false, true, "migration/1"), None, "on all CPUs");
        let waited = |switch, lower| long(Case::waited(switch, lower));
        assert_eq!(seen(&waited("", true), true, true, "busy"), Some(90 * ms), "between timer and switch");
        assert_eq!(seen(&waited("", true), false, true, "busy"), None, "the pulse came in time");
        let held = Case { held: Some(80 * ms), ..waited("", false) };
        assert_eq!(seen(&held, true, true, "busy"), None, "a thread had the CPU");
    }

    #[test]
    fn user_mode_below_the_interrupt_is_told() {
        let stack = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert!(found_user_mode(&stack(TIMER)));
        assert!(!found_user_mode(&stack(&format!("{TIMER} hold"))));
    }
}
