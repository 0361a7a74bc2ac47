//! Events of a trace that is read from start to end, as far back as the next window needs them.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Raw, What};
use super::held::{EventCoverage, HeldEvents};
use model::units::{Cpu, Nanos};

/// Limit of stored events of all CPUs: some tens of megabytes.
const MAX_HELD: usize = 160_000;

/// Limit of stored gaps per CPU.
const MAX_GAPS: usize = 1 << 10;

#[derive(Default)]
struct RecentCpu {
    /// In order of time.
    events: VecDeque<Raw>,
    /// Times at which events were lost, and their numbers.
    gaps: VecDeque<(Nanos, u64)>,
}

/// Stored events.
#[derive(Default)]
pub struct RecentEvents {
    cpus: BTreeMap<Cpu, RecentCpu>,
    held: usize,
    needed: Nanos,
}

impl RecentEvents {
    /// Drops events before `time`, except those since each CPU's last switch.
    pub fn need_from(&mut self, time: Nanos) {
        self.needed = time;
        for cpu in self.cpus.values_mut() {
            self.held -= cpu.forget_before(time);
        }
    }

    /// Adds the next event; those of one CPU must be in order of time.
    pub fn push(&mut self, event: &Raw) {
        let needed = self.needed;
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.events.push_back(event.clone());
        self.held += 1;
        if event.time < needed && matches!(event.what, What::Switch { .. }) {
            self.held -= cpu.keep_last();
        }
        if self.held <= MAX_HELD {
            return;
        }
        if let Some(fullest) = self.cpus.values_mut().max_by_key(|cpu| cpu.events.len()) {
            fullest.events.pop_front();
            self.held -= 1;
        }
    }

    /// Adds a loss of events on a CPU.
    pub fn lost(&mut self, cpu: Cpu, time: Nanos, count: u64) {
        let cpu = self.cpus.entry(cpu).or_default();
        if cpu.gaps.len() == MAX_GAPS {
            cpu.gaps.pop_front();
        }
        cpu.gaps.push_back((time, count.max(1)));
    }

    /// Drops everything, to read another part of the trace.
    pub fn clear(&mut self) {
        (self.cpus, self.held) = (BTreeMap::new(), 0);
    }
}

impl RecentCpu {
    /// Drops the events before the last switch before `time`; returns their number.
    fn forget_before(&mut self, time: Nanos) -> usize {
        let before = self.events.partition_point(|event| event.time < time);
        let switch = |at: &usize| matches!(self.events[*at].what, What::Switch { .. });
        let keep = (0..before).rev().find(switch).unwrap_or(0);
        self.events.drain(..keep);
        keep
    }

    /// Drops all but the last event; returns the number of dropped ones.
    fn keep_last(&mut self) -> usize {
        let count = self.events.len() - 1;
        self.events.drain(..count);
        count
    }
}

impl HeldEvents for RecentEvents {
    fn cpus(&self) -> Vec<Cpu> {
        self.cpus.keys().copied().collect()
    }

    fn events(&mut self, cpu: Cpu, from: Nanos, to: Nanos, each: &mut dyn FnMut(Raw)) -> EventCoverage {
        let Some(cpu) = self.cpus.get(&cpu) else { return EventCoverage::default() };
        let before = cpu.events.partition_point(|event| event.time < from);
        let switch = |at: &usize| matches!(cpu.events[*at].what, What::Switch { .. });
        let first = (0..before).rev().find(switch).unwrap_or(0);
        // A stack belongs to the event before it, and may be written later than that.
        let after = cpu.events.partition_point(|event| event.time <= to);
        let end = (after + 2).min(cpu.events.len());
        cpu.events.range(first.min(end)..end).for_each(|event| each(event.clone()));
        let begins = cpu.events.get(first).map_or(Nanos(i64::MIN), |event| event.time);
        let sum = |within: &dyn Fn(Nanos) -> bool| {
            let gaps = cpu.gaps.iter().filter(|gap| within(gap.0));
            gaps.map(|gap| gap.1).fold(0, u64::saturating_add)
        };
        EventCoverage {
            begins,
            lost_before: sum(&|gap| gap >= begins && gap <= from),
            lost: sum(&|gap| gap > from && gap <= to),
            left_out: 0,
        }
    }

