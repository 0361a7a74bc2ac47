//! End of a sleep within a cycle: a time-out, the thread that released a lock, or a thread that
//! woke it for a reason that no event shows, such as a signal.
//!
//! Sources: kernel/time/hrtimer.c (`hrtimer_wakeup` wakes the thread whose sleep has the timer),
//! kernel/time/timer.c (`process_timeout`), kernel/locking/rtmutex.c (`mark_wakeup_next_waiter`
//! returns the inherited priority, and preemption is off from there to the waking),
//! include/uapi/linux/futex.h (the operations that wake).

use super::locks::{LockProof, open_contention};
use super::tasks::{Tasks, runs_softirqs};
use crate::cycles::place::SleepKind;
use crate::event::{Named, What};
use crate::kernel_functions::named;
use crate::window::Window;
use model::run::Who;

/// Limit of events of a CPU before a waking that are searched for its reason.
const MAX_EVENTS: usize = 256;

/// Limit of events of all CPUs that are searched for the waker's call.
const MAX_CALL_EVENTS: usize = 4096;

/// Mask without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const FUTEX_CMD_MASK: u64 = 0x7f;

/// Longest delay of a timer on the trace's clock, in nanoseconds.
const MAX_LATE: u64 = 60_000_000_000;

/// End of a sleep.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SleepEnd {
    TimeOut,
    /// A thread that returned the priority which it had inherited from the one that it woke, or
    /// that was in a call which wakes the waiters of a futex.
    Released(Who),
    Woken(Who),
    Interrupt,
    /// No event shows the waking.
    Unknown,
}

impl SleepEnd {
    /// Classifies a sleep of this kind from a switch to a waking, with all events of a window in
    /// order of time.
    pub(super) fn of(
        window: &Window,
        ordered: &[&Named],
        tasks: &Tasks,
        kind: SleepKind,
        slept: Option<&Named>,
        woken: Option<&Named>,
    ) -> SleepEnd {
        let Some(waking) = woken else { return SleepEnd::Unknown };
        let end = ordered.partition_point(|event| event.time < waking.time);
        // Others of the same nanosecond may precede it.
        let same = ordered[end..].iter().position(|event| std::ptr::eq(*event, waking));
        let earlier = &ordered[..end + same.unwrap_or(0)];
        let before: Vec<&Named> =
            earlier.iter().rev().filter(|event| event.cpu == waking.cpu).take(MAX_EVENTS).copied().collect();
        if times_out(&before, waking) {
            return SleepEnd::TimeOut;
        }
        if waking.context.hard_irq() || waking.context.soft_irq() {
            return SleepEnd::Interrupt;
        }
        let who = tasks.who(waking.pid, waking.time.0);
        let released = slept.is_some_and(|slept| releases(&before, slept, waking))
            || slept.is_some_and(|slept| releases_contended(ordered, &before, slept, waking))
            || wakes_by_futex(window, earlier, kind, waking.pid);
        if released { SleepEnd::Released(who) } else { SleepEnd::Woken(who) }
    }

    /// Thread to name for the sleep. For a lock only one that has released it.
    pub(super) fn who(&self, kind: SleepKind, function: &str) -> Who {
        let who = match self {
            SleepEnd::Released(who) => who.clone(),
            SleepEnd::Woken(who) if kind != SleepKind::Lock => who.clone(),
            _ => Who::default(),
        };
        named(who, function)
    }

    /// Thread that held the lock of the sleep. A signal also ends the wait for a lock with priority
    /// inheritance: for that only a thread known to have released it.
    pub(super) fn holder(&self, proof: LockProof) -> Option<i32> {
        let pid = match (self, proof) {
            (_, LockProof::None) | (SleepEnd::Woken(_), LockProof::Inheriting) => 0,
            (SleepEnd::Released(who) | SleepEnd::Woken(who), _) => who.pid,
            _ => 0,
        };
        (pid != 0).then_some(pid)
    }

    /// Text of the sleep.
    pub(super) fn words(&self, kind: SleepKind, function: &str, proof: LockProof) -> String {
        let place = if kind == SleepKind::Futex { "futex" } else { function };
        match self {
            SleepEnd::Released(who) | SleepEnd::Woken(who) if proof == LockProof::Plain => {
                format!("waited for a lock held by {} ({place})", name(who))
            }
            _ => self.words_of_place(kind, function),
        }
    }

    fn words_of_place(&self, kind: SleepKind, function: &str) -> String {
        let place = match kind {
            SleepKind::Futex => "futex,".to_owned(),
            SleepKind::Lock => "a lock with priority inheritance,".to_owned(),
            SleepKind::Page => "it slept in a page fault".to_owned(),
            SleepKind::Output | SleepKind::Other => format!("it slept in {function}"),
            SleepKind::Unknown => "it slept, without a stack,".to_owned(),
        };
        match (self, kind) {
            (SleepEnd::TimeOut, _) => format!("{place} until its time-out"),
            (SleepEnd::Released(who), SleepKind::Lock | SleepKind::Futex) => {
                format!("{place} released by {}", name(who))
            }
            // Releasing a mutex and sending a signal wake by the same event.
            (SleepEnd::Woken(who), SleepKind::Futex) => format!("{place} woken by {}", name(who)),
            (SleepEnd::Released(who) | SleepEnd::Woken(who), _) => {
                format!("{place} until {} woke it", name(who))
            }
            (SleepEnd::Interrupt, _) => format!("{place} until an interrupt woke it"),
            (SleepEnd::Unknown, _) => format!("{place} until an unknown source woke it"),
        }
    }
}

