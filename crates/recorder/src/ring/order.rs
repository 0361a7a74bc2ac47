//! The events of all CPUs merged by time, from pages that are in order per CPU, with the gaps in
//! which events were lost.

use std::collections::VecDeque;

use model::units::{Cpu, Nanos};
use trace::event::Raw;
use trace::page::Lost;

/// Contents of one page of a CPU's buffer.
#[derive(Clone, Debug, Default)]
pub struct PageEvents {
    pub start: Nanos,
    /// End, not before its last event.
    pub end: Nanos,
    /// Lost before the page.
    pub lost: Lost,
    pub events: Vec<Raw>,
    /// Number of unreadable records, which count as lost.
    pub unread: u64,
}

/// Next item in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub enum RingStep {
    Event(Raw),
    /// Start of a gap, in which events of the CPU are lost.
    GapBegins(Cpu, Nanos),
    /// End of a gap, with the number of events lost in it.
    GapEnds(Cpu, Nanos, u64),
}

impl RingStep {
    pub fn at(&self) -> Nanos {
        match self {
            RingStep::Event(event) => event.time,
            RingStep::GapBegins(_, at) | RingStep::GapEnds(_, at, _) => *at,
        }
    }
}

/// Queue of one CPU.
struct Queue {
    cpu: Cpu,
    steps: VecDeque<RingStep>,
    /// Time up to which all events were read, or are lost.
    reach: Nanos,
    /// True if the kernel had no more of them in this pass.
    empty: bool,
}

/// Merge of the queues by time; holds at most a page of each CPU.
pub struct TimeOrder {
    queues: Vec<Queue>,
    until: Nanos,
    /// Time of the last event that was handed out.
    handed: Nanos,
}

impl TimeOrder {
    /// Begins with these CPUs at an instant.
    pub fn new(cpus: &[Cpu], from: Nanos) -> TimeOrder {
        let queue = |cpu: &Cpu| Queue { cpu: *cpu, steps: VecDeque::new(), reach: from, empty: true };
        TimeOrder { queues: cpus.iter().map(queue).collect(), until: from, handed: from }
    }

    /// A pass over all that was recorded up to an instant, by which all of it is in the rings.
    pub fn begin(&mut self, until: Nanos) {
        self.until = self.until.max(until);
        self.queues.iter_mut().for_each(|queue| queue.empty = false);
    }

    /// The next step of this pass; `read` gives the next page of the CPU of that number.
    pub fn next(&mut self, mut read: impl FnMut(usize) -> Option<PageEvents>) -> Option<RingStep> {
        for (nth, queue) in self.queues.iter_mut().enumerate() {
            while queue.steps.is_empty() && !queue.empty {
                match read(nth) {
                    Some(page) => queue.fill(page),
                    None => {
                        queue.empty = true;
                        queue.reach = queue.reach.max(self.until);
                    }
                }
            }
        }
        let front = |queue: &Queue| queue.steps.front().map(RingStep::at);
        let fronts = self.queues.iter().enumerate().filter_map(|(nth, queue)| Some((front(queue)?, nth)));
        let (at, nth) = fronts.min()?;
        if at > self.until {
            return None;
        }
        let queue = &mut self.queues[nth];
        let step = queue.steps.pop_front()?;
        if matches!(step, RingStep::Event(_)) {
            if at < self.handed {
                // It was being written all that time, and later ones were handed out before it: too
                // late for its place in the order, it counts as lost.
                queue.steps.push_front(RingStep::GapEnds(queue.cpu, self.handed, 1));
                return Some(RingStep::GapBegins(queue.cpu, self.handed));
            }
            self.handed = at;
        }
        Some(step)
    }

    /// The instant up to which all was handed out.
    pub fn until(&self) -> Nanos {
        self.until
    }
}

