//! Whether a sleep was for the next release: it is judged by what ended it.

use super::ReleaseKind;
use super::expiry::Expiring;
use super::place::{SleepKind, SleepPlace};
use crate::event::Task;
use model::units::{Cpu, Nanos};

/// How a thread was woken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    pub time: Nanos,
    /// The timer in whose function it was.
    pub timer: Option<Expiring>,
    /// The thread that woke it; no name where an interrupt did.
    pub by: Task,
    pub in_interrupt: bool,
    /// Whether its system calls are recorded: a futex that is no mutex is then a condition.
    pub told: bool,
}

/// A thread's sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadSleep {
    pub since: Nanos,
    pub cpu: Cpu,
    /// `prev_state` of its switch.
    pub state: i64,
    pub place: SleepPlace,
    /// It had armed a timer since it was last woken.
    pub timed: bool,
    /// It waits for a mutex, by the arguments of its system call.
    pub mutex: bool,
}

impl ThreadSleep {
    /// What equal sleeps have in common. A wait for a futex with a time-out is another one than
    /// that without, which may be for a mutex.
    pub fn key(&self) -> Option<(SleepPlace, bool)> {
        let known = self.place.kind != SleepKind::Unknown;
        known.then_some((self.place, self.timed && self.place.kind == SleepKind::Futex))
    }
}

/// What a sleep was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SleepVerdict {
    /// It ended the cycle, and this released the thread for the next one, at a time.
    Released(ReleaseKind, Nanos),
    /// It was within the cycle: a lock, a page, a disk.
    Blocked,
    Untold,
}

/// What is known of the thread's other sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// It has been released from a sleep like this one before.
    pub releases_here: bool,
    /// Timers release it by a schedule, and not at this place.
    pub off_schedule: bool,
    /// A timer releases it again and again.
    pub timer_driven: bool,
    /// That timer keeps a schedule of its own.
    pub scheduled: bool,
    /// Its waits for a futex are as many as half of those releases.
    pub waits_often: bool,
}

/// TASK_INTERRUPTIBLE alone: any other sleep is for what the kernel itself needs, or a stop
/// (include/linux/sched.h). On PREEMPT_RT a sleeping spin lock counts as uninterruptible
/// (`__trace_sched_switch_state`).
const INTERRUPTIBLE: i64 = 1;

pub(super) fn verdict(sleep: &ThreadSleep, waking: &Waking, habits: Habits) -> SleepVerdict {
    if sleep.state & 0xff != INTERRUPTIBLE {
        return SleepVerdict::Blocked;
    }
    if matches!(sleep.place.kind, SleepKind::Lock | SleepKind::Page) || sleep.mutex {
        return SleepVerdict::Blocked;
    }
    // A time-out within its cycle: what it waited for did not come.
    if waking.timer.is_some() && habits.off_schedule {
        return SleepVerdict::Blocked;
    }
    if let Some(timer) = waking.timer {
        return SleepVerdict::Released(ReleaseKind::Timer, timer.due);
    }
    let by_interrupt = waking.in_interrupt || waking.by.comm.text().starts_with("irq/");
    let kind = if by_interrupt { ReleaseKind::Interrupt } else { ReleaseKind::Thread };
    // A device may take what is written at a pace that is the thread's own; a reader is late.
    if sleep.place.kind == SleepKind::Output && !by_interrupt {
        return SleepVerdict::Blocked;
    }
    if habits.releases_here {
        return SleepVerdict::Released(kind, waking.time);
    }
    let nameless = matches!(sleep.place.kind, SleepKind::Futex | SleepKind::Unknown) && !waking.told;
    // One that waits for its work and then sleeps a while does so each time; another that is kept
    // by a lock in each cycle has a schedule all the same.
    if habits.timer_driven && nameless && habits.waits_often && !habits.scheduled {
        return SleepVerdict::Untold;
    }
    // Its cycles begin with its timer's expiry: whatever else it waits for lies within them.
    if habits.timer_driven {
        return SleepVerdict::Blocked;
    }
    match sleep.place.kind {
        // No interrupt hands over a lock.
        _ if by_interrupt => SleepVerdict::Released(kind, waking.time),
        _ if nameless => SleepVerdict::Untold,
        _ => SleepVerdict::Released(kind, waking.time),
    }
}
