//! Waits for a lock held by another CPU: the waiter has the CPU, but is not to blame.
//!
//! The kernel has an event for it only if a queue of waiters forms, and in a guest that detects a
//! hypervisor none. Other proof is the function of the waiter at the timer's interrupt; or, if it
//! waited with interrupts off, that it continued by releasing a raw lock right after another CPU
//! had left such a section. Since 7.2 an event shows the release of a lock with waiters, for raw
//! locks since 7.3. Without it the slice has no name, and its evidence names the threads on the
//! other CPUs at the time, because the holder of such a lock is on a CPU.
//!
//! Sources: kernel/locking/qspinlock.c, arch/x86/include/asm/qspinlock.h (`virt_spin_lock`),
//! include/linux/spinlock_api_smp.h.

use std::collections::BTreeMap;

use super::case::{Case, Cause};
use super::state::stretches;
use super::tasks::is_stopper;
use crate::event::{Named, What};
use crate::kernel_functions::{is_lock_helper, passes_time, spins_for_lock, unlocks_raw};
use model::run::Who;
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};

/// Limit of named threads on other CPUs: those that ran longest.
const MAX_CPUS_LISTED: usize = 4;
/// Longest time in ns between the release of a lock on one CPU and its taking on another; on a slow
/// machine a tenth of the wait.
const MAX_HANDOVER_NS: i64 = 50_000;
/// Consecutive interrupts that must find preemption off to make it one section.
const MIN_STACKS_IN_A_ROW: usize = 3;
/// Periods of the tick after which a busy CPU without a tick has interrupts off.
const MIN_TICKS: i64 = 3;

/// True if these functions, innermost first, spin for a lock.
pub(super) fn spins(case: &Case<'_>, frames: &[String]) -> bool {
    let waits = |frame: &String| spins_for_lock(frame, &case.host.machine);
    let on_the_way = |frame: &&String| waits(frame) || is_lock_helper(frame) || passes_time(frame);
    frames.iter().take_while(on_the_way).any(waits)
}

/// Cause of a wait, from its proof (`how`), the waiter and its stack, and its time.
pub(super) fn cause(
    case: &Case<'_>,
    waiter: &Who,
    how: &str,
    frames: &[String],
    from: i64,
    to: i64,
) -> Cause {
    let helps = |frame: &&String| {
        !is_lock_helper(frame) && !passes_time(frame) && !spins_for_lock(frame, &case.host.machine)
    };
    let comm = if waiter.comm.is_empty() { "a thread" } else { waiter.comm.as_str() };
    let place = frames.iter().find(helps).map_or_else(String::new, |function| format!(" in {function}"));
    let release = release(case, waiter.pid, from, to);
    let holder = release.map_or_else(Who::default, |event| case.tasks.who(event.pid, event.time.0));
    let held = match release {
        Some(event) => format!("{} released it on CPU {}", holder.comm, event.cpu),
        None => format!("its holder is not known; running at the time: {}", running(case, from, to)),
    };
    let evidence = format!("{comm} waited for a lock{place}: {how}; {held}");
    Cause { stack: frames.to_vec(), ..Cause::new(SliceKind::LockContention, holder, evidence) }
}

/// Release by a thread on another CPU after which a waiter continued. Without an event of the
/// waiter, which a single waiter does not have, releases by several threads prove nothing.
fn release<'w>(case: &Case<'w>, waiter: i32, start: i64, end: i64) -> Option<&'w Named> {
    let own = case.events(case.home()).iter();
    let within = own.filter(|event| event.pid == waiter && (start..=end).contains(&event.time.0));
    let mut begun = within.filter_map(|event| match event.what {
        What::ContentionBegin { lock, .. } => Some(lock),
        _ => None,
    });
    let wanted = begun.next_back();
    let others = case.cpus.iter().filter(|(cpu, _)| **cpu != case.home());
    let releases: Vec<&Named> = others
        .flat_map(|(_, events)| {
            let since = end.saturating_sub(handover(start, end));
            let from = events.partition_point(|event| event.time.0 < since);
            events[from..].iter().copied().take_while(|event| event.time.0 <= end)
        })
        .filter(|event| {
            let of =
                matches!(event.what, What::ContendedRelease { lock } if wanted.is_none_or(|it| it == lock));
            of && event.pid != 0 && !event.context.hard_irq() && !event.context.soft_irq()
        })
        .collect();
    let last = *releases.iter().max_by_key(|event| event.time)?;
    releases.iter().all(|event| event.pid == last.pid).then_some(last)
}

/// Longest time from the end of a wait to the end of its stretch.
pub(super) fn handover(start: i64, end: i64) -> i64 {
    MAX_HANDOVER_NS.max(end.saturating_sub(start) / 10)
}

