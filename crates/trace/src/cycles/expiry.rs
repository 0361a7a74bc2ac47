//! Which timer's function runs on a CPU, and when it was to be called.

use std::collections::BTreeMap;

use crate::event::{Address, Raw};
use model::units::{Cpu, Nanos};

/// No interrupt takes longer, and no two clocks of the kernel are nearer to each other without
/// being one.
const SAME_CLOCK: i64 = 1_000_000_000;

/// A timer that was due longer ago when it was started is taken for one of another clock.
const MAX_OVERDUE: i64 = 60_000_000_000;

/// Timers whose next expiry is known; a thread has one or two.
const MAX_KNOWN: usize = 4_096;

/// A timer's function between its entry and its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiring {
    pub timer: Address,
    pub cpu: Cpu,
    /// When it was to be called; its entry where the start is not known.
    pub due: Nanos,
    /// The distance of its clock from the trace's.
    pub offset: i64,
    pid: i32,
    hard: bool,
}

/// The timers of followed threads.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpiringTimers {
    /// When each was to expire, on its own clock, from its start to its expiry.
    starts: BTreeMap<Address, Nanos>,
    /// Timers that released a thread: their starts are of interest, whoever starts them.
    /// Each with the distance of its clock from the trace's.
    releasing: BTreeMap<Address, i64>,
    /// Innermost last.
    open: BTreeMap<Cpu, Vec<Expiring>>,
}

impl ExpiringTimers {
    pub fn started(&mut self, timer: Address, expires: Nanos) {
        if self.starts.len() >= MAX_KNOWN {
            self.starts.clear();
        }
        self.starts.insert(timer, expires);
    }

    pub fn started_by_another(&mut self, timer: Address, expires: Nanos) {
        if self.releasing.contains_key(&timer) {
            self.started(timer, expires);
        } else {
            // The same address is another's timer by now: what is known of it is not its start.
            self.starts.remove(&timer);
        }
    }

    pub fn remember(&mut self, timer: Option<Address>, offset: i64) {
        if self.releasing.len() >= MAX_KNOWN {
            self.releasing.clear();
        }
        self.releasing.extend(timer.map(|timer| (timer, offset)));
    }

    /// A timer that was due when it was started: it has no expiry.
    pub fn due_at_start(&mut self, event: &Raw, timer: Address) -> Expiring {
        let offset = self.releasing.get(&timer).copied().unwrap_or(0);
        let due = self.starts.remove(&timer).map(|at| Nanos(at.0.wrapping_sub(offset)));
        let near = due.filter(|due| (0..=MAX_OVERDUE).contains(&event.time.0.wrapping_sub(due.0)));
        let due = near.unwrap_or(event.time);
        Expiring { timer, cpu: event.cpu, due, offset, pid: event.pid, hard: false }
    }

    /// The function of a timer is called.
    pub fn entered(&mut self, event: &Raw, timer: Address, now: Nanos) {
        // The timer's clock may not be the trace's: `now` shows their offset. On the same clock
        // `now` is read once per interrupt: what lies between is other timers' functions.
        let offset = match now.0.wrapping_sub(event.time.0) {
            behind if (-SAME_CLOCK..=0).contains(&behind) => 0,
            offset => offset,
        };
        // Each start brings one expiry: the next one takes another.
        let expires = self.starts.remove(&timer);
        let due = expires.map_or(event.time, |at| Nanos(at.0.wrapping_sub(offset)).min(event.time));
        let open = self.open.entry(event.cpu).or_default();
        open.retain(|known| known.timer != timer);
        open.truncate(8);
        let (cpu, pid, hard) = (event.cpu, event.pid, event.context.hard_irq());
        open.push(Expiring { timer, cpu, due, offset, pid, hard });
    }

    pub fn left(&mut self, cpu: Cpu, timer: Address) {
        if let Some(open) = self.open.get_mut(&cpu) {
            if let Some(at) = open.iter().rposition(|known| known.timer == timer) {
                open.truncate(at);
            }
        }
    }

    /// The timer in whose function an event lies: not that of an interrupt on top of it, nor that
    /// of another thread that runs meanwhile.
    pub fn around(&self, event: &Raw) -> Option<Expiring> {
        let last = self.open.get(&event.cpu)?.last()?;
        (last.pid == event.pid && last.hard == event.context.hard_irq()).then_some(*last)
    }

    pub fn forget(&mut self) {
        self.starts.clear();
        self.open.clear();
    }
}
