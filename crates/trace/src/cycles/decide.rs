//! Classification of a sleep as the wait for the next release or not, by its end.

use super::ReleaseKind;
use super::expiry::Expiring;
use super::place::{SleepKind, SleepPlace};
use crate::event::Task;
use model::units::{Cpu, Nanos};

/// Wake-up of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    pub time: Nanos,
    /// Timer in whose function it happened.
    pub timer: Option<Expiring>,
    /// Waking thread; without a name for an interrupt.
    pub by: Task,
    pub in_interrupt: bool,
    /// True if system calls are recorded: a futex that is no mutex is then a condition.
    pub is_condition: bool,
}

/// Sleep of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadSleep {
    pub since: Nanos,
    pub cpu: Cpu,
    /// `prev_state` of the switch.
    pub state: i64,
    pub place: SleepPlace,
    /// True if the thread had armed a timer since its last wake-up.
    pub timed: bool,
    /// True if it waits for a mutex, by the arguments of its system call.
    pub mutex: bool,
}

impl ThreadSleep {
    /// Key that equal sleeps have in common. A wait for a futex with a time-out differs from one
    /// without, which may be for a mutex.
    pub fn key(&self) -> Option<(SleepPlace, bool)> {
        let known = self.place.kind != SleepKind::Unknown;
        known.then_some((self.place, self.timed && self.place.kind == SleepKind::Futex))
    }
}

/// Classification of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SleepVerdict {
    /// It ended the cycle, and the thread was released for the next one at this time.
    Released(ReleaseKind, Nanos),
    /// It was within the cycle: a lock, a page, a disk.
    Blocked,
    Untold,
}

/// Observations on the thread's other sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// True if it was released from a sleep like this one before.
    pub releases_here: bool,
    /// True if timers release it by a schedule, and not at this place.
    pub off_schedule: bool,
    /// True if a timer releases it repeatedly.
    pub timer_driven: bool,
    /// True if that timer follows a schedule.
    pub scheduled: bool,
    /// True if its waits for a futex are more than half as many as those releases.
    pub waits_often: bool,
}

/// TASK_INTERRUPTIBLE alone: any other sleep is for the kernel's own needs, or a stop
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
    // A time-out within its cycle: the awaited event did not occur.
    if waking.timer.is_some() && habits.off_schedule {
        return SleepVerdict::Blocked;
    }
    if let Some(timer) = waking.timer {
        return SleepVerdict::Released(ReleaseKind::Timer, timer.due);
    }
    let by_interrupt = waking.in_interrupt || waking.by.comm.text().starts_with("irq/");
    let kind = if by_interrupt { ReleaseKind::Interrupt } else { ReleaseKind::Thread };
    // A device may consume output at the thread's own pace; a thread that reads it is late.
    if sleep.place.kind == SleepKind::Output && !by_interrupt {
        return SleepVerdict::Blocked;
    }
    if habits.releases_here {
        return SleepVerdict::Released(kind, waking.time);
    }
    let nameless = matches!(sleep.place.kind, SleepKind::Futex | SleepKind::Unknown) && !waking.is_condition;
    // A thread that waits for work and then sleeps a while does so each time; one that waits for a
    // lock in each cycle still has a schedule.
    if habits.timer_driven && nameless && habits.waits_often && !habits.scheduled {
        return SleepVerdict::Untold;
    }
    // Its cycles begin with its timer's expiry, so that other waits are within them.
    if habits.timer_driven {
        return SleepVerdict::Blocked;
    }
    match sleep.place.kind {
        // No interrupt releases a lock.
        _ if by_interrupt => SleepVerdict::Released(kind, waking.time),
        _ if nameless => SleepVerdict::Untold,
        _ => SleepVerdict::Released(kind, waking.time),
    }
}
