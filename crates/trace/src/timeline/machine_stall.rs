//! Gaps in which a hypervisor or firmware stopped the whole machine.
//!
//! A stop is proven by a timer that was due on a CPU where nothing could delay it, and did not
//! expire while no CPU had an event: that CPU was idle, or its stack at the late expiry shows that
//! interrupts were on. Timers of onbeat's housekeeping and measuring threads are such. A stop is
//! likely if a busy CPU with a tick misses several ticks: that CPU may have had interrupts off
//! itself, so evidence on the victim's CPU takes precedence.
//!
//! A single idle virtual CPU may also be late by itself: the host ran something else there, and no
//! other CPU was stopped. The same applies to one that stalls in its timer's interrupt. So in a
//! virtual machine a stop must end for all CPUs at the same time; and if something on the victim's
//! CPU may have taken the time as well, an interrupt or a section, the two are weighed over all
//! spikes of the run (`corroboration`).
//!
//! Two things inside do silence busy CPUs: `stop_machine`, in the threads `migration/N`, and a lock
//! that is waited for with interrupts off. With missing events, silence is no evidence.
//!
//! Source: kernel/time/hrtimer.c, kernel/time/tick-sched.c.

use super::case::{Case, Stop, StopCertainty};
use super::common_stall::{ends_for_all, stands};
use super::gap::{
    Gap, MAX_EVENTS_BACK, MAX_LATE_INTERRUPT_NS, MAX_LATE_VCPU_NS, StartedTimer, gaps, started_timers,
};
use super::late_idle::{self, expires_after};
use super::own::MAX_BOUNDED_NS;
use super::spans::Spans;
use super::state::{RunningContext, Stretch, stretches};
use super::tasks::is_stopper;
use super::ticks::{self, PERIODS};
use super::virtual_machine::is_virtual;
use crate::event::{Named, What};
use model::units::{Cpu, CpuSet};

/// Times in which the machine was silent.
pub(super) fn find(case: &Case<'_>) -> Spans<Stop> {
    if case.window.events_lost > 0 {
        return Spans::new(Vec::new());
    }
    let mut stops = late_idle::stops(case);
    stops.extend(of_all(case));
    Spans::new(stops)
}

/// Times in which no CPU had an event.
fn of_all(case: &Case<'_>) -> Vec<(i64, i64, Stop)> {
    let mut gaps = gaps(case);
    if case.window.left_out > 0 || case.cpus.len() < 2 || gaps.is_empty() {
        return Vec::new();
    }
    let tick = ticks::period(case.host);
    let tickless = CpuSet::parse(&case.host.nohz_full).unwrap_or_default();
    for (&cpu, events) in &case.cpus {
        let stretches = stretches(events, case.to);
        let other = cpu != case.home() && cpu != case.window.cpu;
        for gap in &mut gaps {
            let after = stretches.partition_point(|stretch| stretch.start <= gap.start);
            let Some(stretch) = stretches[..after].last().filter(|stretch| stretch.end > gap.start) else {
                continue;
            };
            gap.inside |= works(case, events, stretch);
            if other {
                let due = overdue(case, cpu, stretch, gap).or_else(|| stands(case, cpu, stretch, gap));
                gap.due = [gap.due, due].into_iter().flatten().min();
                let long = gap.end.saturating_sub(gap.start) > tick.saturating_mul(PERIODS);
                let busy = long && is_busy(stretch) && !tickless.contains(cpu);
                gap.missed |= busy && ticks::came_around(events, gap.start, gap.end, tick);
            }
        }
    }
    let certainty = if is_virtual(case.host) { StopCertainty::Contested } else { StopCertainty::Proven };
    gaps.iter().flat_map(|gap| gap.stops(certainty)).collect()
}

