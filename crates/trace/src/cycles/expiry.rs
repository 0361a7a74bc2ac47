//! Timers whose functions run on a CPU, and their due times.

use std::collections::BTreeMap;

use crate::event::{Address, Raw};
use model::units::{Cpu, Nanos};

/// Largest difference between readings of the same clock: no interrupt takes longer, and distinct
/// clocks of the kernel differ by more.
const SAME_CLOCK: i64 = 1_000_000_000;

/// A timer that was overdue by more than this when started is assumed to have another clock.
const MAX_OVERDUE: i64 = 60_000_000_000;

/// Limit of timers with a known next expiry; a thread has one or two.
const MAX_KNOWN: usize = 4_096;

/// Timer function between its entry and its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiring {
    pub timer: Address,
    pub cpu: Cpu,
    /// Due time; the time of the entry if its start is unknown.
    pub due: Nanos,
    /// Offset of its clock from the trace's.
    pub offset: i64,
    pid: i32,
    hard: bool,
}

/// Timers of the followed threads.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpiringTimers {
    /// Due time of each started timer, on its own clock, until it expires.
    starts: BTreeMap<Address, Nanos>,
    /// Timers that released a thread, whose starts are tracked for any starter. Each with the
    /// offset of its clock from the trace's.
    releasing: BTreeMap<Address, i64>,
    /// Running timer functions, the innermost last.
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
            // The address is that of another timer by now: the known start is not its own.
            self.starts.remove(&timer);
        }
    }

    pub fn remember(&mut self, timer: Option<Address>, offset: i64) {
        if self.releasing.len() >= MAX_KNOWN {
            self.releasing.clear();
        }
        self.releasing.extend(timer.map(|timer| (timer, offset)));
    }

    /// Handles a timer that was due when it was started, which has no expiry.
    pub fn due_at_start(&mut self, event: &Raw, timer: Address) -> Expiring {
        let offset = self.releasing.get(&timer).copied().unwrap_or(0);
        let due = self.starts.remove(&timer).map(|at| Nanos(at.0.wrapping_sub(offset)));
        let near = due.filter(|due| (0..=MAX_OVERDUE).contains(&event.time.0.wrapping_sub(due.0)));
        let due = near.unwrap_or(event.time);
        Expiring { timer, cpu: event.cpu, due, offset, pid: event.pid, hard: false }
    }

    /// Handles the entry of a timer's function.
    pub fn entered(&mut self, event: &Raw, timer: Address, now: Nanos) {
        // The timer's clock may not be the trace's: `now` shows their offset. On the same clock
        // `now` is read once per interrupt; functions of other timers fill the difference.
        let offset = match now.0.wrapping_sub(event.time.0) {
            behind if (-SAME_CLOCK..=0).contains(&behind) => 0,
            offset => offset,
        };
        // Each start has one expiry: the next expiry needs another start.
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

    /// Timer whose function contains an event, which is not in an interrupt on top of it or in
    /// another thread.
    pub fn around(&self, event: &Raw) -> Option<Expiring> {
        let last = self.open.get(&event.cpu)?.last()?;
        (last.pid == event.pid && last.hard == event.context.hard_irq()).then_some(*last)
    }

    pub fn forget(&mut self) {
        self.starts.clear();
        self.open.clear();
    }
}