impl Queue {
    fn fill(&mut self, page: PageEvents) {
        let lost = match page.lost {
            Lost::Nothing => None,
            Lost::Records(n) => Some(n.max(1)),
            Lost::Some => Some(1),
        };
        if let Some(lost) = lost {
            let end = page.start.max(self.reach);
            self.steps.push_back(RingStep::GapBegins(self.cpu, self.reach));
            self.steps.push_back(RingStep::GapEnds(self.cpu, end, lost));
        }
        let begin = page.start.max(self.reach.min(page.end));
        self.steps.extend(page.events.into_iter().map(RingStep::Event));
        self.reach = self.reach.max(page.end);
        if page.unread > 0 {
            // Their positions on the page do not matter: the whole page is discarded.
            self.steps.push_front(RingStep::GapBegins(self.cpu, begin));
            self.steps.push_back(RingStep::GapEnds(self.cpu, self.reach, page.unread));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trace::event::{Context, What};

    fn event(cpu: u32, time: i64) -> Raw {
        let what = What::TimerExit { timer: 0 };
        Raw { time: Nanos(time), cpu: Cpu(cpu), pid: 0, context: Context(0), preempt: 0, what }
    }

    fn page(cpu: u32, times: &[i64], lost: Lost) -> PageEvents {
        PageEvents {
            start: Nanos(times[0]),
            end: Nanos(times[times.len() - 1]),
            lost,
            events: times.iter().map(|time| event(cpu, *time)).collect(),
            unread: 0,
        }
    }

    fn all(order: &mut TimeOrder, pages: &mut [VecDeque<PageEvents>], until: i64) -> Vec<RingStep> {
        order.begin(Nanos(until));
        std::iter::from_fn(|| order.next(|cpu| pages[cpu].pop_front())).collect()
    }

    fn times(steps: &[RingStep]) -> Vec<i64> {
        steps.iter().map(|step| step.at().0).collect()
    }

    #[test]
    fn events_of_all_cpus_come_in_the_order_of_time_up_to_an_instant() {
        let mut order = TimeOrder::new(&[Cpu(0), Cpu(1)], Nanos(0));
        let mut pages = [
            VecDeque::from([page(0, &[10, 40], Lost::Nothing), page(0, &[50, 90], Lost::Nothing)]),
            VecDeque::from([page(1, &[20, 60], Lost::Nothing)]),
        ];
        assert_eq!(times(&all(&mut order, &mut pages, 55)), [10, 20, 40, 50]);
        assert_eq!(times(&all(&mut order, &mut pages, 100)), [60, 90]);
    }

    #[test]
    fn a_gap_reaches_from_what_was_read_before_to_the_page_behind_it() {
        let mut order = TimeOrder::new(&[Cpu(0), Cpu(1)], Nanos(0));
        let mut pages = [
            VecDeque::from([page(0, &[10], Lost::Nothing), page(0, &[70, 80], Lost::Records(9))]),
            VecDeque::from([page(1, &[20, 75], Lost::Nothing)]),
        ];
        let steps = all(&mut order, &mut pages, 100);
        assert_eq!(times(&steps), [10, 10, 20, 70, 70, 75, 80]);
        assert_eq!(steps[1], RingStep::GapBegins(Cpu(0), Nanos(10)));
        assert_eq!(steps[3], RingStep::GapEnds(Cpu(0), Nanos(70), 9));
        // If nothing was left to read, the gap begins later.
        pages[1].push_back(page(1, &[300], Lost::Some));
        let steps = all(&mut order, &mut pages, 400);
        assert_eq!(times(&steps), [100, 300, 300]);
    }

    #[test]
    fn what_could_not_be_read_is_a_gap_over_its_page() {
        let mut order = TimeOrder::new(&[Cpu(0)], Nanos(0));
        let bad = PageEvents { unread: 2, ..page(0, &[10, 20], Lost::Nothing) };
        let steps = all(&mut order, &mut [VecDeque::from([bad])], 100);
        assert_eq!(steps.first(), Some(&RingStep::GapBegins(Cpu(0), Nanos(10))));
        assert_eq!(steps.last(), Some(&RingStep::GapEnds(Cpu(0), Nanos(20), 2)));
        assert_eq!(steps.len(), 4);
    }

    #[test]
    fn what_comes_too_late_is_lost() {
        let mut order = TimeOrder::new(&[Cpu(0), Cpu(1)], Nanos(0));
        let mut pages = [VecDeque::from([page(0, &[50], Lost::Nothing)]), VecDeque::new()];
        assert_eq!(times(&all(&mut order, &mut pages, 60)), [50]);
        pages[1].push_back(page(1, &[40, 45, 70], Lost::Nothing));
        let steps = all(&mut order, &mut pages, 80);
        assert_eq!(times(&steps), [50, 50, 50, 50, 70]);
        assert_eq!(steps[1], RingStep::GapEnds(Cpu(1), Nanos(50), 1));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_doubled(
            spans in proptest::collection::vec((0usize..3, 1i64..50), 1..100), passes in 1i64..9,
        ) {
            let mut pages: [VecDeque<PageEvents>; 3] = Default::default();
            let mut now = 1;
            for (cpu, span) in &spans {
                now += span;
                pages[*cpu].push_back(page(*cpu as u32, &[now], Lost::Nothing));
            }
            let mut order = TimeOrder::new(&[Cpu(0), Cpu(1), Cpu(2)], Nanos(0));
            let mut found = Vec::new();
            for pass in 1..=passes {
                found.extend(times(&all(&mut order, &mut pages, (now * pass) / passes)));
            }
            prop_assert_eq!(found.len(), spans.len());
            prop_assert!(found.is_sorted());
        }
    }
}