/// Time since which, within the gap, a timer was due on a CPU where nothing could delay it.
fn overdue(case: &Case<'_>, cpu: Cpu, stretch: &Stretch, gap: &Gap) -> Option<i64> {
    let idle = stretch.top == RunningContext::Thread && stretch.pid == Some(0);
    if case.current(stretch).is_some_and(|task| is_stopper(&task)) {
        return None;
    }
    let events = case.events(cpu);
    let end = events.partition_point(|event| event.time.0 <= gap.start);
    let mut first: Option<i64> = None;
    for StartedTimer { timer, due, start: event } in started_timers(&events[..end]) {
        // A due time before the start belongs to another clock. A timer long overdue while the CPU
        // works is no longer pending.
        if due < event.time.0 || stretch.start.saturating_sub(due) > MAX_LATE_INTERRUPT_NS {
            continue;
        }
        let due = due.max(gap.start);
        let exit =
            case.host.idle_exit_ns.iter().max().copied().unwrap_or(0).min(MAX_LATE_VCPU_NS.unsigned_abs());
        let least = if is_virtual(case.host) { MAX_LATE_VCPU_NS } else { MAX_BOUNDED_NS + exit as i64 };
        if is_virtual(case.host) && !ends_for_all(case, cpu, gap) {
            return None;
        }
        let long = gap.end.saturating_sub(due) > least;
        // A late expiry proves that it was pending; if a thread slept on the timer, so does the
        // lack of a wake-up of the thread.
        let expires = || idle && expires_after(events, timer, gap.end);
        let sleeps =
            || sleep(event) && sleeps(case, event, gap.start) && late(case, cpu, timer, gap, due, idle);
        let waits = || expires() || sleeps();
        if timer != 0 && long && waits() {
            first = Some(first.map_or(due, |first| first.min(due)));
        }
    }
    first
}

/// True if a thread started the timer to sleep on it: others are cancelled without an event, above
/// all the tick's.
fn sleep(event: &Named) -> bool {
    let own = !event.context.hard_irq() && !event.context.soft_irq();
    own && matches!(&event.what, What::TimerStart { function, .. } if function == "hrtimer_wakeup")
}

/// True if the thread that started a timer still sleeps: a woken thread cancels it.
fn sleeps(case: &Case<'_>, start: &Named, until: i64) -> bool {
    let woken = |event: &&Named| {
        (start.time.0..=until).contains(&event.time.0)
            && match &event.what {
                What::Waking { task, .. } | What::Switch { next: task, .. } => task.pid == start.pid,
                _ => false,
            }
    };
    let slept = |event: &&Named| match &event.what {
        What::Switch { prev, state, .. } => {
            prev.pid == start.pid
                && !matches!(state, 0 | 256)
                && event.time >= start.time
                && event.time.0 <= until
        }
        _ => false,
    };
    case.window.events.iter().any(|event| slept(&event))
        && !case.window.events.iter().any(|event| woken(&event))
}

/// True if the CPU resumes like a stopped one: it has no event for longer than the gap, and unless
/// it was idle its stack at the expiry shows that interrupts were on.
fn late(case: &Case<'_>, cpu: Cpu, timer: u64, gap: &Gap, due: i64, idle: bool) -> bool {
    let events = case.events(cpu);
    let after = events.partition_point(|event| event.time.0 < gap.end);
    let soon = gap.end.saturating_add(gap.end.saturating_sub(due));
    if events.get(after).is_some_and(|event| event.time.0 > soon) {
        return false;
    }
    let is =
        |event: &&Named| matches!(event.what, What::TimerEntry { timer: expired, .. } if expired == timer);
    let expiry = events[after..].iter().take(MAX_EVENTS_BACK).position(is);
    // It continues without an expiry: the timer was no longer pending.
    let at_once = gap.end.saturating_add(MAX_LATE_INTERRUPT_NS);
    let expired = expiry.and_then(|at| events.get(after + at)).map(|event| event.time.0);
    let goes_on = events.last().is_some_and(|event| event.time.0 > at_once);
    if goes_on && expired.is_none_or(|time| time > at_once) {
        return false;
    }
    idle || expiry.is_some_and(|at| {
        let stack = case.stack_of(cpu, after + at);
        stack.is_some_and(|(frames, enables)| !frames.is_empty() && enables.is_none())
    })
}

fn is_busy(stretch: &Stretch) -> bool {
    matches!(stretch.top, RunningContext::Thread | RunningContext::Work(_))
        && stretch.pid.is_some_and(|pid| pid != 0)
}

