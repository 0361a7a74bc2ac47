//! Origin of the stopper's work: the thread that woke it, and its CPU.
//!
//! `stop_machine`, a change of affinity and a CPU that goes offline queue their work and wake
//! `migration/N` directly, so the waking names them; a balancing softirq wakes it in the context of
//! an interrupted thread, which did not request it. A worker acts for the thread that woke it for
//! its work item: a CPU is taken offline by a worker of another one.
//!
//! Source: kernel/stop_machine.c (`cpu_stop_queue_work`, `__cpu_stop_queue_work`),
//! kernel/sched/fair.c (`sched_balance_rq`), kernel/cpu.c (`cpu_down_maps_locked`),
//! kernel/workqueue.c (`work_on_cpu_key`, `kick_pool`).

use super::case::{Case, Cause};
use super::hotplug;
use super::tasks::who;
use crate::event::{Named, Task, What};
use model::run::{Behind, Who};
use model::slice::SliceKind;

/// Cause for a stopper thread that runs from `start` to `end`.
pub(super) fn cause(case: &Case<'_>, task: Task, start: i64, end: i64) -> Cause {
    let (who, asked) = asked(case, who(task), start, end, start);
    let evidence =
        format!("the stopper thread ran, which has the highest priority; no event has its function{asked}");
    Cause::new(SliceKind::StopMachine, who, evidence)
}

/// Stopper with its last requester before `time`, and a text with that and the step of CPU hotplug
/// in this span; empty if no event shows them.
pub(super) fn asked(case: &Case<'_>, stopper: Who, from: i64, to: i64, time: i64) -> (Who, String) {
    let words = hotplug::step(&case.hotplug, from, to).map_or_else(String::new, |step| step.words());
    let (who, asked) = asker(case, stopper, time);
    (who, words + &asked)
}

fn asker(case: &Case<'_>, stopper: Who, time: i64) -> (Who, String) {
    let Some(waking) = waking(case, stopper.pid, time) else { return (stopper, String::new()) };
    let from_cpu = Some(waking.cpu);
    if waking.context.hard_irq() || waking.context.soft_irq() {
        let context = if waking.context.hard_irq() { "an interrupt" } else { "a softirq" };
        let words = format!("; {context} on CPU {} woke it", waking.cpu);
        return (Who { from_cpu, ..stopper }, words);
    }
    let asker = case.tasks.who(waking.pid, waking.time.0);
    let name = if asker.comm.is_empty() { "a thread".to_owned() } else { asker.comm.clone() };
    let words = format!("; asked for by {name}/{} on CPU {}", waking.pid, waking.cpu);
    let behind = asker.comm.starts_with(WORKER).then(|| queued(case, waking.pid, waking.time.0)).flatten();
    if let Some((function, by)) = behind {
        let words = format!("{words}, in the work item {function}");
        let Some(by) = by else {
            let asked_by = Some(Behind { comm: asker.comm, pid: waking.pid });
            let words = format!("{words}; which thread queued that is in no event");
            return (Who { from_cpu, asked_by, ..stopper }, words);
        };
        let words = format!("{words} for {}/{}", by.comm, by.pid);
        return (Who { from_cpu, asked_by: Some(by), ..stopper }, words);
    }
    let asked_by = Some(Behind { comm: asker.comm, pid: waking.pid });
    (Who { from_cpu, asked_by, ..stopper }, words)
}

/// Prefix of the names of workqueues' threads.
const WORKER: &str = "kworker/";