fn name(who: &Who) -> String {
    let comm = if who.comm.is_empty() { "thread" } else { &who.comm };
    format!("{comm}:{}", who.pid)
}

/// True if the waking is in the function of a timer that ends its own thread's sleep. `before` has
/// the events before it on its CPU, the last first.
fn times_out(before: &[&Named], waking: &Named) -> bool {
    let same =
        |event: &&&Named| event.pid == waking.pid && event.context.hard_irq() == waking.context.hard_irq();
    let of_timers = before.iter().filter(same).find_map(|event| match &event.what {
        What::TimerEntry { function, .. } | What::WheelEntry { function } => Some(Some(function)),
        What::TimerExit { .. } | What::WheelExit => Some(None),
        _ => None,
    });
    let bare = |function: &String| {
        let name = function.split(['.', ' ', '+']).next().unwrap_or_default();
        matches!(name, "hrtimer_wakeup" | "process_timeout")
    };
    of_timers.flatten().is_some_and(bare)
}

/// Due time of the timer that ended a sleep: the last one that the thread had started. None for a
/// timer of another clock, whose time cannot be compared.
pub(super) fn due(ordered: &[&Named], slept: &Named, end: i64) -> Option<i64> {
    let before = &ordered[..ordered.partition_point(|event| event.time <= slept.time)];
    let own =
        |event: &&&Named| event.pid == slept.pid && !event.context.hard_irq() && !event.context.soft_irq();
    let expires = before.iter().rev().filter(own).find_map(|event| match event.what {
        What::TimerStart { expires, .. } => Some(expires.0),
        _ => None,
    });
    expires.filter(|expires| expires.abs_diff(end) <= MAX_LATE)
}

/// True if the waker returned an inherited priority for this waking: it had at least the sleeper's
/// until then, and less afterwards. `before` has earlier events on its CPU, the last first.
fn releases(before: &[&Named], slept: &Named, waking: &Named) -> bool {
    let What::Switch { prev: sleeper, .. } = &slept.what else { return false };
    for event in before.iter().take_while(|event| event.time >= slept.time) {
        let in_interrupt = event.context.hard_irq() || event.context.soft_irq();
        match &event.what {
            // Within the unlock it neither sleeps nor wakes another thread.
            What::Switch { .. } => return false,
            // The exit of an interrupt wakes the softirqs' thread.
            What::Waking { task, .. } if !in_interrupt && !runs_softirqs(task) => return false,
            What::Inherit { pid, old, new } if *pid == waking.pid && event.pid == waking.pid => {
                return *old <= sleeper.prio && *new > sleeper.prio;
            }
            _ => {}
        }
    }
    false
}

/// True if the waker had just released the kernel lock that the sleeper waits for (since 7.2).
/// `before` has earlier events on its CPU, the last first.
fn releases_contended(ordered: &[&Named], before: &[&Named], slept: &Named, waking: &Named) -> bool {
    let Some((waited, _)) = open_contention(ordered, slept) else { return false };
    let since = before.iter().take_while(|event| event.time >= slept.time);
    let own = since.take_while(|event| !matches!(event.what, What::Switch { .. }));
    own.filter(|event| event.pid == waking.pid)
        .any(|event| matches!(event.what, What::ContendedRelease { lock } if lock == waited))
}

/// Stack recorded at a switch: the next event on that CPU, or the one after a non-maskable
/// interrupt.
pub(super) fn stack_of<'w>(ordered: &[&'w Named], switch: &Named) -> &'w [String] {
    let begin = ordered.partition_point(|event| event.time < switch.time);
    let same = ordered[begin..].iter().filter(|event| event.cpu == switch.cpu);
    let mut after = same.skip_while(|event| !std::ptr::eq(**event, switch)).skip(1).take(4);
    match after.find(|event| !matches!(event.what, What::Nmi { .. })).map(|event| &event.what) {
        Some(What::Stack { frames, .. }) => frames,
        _ => &[],
    }
}

/// True if the waker was in a call of futex(2) that wakes such a sleeper, by the last of its
/// recorded calls: no signal is sent from there.
fn wakes_by_futex(window: &Window, earlier: &[&Named], kind: SleepKind, waker: i32) -> bool {
    // FUTEX_WAKE, _REQUEUE, _CMP_REQUEUE, _WAKE_OP, _WAKE_BITSET; for locks FUTEX_UNLOCK_PI.
    let gives: &[u64] = match kind {
        SleepKind::Futex => &[1, 3, 4, 5, 10],
        SleepKind::Lock => &[7],
        _ => return false,
    };
    let own = earlier.iter().rev().take(MAX_CALL_EVENTS).filter(|event| event.pid == waker);
    let mut calls = own.filter_map(|event| match &event.what {
        What::SyscallEntry { id, args } => Some(Some((*id, args[1] & FUTEX_CMD_MASK))),
        What::SyscallExit { .. } => Some(None),
        _ => None,
    });
    // If events are lost, one of them may be this call's exit.
    let call = calls.next().flatten().filter(|_| window.events_lost == 0);
    let is_futex = |id: i64| window.calls.get(&id).is_some_and(|name| name == "futex");
    call.is_some_and(|(id, operation)| is_futex(id) && gives.contains(&operation))
}