/// True if the CPU may silence others: in `stop_machine`, or waiting for a lock.
fn works(case: &Case<'_>, events: &[&Named], stretch: &Stretch) -> bool {
    if case.current(stretch).is_some_and(|task| is_stopper(&task)) {
        return true;
    }
    let end = events.partition_point(|event| event.time.0 <= stretch.start);
    let last = events[..end].iter().rev().find(|event| {
        matches!(event.what, What::ContentionBegin { .. } | What::ContentionEnd { .. } | What::Switch { .. })
    });
    last.is_some_and(|event| matches!(event.what, What::ContentionBegin { flags, .. } if flags & 1 != 0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::fixture::{explained, explained_on, host, slice_lines, window};
    use model::run::Host;

    /// A FIFO thread has the victim's CPU for 20 ms; the other CPU has the given events.
    fn with(hog: &str, other: &str) -> Vec<String> {
        let events = format!(
            "-500  1 50 d  switch rt/50/19 S {hog}
             2     1 60 dh vector+ local_timer
             3     1 60 dh timer+ 1 hrtimer_wakeup
             4     1 60 dh waking rt/50/19
             5     1 60 dh timer- 1
             5     1 60 dh vector- local_timer
             {other}
             20005 1 60 d  switch {hog} S rt/50/19"
        );
        slice_lines(&explained(20_005.0, &events))
    }

    const BUSY: &str = "
        -900  0 8 d  switch a/7/120 R load/8/120
        -100  0 8 dh vector+ local_timer
        -90   0 8 dh vector- local_timer
        20000 0 8 dh vector+ local_timer
        20001 0 8 dh vector- local_timer";
    const HOG: &str = "hog/60/9";

    #[test]
    fn a_busy_cpu_that_misses_its_ticks_was_stopped() {
        assert_eq!(
            with(HOG, BUSY),
            ["timer-irq local_timer 3", "stopped 19995", "thread hog 5", "unexplained 2"]
        );
    }

    #[test]
    fn what_has_another_reason_is_no_stop() {
        let hog = ["timer-irq local_timer 3", "thread hog 20000", "unexplained 2"];
        for (why, other) in [
            ("it ticks on", BUSY.replace("20000 0", "10000 0").replace("20001 0", "10001 0")),
            ("it idles", BUSY.replace("load/8/120", "swapper/0/120").replace(" 0 8 ", " 0 0 ")),
            ("it never ticks", BUSY.replace("local_timer", "reschedule")),
            ("its events end", BUSY.lines().take(4).collect::<Vec<_>>().join("\n")),
            ("it is the stopper", BUSY.replace("load/8/120", "migration/0/8/-1")),
            ("it waits for a lock", BUSY.replace("20000 0", "-80 0 8 d spin+ 4\n20000 0")),
            (
                "it is in an interrupt",
                BUSY.lines().filter(|line| !line.contains("-90")).collect::<Vec<_>>().join("\n"),
            ),
            ("there is none", String::new()),
        ] {
            assert_eq!(with(HOG, &other), hog, "{why}");
        }
        assert_eq!(with("migration/1/60/-1", BUSY)[2], "stop-machine migration/1 20000");
    }

    const IDLE: &str = "
        -4000 0 8 .  start 7 hrtimer_wakeup 1000
        -3990 0 8 d  switch pulse/8/120 S swapper/0/120
        -3980 0 0 d  idle 1
        20005 0 0 dh vector+ local_timer
        20006 0 0 dh timer+ 7 hrtimer_wakeup";

    /// The victim's timer arrives where interrupts are enabled, 20 ms late; the other CPU has the
    /// given events.
    fn off(other: &str) -> Vec<String> {
        slice_lines(&explained(20_010.0, &events(other)))
    }

    pub fn events(other: &str) -> String {
        format!(
            "-500  1 50 d  switch rt/50/19 S busy/60/120
             20000 1 60 dh vector+ local_timer
             20001 1 60 dh timer+ 1 hrtimer_wakeup
             20001 1 60 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,hold,write 2
             20002 1 60 dh waking rt/50/19
             20003 1 60 dNh timer- 1
             20004 1 60 dNh vector- local_timer
             20004 1 60 d  switch busy/60/120 P rt/50/19
             {other}"
        )
    }

    #[test]
    fn a_timer_that_was_due_on_an_idle_cpu_shows_a_stop() {
        // Before its timer was due only the silence shows the stop.
        let stopped =
            ["stopped 1000", "stopped 19000", "timer-irq local_timer 4", "return-to-user 6", "unexplained 0"];
        assert_eq!(off(IDLE), stopped);
        let slices = explained(20_010.0, &events(IDLE)).slices;
        assert_eq!([slices[0].estimated, slices[1].estimated], [true, false]);
        // The window may end before the other CPU's first event.
        assert_eq!(off(&IDLE.lines().take(4).collect::<Vec<_>>().join("\n")), stopped);
        // An idle virtual CPU may resume slowly by itself.
        let slow = "
            -4000 0 8 .  start 7 hrtimer_wakeup 15000
            -3990 0 8 d  switch pulse/8/120 S swapper/0/120
            20005 0 0 dh vector+ local_timer";
        let of = |virtualization: &str, other: &str| {
            let host = Host { virtualization: virtualization.to_owned(), ..host() };
            slice_lines(&explained_on(&host, &window(20_010.0, &events(other)))).swap_remove(0)
        };
        assert_eq!(of("none", slow), "irqs-off hold/busy 15000", "the last 5 ms have no such evidence");
        let sleepy = Host { idle_exit_ns: vec![0, 5_000_000], ..host() };
        let events = events(slow);
        assert_eq!(
            slice_lines(&explained_on(&sleepy, &window(20_010.0, &events)))[0],
            "irqs-off hold/busy 20000"
        );
        assert_eq!(of("kvm", slow), "irqs-off hold/busy 20000");
        // There it is weighed at the end of the run against any other cause.
        let kvm = Host { virtualization: "kvm".to_owned(), ..host() };
        let slices = |other: &str| explained_on(&kvm, &window(20_010.0, &self::events(other))).slices;
        let first = slices(IDLE).swap_remove(0);
        assert_eq!((first.kind.as_str(), first.contested), ("irqs-off", true));
        let apart = IDLE.replace("20005 0", "24100 0").replace("20006 0", "24101 0");
        assert!(slices(&apart).iter().all(|slice| !slice.contested));
        // Also against a softirq or a thread.
        assert_eq!(
            with(HOG, IDLE),
            ["timer-irq local_timer 3", "stopped 995", "stopped 19005", "unexplained 2"]
        );
        // Due late in the gap: the time before may have been inside.
        let late = IDLE.replace("hrtimer_wakeup 1000", "hrtimer_wakeup 15000");
        assert_eq!(off(&late)[0], "irqs-off hold/busy 15000");
    }

    #[test]
    fn a_busy_cpu_shows_a_stop_where_its_stack_shows_that_interrupts_were_on() {
        let busy = |stack: &str| {
            let events = "
                -4000 0 8 .  start 7 hrtimer_wakeup 1000
                -3990 0 8 d  switch pulse/8/120 S load/9/120
                20005 0 9 dh vector+ local_timer
                20006 0 9 dh timer+ 7 hrtimer_wakeup";
            off(&format!("{events}\n{stack}")).swap_remove(0)
        };
        let off = "irqs-off hold/busy 20000";
        let stack = "20006 0 9 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,memcpy,read";
        assert_eq!(busy(stack), "stopped 1000");
        assert_eq!(busy(&format!("{stack} 2")), off, "it had interrupts off itself");
        assert_eq!(busy(""), off);
    }

    #[test]
    fn a_timer_that_was_not_due_or_not_waited_for_shows_nothing() {
        // A timer that expires afterwards was pending, in whichever context it was started.
        let never = IDLE.replace("20006 0 0 dh timer+ 7 hrtimer_wakeup", "20006 0 0 dh vector- local_timer");
        for (why, other) in [
            ("not due", IDLE.replace("hrtimer_wakeup 1000", "hrtimer_wakeup 19500")),
            (
                "it goes on",
                format!(
                    "{IDLE}\n9000 0 0 dh vector+ reschedule\n9001 0 0 dh vector- reschedule\n14000 0 0 d idle"
                ),
            ),
            ("cancelled", never.replace("-3980 0 0", "-3985 1 60 . waking pulse/8/120\n-3980 0 0")),
            ("expired", IDLE.replace("-3980 0 0", "-3985 0 0 dh timer+ 7 hrtimer_wakeup\n-3980 0 0")),
            (
                "started anew",
                IDLE.replace("-3980 0 0", "-3985 0 0 dh start 7 hrtimer_wakeup 30000\n-3980 0 0"),
            ),
            ("a tick, which may be stopped", never.replace("hrtimer_wakeup 1000", "tick_nohz_handler 1000")),
            ("started in an interrupt", never.replace("0 8 .  start", "0 8 dh start")),
            ("another clock", IDLE.replace("hrtimer_wakeup 1000", "hrtimer_wakeup -100000")),
            ("stop_machine", IDLE.replace("swapper/0/120", "migration/0/9/-1").replace(" 0 0 ", " 0 9 ")),
            ("no timer", IDLE.replace("-4000", "-4000 0 8 . waking x/3/120\n#")),
        ] {
            let first = off(&other).swap_remove(0);
            assert!(first.starts_with("irqs-off hold/busy"), "{why}: {first}");
        }
    }

    #[test]
    fn any_timer_that_expires_late_on_an_idle_cpu_was_pending() {
        let tick = IDLE.replace("hrtimer_wakeup 1000", "tick_nohz_handler 1000");
        assert_eq!(off(&tick)[0], "stopped 1000");
    }

    #[test]
    fn missed_ticks_do_not_outweigh_what_is_known_of_the_victims_cpu() {
        assert_eq!(off(BUSY)[0], "irqs-off hold/busy 20000");
    }
}
