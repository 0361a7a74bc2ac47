//! Places at which the timer's interrupt arrived, for a kernel whose code cannot be read.
//!
//! All pending interrupts arrive at one instruction, the one after that which enables them. A CPU
//! stopped from outside resumes anywhere, as a punctual interrupt arrives anywhere: a place at
//! which most of them were late enables interrupts.

use std::collections::{BTreeMap, HashMap};

use super::event::{Address, Raw, What};
use model::units::{Cpu, Nanos};

/// Number of late interrupts at one instruction that rules out coincidence.
const MIN_LATE: u64 = 3;

/// Limit of counted places; a trace has some thousands.
const MAX_PLACES: usize = 1 << 16;

/// Arrival of a timer's interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerArrival {
    pub cpu: Cpu,
    pub time: Nanos,
    /// Time of the previous one on this CPU.
    pub before: Option<Nanos>,
}

/// Numbers of interrupts at one place.
#[derive(Clone, Copy, Debug, Default)]
struct ArrivalCount {
    late: u64,
    in_time: u64,
}

/// Interrupt that is running on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct OpenInterrupt {
    /// Time of its first expiry.
    begun: Option<Nanos>,
    /// True if the previous event was an expiry, whose stack may follow.
    expired: bool,
    /// True if its place is counted.
    counted: bool,
    before: Option<Nanos>,
}

/// Counts by interrupted address.
#[derive(Debug, Default)]
pub struct TimerArrivals {
    cpus: BTreeMap<Cpu, OpenInterrupt>,
    places: HashMap<Address, ArrivalCount>,
}

impl TimerArrivals {
    /// Takes the next event; `interrupted` finds the address in a stack, `is_late` decides on it.
    pub fn observe(
        &mut self,
        event: &Raw,
        interrupted: impl FnOnce(&[Address]) -> Option<Address>,
        is_late: impl FnOnce(TimerArrival) -> bool,
    ) {
        let open = self.cpus.entry(event.cpu).or_default();
        let expired = std::mem::take(&mut open.expired);
        match &event.what {
            What::TimerEntry { .. } if event.context.hard_irq() => {
                open.begun.get_or_insert(event.time);
                open.expired = true;
            }
            What::Stack { frames, .. } if expired && !open.counted => {
                let (Some(time), Some(place)) = (open.begun, interrupted(frames)) else { return };
                open.counted = true;
                let late = is_late(TimerArrival { cpu: event.cpu, time, before: open.before });
                if self.places.len() < MAX_PLACES || self.places.contains_key(&place) {
                    let count = self.places.entry(place).or_default();
                    *(if late { &mut count.late } else { &mut count.in_time }) += 1;
                }
            }
            // It may come between the two.
            What::Nmi { .. } => open.expired = expired,
            What::VectorExit { .. } | What::IrqExit { .. } => open.end(),
            _ if !event.context.hard_irq() => open.end(),
            _ => {}
        }
    }

    /// True if the observed interrupts show that they are enabled right before that address.
    pub fn lets_in(&self, address: Address) -> bool {
        self.places.get(&address).is_some_and(|count| count.late >= MIN_LATE && count.late > count.in_time)
    }
}

impl OpenInterrupt {
    fn end(&mut self) {
        self.before = self.begun.or(self.before);
        *self = OpenInterrupt { before: self.before, ..OpenInterrupt::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event, Task, Vector};

    const HARD: Context = Context(8);

    /// Interrupts of CPU 1, each at a time and a place, in which two timers expire.
    fn of(interrupts: &[(i64, Address)]) -> Vec<Raw> {
        let at = |time: i64, context, what| Event {
            time: Nanos(time),
            cpu: Cpu(1),
            pid: 60,
            context,
            preempt: 0,
            what,
        };
        let one = |&(time, place): &(i64, Address)| {
            let vector = Vector::LocalTimer;
            let timer = |timer| What::TimerEntry { timer, function: 1, now: Nanos(time) };
            let stack = || What::Stack { frames: vec![9, place], enables: None };
            vec![
                at(time, HARD, What::VectorEntry { vector }),
                at(time + 1, HARD, timer(1)),
                at(time + 1, HARD, What::Nmi { handler: 0, ns: Nanos(1) }),
                at(time + 1, HARD, stack()),
                at(time + 2, HARD, timer(2)),
                at(time + 2, HARD, stack()),
                at(time + 2, HARD, What::Waking { task: Task::default(), target: Cpu(1) }),
                at(time + 3, HARD, What::VectorExit { vector }),
            ]
        };
        interrupts.iter().flat_map(one).collect()
    }

    /// True if a place enables interrupts, with those at the times `late` being late.
    fn lets_in(interrupts: &[(i64, Address)], late: &[i64], place: Address) -> bool {
        let (mut arrivals, mut seen) = (TimerArrivals::default(), Vec::new());
        for event in of(interrupts) {
            let is_late = |arrival: TimerArrival| {
                seen.push((arrival.time.0 - 1, arrival.before.map(|before| before.0 - 1)));
                late.contains(&(arrival.time.0 - 1))
            };
            arrivals.observe(&event, |frames| frames.get(1).copied(), is_late);
        }
        let times: Vec<i64> = interrupts.iter().map(|(time, _)| *time).collect();
        let before = |at: usize| at.checked_sub(1).map(|before| times[before]);
        let each: Vec<_> = times.iter().enumerate().map(|(at, time)| (*time, before(at))).collect();
        assert_eq!(seen, each, "each interrupt once, with the one before it");
        arrivals.lets_in(place)
    }

    #[test]
    fn a_place_where_interrupts_are_late_lets_them_in() {
        let mut interrupts = vec![(100, 7), (200, 5), (300, 7), (400, 7)];
        assert!(lets_in(&interrupts, &[100, 300, 400], 7));
        assert!(!lets_in(&interrupts, &[100, 200, 300, 400], 5), "once is a coincidence");
        assert!(!lets_in(&interrupts, &[100, 300], 7), "twice, too");
        interrupts.extend([(500, 7), (600, 7), (700, 7)]);
        assert!(!lets_in(&interrupts, &[100, 300, 400], 7), "others were in time there");
    }
}
