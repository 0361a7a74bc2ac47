//! Events of a trace that has one end of a pair only: those that would never end are omitted, or
//! ended at the first sign that their work is over.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::units::{Cpu, Nanos};
use trace::event::{Event, Raw, What};

/// Filter that adds missing events, and removes those that mislead without their other end.
pub struct WholeEvents {
    /// Names of the events in the trace, without their systems; `None` before they are known.
    events: Option<BTreeSet<String>>,
    /// True once a waking was seen.
    pub waking: bool,
    /// The running timer function of each CPU, and the last event that belonged to it.
    open: BTreeMap<Cpu, (u64, Raw)>,
}

impl WholeEvents {
    /// Filter for a first reading: only wakings are added.
    pub fn unknown() -> WholeEvents {
        WholeEvents { events: None, waking: false, open: BTreeMap::new() }
    }

    /// Filter for a trace with these events, `system:event`.
    pub fn of(events: &[String]) -> WholeEvents {
        let name = |event: &String| event.split_once(':').map_or(event.clone(), |(_, name)| name.to_owned());
        let events: BTreeSet<String> = events.iter().map(name).collect();
        let waking = events.contains("sched_waking");
        WholeEvents { events: Some(events), waking, open: BTreeMap::new() }
    }

    fn has(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.contains(event))
    }

    /// Passes an event, with the events derived from it, to the sink.
    pub fn each(&mut self, event: &Raw, sink: &mut dyn FnMut(&Raw)) {
        if !self.open.is_empty() {
            self.end_timer(event, sink);
        }
        match &event.what {
            What::Waking { .. } => self.waking = true,
            // Before a thread is in its run queue it was woken.
            What::Wakeup { task, target } if !self.waking => {
                let what = What::Waking { task: *task, target: *target };
                sink(&Event { what, ..event.clone() });
            }
            What::TimerEntry { timer, .. } if !self.has("hrtimer_expire_exit") => {
                self.open.insert(event.cpu, (*timer, event.clone()));
            }
            _ => {}
        }
        if self.events.is_none() || other_end(&event.what).is_none_or(|end| self.has(&end)) {
            sink(event);
        }
    }

    /// Ends the timer's function before an event that is not of that function.
    fn end_timer(&mut self, event: &Raw, sink: &mut dyn FnMut(&Raw)) {
        let Some((timer, last)) = self.open.get_mut(&event.cpu) else { return };
        let own = matches!(event.what, What::Waking { .. } | What::Wakeup { .. } | What::Stack { .. })
            && event.context.hard_irq() == last.context.hard_irq();
        if own {
            last.time = event.time;
            return;
        }
        let time = Nanos(last.time.0.saturating_add(1)).min(event.time);
        let exit = Event { time, what: What::TimerExit { timer: *timer }, ..last.clone() };
        self.open.remove(&event.cpu);
        sink(&exit);
    }
}

/// The event that the other end of a pair is.
fn other_end(what: &What<u64>) -> Option<Cow<'static, str>> {
    let end = match what {
        What::VectorEntry { vector } => return Some(format!("{}_exit", vector.name()).into()),
        What::VectorExit { vector } => return Some(format!("{}_entry", vector.name()).into()),
        What::IrqEntry { .. } => "irq_handler_exit",
        What::IrqExit { .. } => "irq_handler_entry",
        What::SoftirqEntry { .. } => "softirq_exit",
        What::SoftirqExit { .. } => "softirq_entry",
        What::IpiEntry { .. } => "ipi_exit",
        What::IpiExit { .. } => "ipi_entry",
        What::CallEntry { .. } => "csd_function_exit",
        What::CallExit { .. } => "csd_function_entry",
        What::WheelEntry { .. } => "timer_expire_exit",
        What::WheelExit => "timer_expire_entry",
        What::TaskletEntry { .. } => "tasklet_exit",
        What::TaskletExit => "tasklet_entry",
        What::TimerExit { .. } => "hrtimer_expire_entry",
        What::HotplugEntry { .. } => "cpuhp_exit",
        What::WorkEntry { .. } => "workqueue_execute_end",
        What::WorkExit { .. } => "workqueue_execute_start",
        What::ContentionBegin { .. } => "contention_end",
        What::ContentionEnd { .. } => "contention_begin",
        _ => return None,
    };
    Some(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::event::{Context, Task};

    fn times_and_events(events: &[&str], whats: Vec<What<u64>>) -> Vec<(i64, What<u64>)> {
        let events: Vec<String> = events.iter().map(|event| format!("x:{event}")).collect();
        let (mut whole, mut events_out) = (WholeEvents::of(&events), Vec::new());
        for (at, what) in whats.into_iter().enumerate() {
            let time = Nanos(100 * at as i64);
            let event = Event { time, cpu: Cpu(0), pid: 1, context: Context(8), preempt: 0, what };
            whole.each(&event, &mut |event| events_out.push((event.time.0, event.what.clone())));
        }
        events_out
    }

    #[test]
    fn a_timer_without_its_end_ends_with_its_work() {
        let entry = What::TimerEntry { timer: 7, function: 1, now: Nanos(0) };
        let waking = What::Waking { task: Task::default(), target: Cpu(0) };
        let switch = What::Switch { prev: Task::default(), state: 1, next: Task::default() };
        let whats = vec![entry.clone(), waking.clone(), switch.clone()];
        let exit = What::TimerExit { timer: 7 };
        let all = ["hrtimer_expire_entry", "sched_waking", "sched_switch"];
        let expected = [(0, entry.clone()), (100, waking.clone()), (101, exit), (200, switch.clone())];
        assert_eq!(times_and_events(&all, whats.clone()), expected);
        let with_end = [&all[..], &["hrtimer_expire_exit"]].concat();
        assert_eq!(times_and_events(&with_end, whats), [(0, entry), (100, waking), (200, switch)]);
    }

    #[test]
    fn what_has_one_end_alone_is_left_out_and_wakings_are_put_in() {
        let irq = What::IrqEntry { irq: 1, name: "eth0".into() };
        assert_eq!(times_and_events(&["irq_handler_entry"], vec![irq.clone()]), []);
        assert_eq!(
            times_and_events(&["irq_handler_entry", "irq_handler_exit"], vec![irq.clone()]),
            [(0, irq)]
        );
        let wakeup = What::Wakeup { task: Task::default(), target: Cpu(0) };
        let waking = What::Waking { task: Task::default(), target: Cpu(0) };
        assert_eq!(
            times_and_events(&["sched_wakeup"], vec![wakeup.clone()]),
            [(0, waking), (0, wakeup.clone())]
        );
        assert_eq!(times_and_events(&["sched_wakeup", "sched_waking"], vec![wakeup.clone()]), [(0, wakeup)]);
    }
}