/// Threads on the other CPUs in that time, as text.
fn running(case: &Case<'_>, from: i64, to: i64) -> String {
    let mut ran: Vec<(i64, String)> = Vec::new();
    for (&cpu, events) in case.cpus.iter().filter(|(cpu, _)| **cpu != case.home()) {
        let mut of: BTreeMap<i32, i64> = BTreeMap::new();
        for stretch in stretches(events, to) {
            let ns = stretch.end.min(to).saturating_sub(stretch.start.max(from));
            if let Some(pid) = stretch.pid.filter(|&pid| pid != 0 && ns > 0) {
                *of.entry(pid).or_default() += ns;
            }
        }
        ran.extend(of.into_iter().map(|(pid, ns)| {
            let comm = case.tasks.who(pid, to).comm;
            let comm = if comm.is_empty() { "a thread".to_owned() } else { comm };
            (ns, format!("{comm} on CPU {cpu}"))
        }));
    }
    ran.compact_sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let more = ran.len().saturating_sub(MAX_CPUS_LISTED);
    let mut threads: Vec<String> = ran.into_iter().take(MAX_CPUS_LISTED).map(|(_, thread)| thread).collect();
    if more > 0 {
        threads.push(format!("{more} more"));
    }
    if threads.is_empty() { "no thread in the events".to_owned() } else { threads.join(", ") }
}

/// Splits a section with interrupts off by its wait: up to the moment at which another CPU left its
/// own section, if this one ended by releasing a raw lock right after that.
pub(super) fn parted(case: &Case<'_>, start: i64, end: i64, cause: Cause) -> Vec<(i64, i64, Cause)> {
    let unlocks =
        cause.kind == SliceKind::IrqsOff && cause.stack.first().is_some_and(|frame| unlocks_raw(frame));
    let held = unlocks
        .then(|| held_elsewhere(case, start, end).or_else(|| wait_until_release(case, &cause, start, end)));
    let held = held.flatten();
    let Some((from, to, how)) = held.filter(|(from, to, _)| from < to) else {
        return vec![(start, end, cause)];
    };
    let waited = self::cause(case, &cause.who, &how, &cause.stack, from, to);
    vec![(start, from, cause.clone()), (from, to, waited), (to, end, cause)]
}

/// Wait shown by the event of the release, if nothing else shows the holder's section.
fn wait_until_release(case: &Case<'_>, cause: &Cause, start: i64, end: i64) -> Option<(i64, i64, String)> {
    let event = release(case, cause.who.pid, start, end)?;
    let how = "it continued when a contended lock was released".to_owned();
    (event.time.0.saturating_sub(start) >= end.saturating_sub(start) / 2).then_some((
        start,
        event.time.0,
        how,
    ))
}

/// Section of another CPU right after which this one ended: the time at which both were in theirs,
/// and the evidence.
fn held_elsewhere(case: &Case<'_>, start: i64, end: i64) -> Option<(i64, i64, String)> {
    let half = end.saturating_sub(start) / 2;
    let close = handover(start, end);
    let others = case.cpus.iter().filter(|(cpu, _)| **cpu != case.home());
    let sections = others.filter_map(|(&cpu, events)| {
        let off = || {
            let (from, to) = silent(case, cpu, events, end, close)?;
            Some((from, to, format!("it continued when CPU {cpu} enabled interrupts again")))
        };
        let pinned = || {
            let (from, to) = pinned(events, start, end, close)?;
            Some((from, to, format!("it continued when CPU {cpu} enabled preemption again")))
        };
        let (from, to, how) = off().or_else(pinned)?;
        Some((from.max(start), to.min(end), how))
    });
    sections
        .filter(|(from, to, _)| to.saturating_sub(*from) >= half.max(1))
        .max_by_key(|(from, to, _)| to - from)
}