/// Work item that the worker was executing, and the thread that had woken it for that; none if it
/// was awake for another item, or an interrupt had woken it.
fn queued<'w>(case: &Case<'w>, worker: i32, time: i64) -> Option<(&'w str, Option<Behind>)> {
    let last = |before: i64, is: &dyn Fn(&Named) -> bool| {
        let near = |events: &Vec<&'w Named>| {
            let end = events.partition_point(|event| event.time.0 <= before);
            events[..end].iter().rev().find(|event| is(event)).copied()
        };
        case.cpus.values().filter_map(near).max_by_key(|event| event.time)
    };
    let of_worker = |event: &Named| {
        event.pid == worker && matches!(event.what, What::WorkEntry { .. } | What::WorkExit { .. })
    };
    let began = last(time, &of_worker)?;
    let What::WorkEntry { function } = &began.what else { return None };
    let wakes = |event: &Named| matches!(event.what, What::Waking { task, .. } if task.pid == worker);
    let woken = last(began.time.0, &wakes);
    let woken = woken.filter(|woken| !woken.context.hard_irq() && !woken.context.soft_irq());
    let by = woken.map(|woken| (woken.pid, case.tasks.who(woken.pid, woken.time.0).comm));
    let by = by.filter(|(_, comm)| !comm.is_empty()).map(|(pid, comm)| Behind { comm, pid });
    Some((function, by))
}

/// Waking of the stopper for its work at that time: the last waking since it last slept.
fn waking<'w>(case: &Case<'w>, stopper: i32, time: i64) -> Option<&'w Named> {
    let near = |events: &Vec<&'w Named>| {
        let end = events.partition_point(|event| event.time.0 <= time);
        events[..end].iter().rev().find_map(|event| match &event.what {
            What::Waking { task, .. } if task.pid == stopper => Some((event.time.0, Some(*event))),
            What::Switch { prev, state, .. } if prev.pid == stopper && !matches!(state, 0 | 256) => {
                Some((event.time.0, None))
            }
            _ => None,
        })
    };
    // Of two at the same time the sleep comes first, and the waking is for the work after it.
    let last = case.cpus.values().filter_map(near).max_by_key(|(time, event)| (*time, event.is_some()));
    last.and_then(|(_, event)| event)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::explained;
    use model::run::Slice;
    use model::slice::SliceKind;
    use model::units::Cpu;

    const WOKEN: &str = "
        -500 1 50 d  switch rt/50/19 S busy/60/120
        2    1 60 dh    vector+ local_timer
        3    1 60 dh    timer+ 1 hrtimer_wakeup
        4    1 60 dh2   waking rt/50/19
        6    1 60 dNh   timer- 1
        7    1 60 dNh   vector- local_timer
        8    1 60 d     switch busy/60/120 P migration/1/16/-1
        5012 1 16 d     switch migration/1/16/-1 S rt/50/19";

    fn stop(before: &str) -> Slice {
        let spike = explained(5_012.0, &format!("{before}\n{WOKEN}"));
        spike.slices.into_iter().find(|slice| slice.kind == SliceKind::StopMachine).unwrap()
    }

    #[test]
    fn who_asked_for_the_stop_is_named_with_the_cpu() {
        let asks = "-800 0 7 d switch a/1/120 R insmod/7/120\n-6 0 7 d2 waking migration/1/16/-1";
        let slice = stop(asks);
        let by = slice.who.asked_by.clone().unwrap();
        assert_eq!((by.comm.as_str(), by.pid, slice.who.from_cpu), ("insmod", 7, Some(Cpu(0))));
        assert!(slice.evidence.ends_with("asked for by insmod/7 on CPU 0"), "{}", slice.evidence);
        assert_eq!((slice.who.comm.as_str(), slice.who.pid), ("migration/1", 16));
    }

    #[test]
    fn wakings_for_another_stop_or_in_passing_requested_nothing() {
        let nobody = |before: &str| {
            let slice = stop(before);
            assert_eq!(slice.who.asked_by, None, "{before}");
            slice.who.from_cpu
        };
        assert_eq!(nobody(""), None);
        let slept = "-800 0 7 d2 waking migration/1/16/-1\n-700 1 16 d switch migration/1/16/-1 S busy/60/120\n-690 1 60 d switch busy/60/120 S rt/50/19";
        assert_eq!(nobody(slept), None);
        // Balancing in a softirq is not work of the interrupted thread.
        assert_eq!(nobody("-6 0 7 ds2 waking migration/1/16/-1"), Some(Cpu(0)));
        assert_eq!(nobody("-6 0 7 d2 waking migration/0/15/-1"), None);
    }
}