    fn oldest(&self, cpu: Cpu) -> Option<Nanos> {
        Some(self.cpus.get(&cpu)?.events.front()?.time)
    }

    fn lacks_older(&self, cpu: Cpu) -> bool {
        // Events before the start of the trace were not recorded.
        self.cpus.contains_key(&cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event, Task};
    use proptest::prelude::*;

    fn event(time: i64, cpu: u32, switch: bool) -> Raw {
        let what = if switch {
            What::Switch { prev: Task::default(), state: 1, next: Task::default() }
        } else {
            What::TimerExit { timer: 1 }
        };
        Event { time: Nanos(time), cpu: Cpu(cpu), pid: 0, context: Context(0), preempt: 0, what }
    }

    fn event_times(recent: &mut RecentEvents, from: i64, to: i64) -> Vec<i64> {
        let mut times = Vec::new();
        recent.events(Cpu(0), Nanos(from), Nanos(to), &mut |event| times.push(event.time.0));
        times
    }

    #[test]
    fn what_came_since_the_last_switch_stays() {
        let mut recent = RecentEvents::default();
        recent.need_from(Nanos(100));
        for (time, switch) in [(10, true), (20, false), (30, true), (40, false), (110, false), (120, true)] {
            recent.push(&event(time, 0, switch));
        }
        assert_eq!(event_times(&mut recent, 100, 115), [30, 40, 110, 120]);
        recent.need_from(Nanos(115));
        assert_eq!(event_times(&mut recent, 115, 115), [30, 40, 110, 120]);
        recent.need_from(Nanos(130));
        assert_eq!((event_times(&mut recent, 130, 140), recent.held), (vec![120], 1));
    }

    #[test]
    fn lost_events_are_lost_to_the_windows_that_need_them() {
        let mut recent = RecentEvents::default();
        recent.push(&event(10, 0, true));
        recent.lost(Cpu(0), Nanos(50), 7);
        recent.push(&event(90, 0, true));
        let coverage = |recent: &mut RecentEvents, from, to| {
            let coverage = recent.events(Cpu(0), Nanos(from), Nanos(to), &mut |_| ());
            (coverage.lost_before, coverage.lost)
        };
        assert_eq!(coverage(&mut recent, 40, 100), (0, 7));
        assert_eq!(coverage(&mut recent, 60, 100), (7, 0));
        assert_eq!(coverage(&mut recent, 95, 100), (0, 0), "a switch came after it");
        assert_eq!(coverage(&mut recent, 20, 40), (0, 0));
    }

    proptest! {
        #[test]
        fn what_is_needed_is_held(
            events in prop::collection::vec((1i64..40, 0u32..2, any::<bool>()), 0..200),
            needs in prop::collection::vec(1i64..200, 0..6),
        ) {
            let (mut recent, mut all, mut now) = (RecentEvents::default(), Vec::new(), 0);
            for (at, (after, cpu, switch)) in events.iter().enumerate() {
                now += after;
                if let Some(need) = needs.get(at / 20) {
                    recent.need_from(Nanos(now.max(recent.needed.0) - need.min(&now)));
                }
                recent.push(&event(now, *cpu, *switch));
                all.push(event(now, *cpu, *switch));
            }
            let from = recent.needed.0.max(0);
            let own: Vec<&Raw> = all.iter().filter(|event| event.cpu == Cpu(0)).collect();
            let switched = own.iter().rposition(|event| {
                event.time.0 < from && matches!(event.what, What::Switch { .. })
            });
            let expected: Vec<i64> = own[switched.unwrap_or(0)..].iter().map(|event| event.time.0).collect();
            let times = event_times(&mut recent, from, i64::MAX);
            prop_assert!(times.ends_with(&expected) || expected.ends_with(&times) && needs.len() > 1);
            prop_assert_eq!(recent.held, recent.cpus.values().map(|cpu| cpu.events.len()).sum::<usize>());
        }
    }
}