/// Silence of a thread until shortly before `end`, with interrupts off: it missed ticks, or its own
/// stack shows that it released a raw lock. A pending interrupt arrives a moment later, so of two
/// sections that end together the one that began later waited for the other.
fn silent(case: &Case<'_>, cpu: Cpu, events: &[&Named], end: i64, close: i64) -> Option<(i64, i64)> {
    let after = events.partition_point(|event| event.time.0 < end.saturating_sub(close));
    let first = events.get(after).filter(|event| event.time.0 <= end.saturating_add(MAX_HANDOVER_NS))?;
    let last = events.get(after.checked_sub(1)?)?;
    let own = case.events(case.home());
    let begun = own[..own.partition_point(|event| event.time.0 < end)].last().map(|event| event.time);
    let together = first.time.0 > end.saturating_sub(MAX_HANDOVER_NS);
    if together && begun.is_none_or(|begun| begun <= last.time) {
        return None;
    }
    let busy = first.pid != 0 && case.tasks.at(first.pid, first.time.0).is_none_or(|task| !is_stopper(&task));
    let hz = case.host.hz.filter(|&hz| hz > 0)?;
    let tickless = CpuSet::parse(&case.host.nohz_full).unwrap_or_default().contains(cpu);
    let tick = (1_000_000_000 / i64::from(hz)).max(1);
    let ticks = first.time.0.saturating_sub(last.time.0) / tick;
    let missed = || ticks >= MIN_TICKS && !tickless && is_entry(first);
    let gave = || {
        (after..events.len()).take(8).any(|at| {
            let stack = case.stack_of(cpu, at);
            let enables = stack.and_then(|(frames, enables)| frames.get(enables?));
            enables.is_some_and(|frame| unlocks_raw(frame))
        })
    };
    (busy && (missed() || gave())).then_some((last.time.0, first.time.0))
}

/// Time in which every interrupt of a thread found preemption off, until it was on again shortly
/// before `end`.
fn pinned(events: &[&Named], start: i64, end: i64, close: i64) -> Option<(i64, i64)> {
    let from = events.partition_point(|event| event.time.0 < start);
    let shows_on = |event: &&&Named| {
        let on = event.preempt == 0 && !event.context.irqs_off();
        let thread = !event.context.hard_irq() && !event.context.soft_irq() && !event.context.nmi();
        match event.what {
            What::Switch { .. } => true,
            What::Stack { .. } | What::Nmi { .. } => false,
            _ => (is_entry(event) && event.preempt == 0) || (on && thread),
        }
    };
    let at = from + events[from..].iter().position(|event| shows_on(&event))?;
    let out = events[at].time.0;
    let held: Vec<&&Named> = events[from..at].iter().filter(|event| is_entry(event)).collect();
    let pid = held.first()?.pid;
    let one = pid != 0 && held.len() >= MIN_STACKS_IN_A_ROW && held.iter().all(|event| event.pid == pid);
    (one && (end.saturating_sub(close)..=end).contains(&out)).then_some((start, out))
}

