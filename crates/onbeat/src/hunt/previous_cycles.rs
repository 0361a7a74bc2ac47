//! Cycles of followed threads that were in progress when the next one was due: their causes also
//! explain that one.

use std::collections::BTreeMap;

use super::late_task::LateTask;
use crate::measure::late::LateWakeup;
use model::run::Spike;
use trace::window::PreviousCycle;

/// Maximum number of threads whose last explained cycle is kept.
const MAX_THREADS: usize = 256;

/// Last explained cycle of each thread.
#[derive(Default)]
pub struct ExplainedCycles(BTreeMap<i32, Spike>);

impl ExplainedCycles {
    /// Part that a late cycle inherits from the one before. That one is explained first if it was
    /// not a spike, or if there was no time for it.
    pub fn before(
        &mut self,
        late: &LateTask,
        explain: &mut dyn FnMut(&LateTask) -> Spike,
    ) -> Option<PreviousCycle> {
        let span = late.previous?;
        let is_it = |spike: &&Spike| (spike.expected_ns, spike.actual_ns) == (span.release, span.end);
        if let Some(spike) = self.0.get(&late.victim.pid).filter(is_it) {
            return PreviousCycle::of(spike, late.wakeup.expected);
        }
        let wakeup = LateWakeup { cpu: span.cpu, cycle: 0, expected: span.release, actual: span.end };
        let deadline = late.deadline.or(Some(span.end - span.release));
        let spike = explain(&LateTask { wakeup, deadline, previous: None, ..*late });
        self.keep(&spike);
        PreviousCycle::of(&spike, late.wakeup.expected)
    }

    /// Keeps an explained cycle; ignores a wake-up.
    pub fn keep(&mut self, spike: &Spike) {
        let known = self.0.contains_key(&spike.victim.pid);
        if spike.deadline_ns.is_none() {
            return;
        }
        if !known && self.0.len() >= MAX_THREADS {
            self.0.pop_first();
        }
        self.0.insert(spike.victim.pid, spike.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::cycle_spans::CycleSpan;
    use super::*;
    use model::run::Who;
    use model::units::{Cpu, Nanos};
    use trace::event::Task;

    fn span(release: i64, end: i64) -> CycleSpan {
        CycleSpan { cpu: Cpu(1), release: Nanos(release), end: Nanos(end) }
    }

    fn late(release: i64, end: i64, previous: Option<CycleSpan>) -> LateTask {
        let wakeup = LateWakeup { cpu: Cpu(1), cycle: 0, expected: Nanos(release), actual: Nanos(end) };
        let victim = Task { pid: 7, ..Task::default() };
        LateTask { wakeup, cycle: None, victim, own: false, deadline: Some(Nanos(1_000)), previous }
    }

    fn spike(of: &LateTask) -> Spike {
        Spike {
            expected_ns: of.wakeup.expected,
            actual_ns: of.wakeup.actual,
            latency_ns: of.wakeup.actual - of.wakeup.expected,
            deadline_ns: of.deadline,
            victim: Who { pid: of.victim.pid, ..Who::default() },
            ..Spike::default()
        }
    }

    #[test]
    fn each_of_a_row_takes_over_from_the_one_before_and_what_was_no_spike_is_explained_once() {
        let (mut cycles, mut explained) = (ExplainedCycles::default(), Vec::new());
        let mut before = |cycles: &mut ExplainedCycles, late: &LateTask| {
            let found = cycles.before(late, &mut |earlier| {
                explained.push((earlier.wakeup.expected.0, earlier.deadline));
                spike(earlier)
            });
            (found.map(|found| (found.release_ns.0, found.end_ns.0)), explained.len())
        };
        let second = late(1_000, 5_100, Some(span(0, 5_000)));
        assert_eq!(before(&mut cycles, &second), (Some((0, 5_000)), 1));
        cycles.keep(&spike(&second));
        let third = late(2_000, 5_200, Some(span(1_000, 5_100)));
        assert_eq!(before(&mut cycles, &third), (Some((1_000, 5_100)), 1), "known already");
        assert_eq!(before(&mut cycles, &late(9_000, 9_900, None)), (None, 1));
        // A wake-up is not a cycle, and the cycle before it is explained as one.
        let wakeup = LateTask { deadline: None, ..late(3_000, 5_250, Some(span(2_000, 5_200))) };
        assert_eq!(before(&mut cycles, &wakeup), (Some((2_000, 5_200)), 2));
        cycles.keep(&spike(&wakeup));
        assert_eq!(before(&mut cycles, &wakeup), (Some((2_000, 5_200)), 2));
        assert_eq!(explained, [(0, Some(Nanos(1_000))), (2_000, Some(Nanos(3_200)))]);
    }
}