fn is_entry(event: &Named) -> bool {
    matches!(event.what, What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, slice_lines};
    use model::run::{Slice, Spike};
    use model::slice::SliceKind;

    fn wait(spike: &Spike) -> Slice {
        spike.slices.iter().find(|slice| slice.kind == SliceKind::LockContention).cloned().unwrap()
    }

    /// Waiter that the timer's interrupt finds before a raw lock, with preemption off and
    /// interrupts on.
    fn spin_of(stack: &str) -> Spike {
        let events = format!(
            "-900  0 70 d  switch swapper/0/120 R holder/70/120
             -500  1 50 d  switch rt/50/19 S waiter/60/120
             2     1 60 dh1 vector+ local_timer
             3     1 60 dh1 timer+ 1 hrtimer_wakeup
             3     1 60 dh1 stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,{stack}
             4     1 60 dh2 waking rt/50/19
             5     1 60 dNh timer- 1
             5     1 60 dNh vector- local_timer
             19000 0 70 d  switch holder/70/120 S swapper/0/120
             20005 1 60 d  switch waiter/60/120 P rt/50/19
             20005 1 60 d  stack __schedule,preempt_schedule,_raw_spin_unlock,take+[faults],write"
        );
        explained(20_005.0, &events)
    }

    #[test]
    fn one_that_was_found_waiting_is_not_to_blame() {
        let spike = spin_of("native_queued_spin_lock_slowpath,_raw_spin_lock,take+[faults],write");
        assert_eq!(slice_lines(&spike)[1], "lock-contention 20000");
        let slice = wait(&spike);
        assert_eq!(slice.who, model::run::Who::default());
        for part in
            ["waiter waited for a lock in take [faults]", "not known", "running at the time: holder on CPU 0"]
        {
            assert!(slice.evidence.contains(part), "{part}: {}", slice.evidence);
        }
        // In the section itself, the time is its own.
        assert_eq!(slice_lines(&spin_of("take+[faults],write"))[1], "preempt-off take/waiter 20000");
    }

    /// Both CPUs are in sections with interrupts off; that of CPU 0 ends first.
    fn both(holder: &str, stack: &str) -> Vec<String> {
        let events = format!(
            "-500  1 50 d  switch rt/50/19 S waiter/60/120
             -10   0 70 d  switch swapper/0/120 R holder/70/120
             -5    0 70 d1 waking waiter/60/120
             {holder}
             20000 1 60 dh vector+ local_timer
             20001 1 60 dh timer+ 1 hrtimer_wakeup
             20001 1 60 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,{stack},take+[faults],write 2
             20002 1 60 dh waking rt/50/19
             20004 1 60 dNh vector- local_timer
             20004 1 60 d  switch waiter/60/120 P rt/50/19"
        );
        slice_lines(&explained(20_004.0, &events))
    }

    const UNLOCK: &str = "_raw_spin_unlock_irqrestore";

    #[test]
    fn who_gives_a_contended_lock_free_is_named() {
        // Only the event shows the holder's section.
        let named = both("19990 0 70 d1 release 5", UNLOCK);
        assert_eq!(named[..2], ["lock-contention holder 19990", "irqs-off take/waiter 10"]);
        let events =
            "19895 0 70 d1 release 5\n19900 0 70 dh vector+ local_timer\n19905 0 70 dh vector- local_timer";
        assert_eq!(both(events, UNLOCK)[0], "lock-contention holder 19895");
        let own = "irqs-off take/waiter 20000";
        for other in [
            // Long before, or by an interrupt's handler: no proof of this wait.
            "9000 0 70 d1 release 5",
            "19990 0 70 dh1 release 5",
            // Two threads released locks.
            "19980 2 80 d1 release 6\n19990 0 70 d1 release 5",
        ] {
            assert_eq!(both(other, UNLOCK)[0], own, "{other}");
        }
        // The waiter's own event identifies the lock.
        let queued =
            "1 1 60 d1 spin+ 5\n19991 1 60 d1 spin- 5\n19980 2 80 d1 release 6\n19990 0 70 d1 release 5";
        assert_eq!(both(queued, UNLOCK)[0], "lock-contention holder 19990");
    }

    #[test]
    fn one_that_continued_when_another_cpu_left_its_section_waited() {
        let own = ["irqs-off take/waiter 20000", "timer-irq local_timer 4", "unexplained 0"];
        let waited =
            ["lock-contention 19900", "irqs-off take/waiter 100", "timer-irq local_timer 4", "unexplained 0"];
        let first = "19900 0 70 dh vector+ local_timer\n19905 0 70 dh vector- local_timer";
        assert_eq!(both(first, UNLOCK), waited);
        // It ended long before, or after this one's; or that CPU was idle, or had ticks.
        for other in [
            "9980 0 70 dh vector+ local_timer\n9985 0 70 dh vector- local_timer",
            "20003 0 70 dh vector+ local_timer\n20004 0 70 dh vector- local_timer",
            "5 0 70 d switch holder/70/120 S swapper/0/120\n19980 0 0 dh vector+ local_timer",
            "16000 0 70 dh vector+ local_timer\n16010 0 70 dh vector- local_timer\n19980 0 70 dh vector+ local_timer",
            "",
        ] {
            assert_eq!(both(other, UNLOCK), own, "{other}");
        }
        // Their interrupts arrive a moment later: of two that end together, the one that began
        // first held it.
        let together = "20010 0 70 dh vector+ local_timer\n20015 0 70 dh vector- local_timer";
        assert_eq!(both(together, UNLOCK), own);
        let later = both(&format!("{together}\n3 1 60 d1 waking other/62/120"), UNLOCK);
        assert_eq!(later[0], "lock-contention 20000");
        // Interrupts were re-enabled without releasing a lock.
        let plain = both("19980 0 70 dh vector+ local_timer\n19985 0 70 dh vector- local_timer", "hold");
        assert_eq!(plain[0], "irqs-off hold/waiter 20000");
    }

    #[test]
    fn a_holder_that_takes_its_interrupts_is_known_by_what_they_find() {
        let some = |count: u32, depth: u8| {
            (0..count)
                .map(|n| {
                    format!(
                        "{0} 0 70 dh{depth} vector+ local_timer\n{0} 0 70 dh{depth} vector- local_timer\n",
                        n * 4000 + 100
                    )
                })
                .collect::<String>()
        };
        let out = |depth: u8, at: u32| {
            format!("{}{at} 0 70 d switch holder/70/120 S swapper/0/120", some(5, depth))
        };
        let waited = both(&out(1, 19_990), UNLOCK);
        assert_eq!(waited[..2], ["lock-contention 19990", "irqs-off take/waiter 10"]);
        // Preemption was on, or its section ended long before or not before this one: then it may
        // have waited itself.
        for other in [out(0, 19_990), out(1, 17_000), out(1, 20_003), some(5, 1)] {
            assert_eq!(both(&other, UNLOCK)[0], "irqs-off take/waiter 20000", "{other}");
        }
        // It slept before this one continued.
        let slept = format!("{}12000 0 70 d switch holder/70/120 S swapper/0/120", some(3, 1));
        assert_eq!(both(&slept, UNLOCK)[0], "irqs-off take/waiter 20000");
    }
}
