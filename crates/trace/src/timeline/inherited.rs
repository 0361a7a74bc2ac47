//! Inherited priorities: threads that run before the victim by one, and its origin.
//!
//! The priority at the switch counts, by which the scheduler selected the thread. A thread that has
//! returned it runs on to its next scheduling point, which is not a turn of the fair class.
//!
//! Sources: kernel/sched/core.c (`rt_mutex_setprio`), kernel/locking/rtmutex.c
//! (`rt_mutex_adjust_prio_chain`: the waiting thread walks it, so that its priority is the one of
//! the event).

use std::collections::HashMap;

use super::case::Case;
use crate::event::{Named, Task, What};
use model::run::Behind;

/// Thread with its priority at the switch to it, if that was seen.
pub(super) fn chosen(case: &Case<'_>, current: Task, since: i64) -> Task {
    case.tasks.at(current.pid, since).filter(|_| since > i64::MIN).unwrap_or(current)
}

/// Priority changes by inheritance, by thread, in order of time.
pub(super) fn handed_on<'w>(ordered: &[&'w Named]) -> HashMap<i32, Vec<&'w Named>> {
    let mut all: HashMap<i32, Vec<&Named>> = HashMap::new();
    for event in ordered {
        if let What::Inherit { pid, .. } = event.what {
            all.entry(pid).or_default().push(event);
        }
    }
    all
}

/// Thread whose priority a thread has at a time, if not its own; without a name if no event shows
/// it.
pub(super) fn from(case: &Case<'_>, current: Task, time: i64) -> Option<Behind> {
    let all = case.handed_on.get(&current.pid)?;
    let prios = all.iter().filter_map(|event| match event.what {
        What::Inherit { old, new, .. } => Some(old.max(new)),
        _ => None,
    });
    let own = prios.max()?;
    if current.prio >= own {
        return None;
    }
    let before = all.partition_point(|event| event.time.0 <= time);
    let lender = all[..before].last().and_then(|event| match event.what {
        What::Inherit { new, old, .. } if new < old && new == current.prio && event.pid != current.pid => {
            case.tasks.at(event.pid, event.time.0).filter(|task| task.prio == new && !task.idle())
        }
        _ => None,
    });
    Some(
        lender.map_or_else(Behind::default, |task| Behind {
            comm: task.comm.text().into_owned(),
            pid: task.pid,
        }),
    )
}

/// Limit of named links in a chain of locks; the kernel follows 1024 (kernel/locking/rtmutex.c).
const MAX_LINKS: usize = 8;

/// Threads from which `first` has inherited the priority in turn, nearest first.
fn behind(case: &Case<'_>, current: Task, first: &Behind, time: i64) -> Vec<Behind> {
    let mut chain: Vec<Behind> = Vec::new();
    let mut last = first.clone();
    while let Some(task) = case.tasks.at(last.pid, time).filter(|_| chain.len() < MAX_LINKS) {
        let Some(next) = from(case, Task { prio: current.prio, ..task }, time) else { break };
        let known =
            [current.pid, first.pid].contains(&next.pid) || chain.iter().any(|one| one.pid == next.pid);
        if known || next.comm.is_empty() {
            break;
        }
        last = next.clone();
        chain.push(next);
    }
    chain
}

/// `with the real-time priority 90 that it inherited from mid/61, and that from high/70`.
pub(super) fn words(case: &Case<'_>, current: Task, from: &Behind, time: i64) -> String {
    let rank = match current.prio {
        ..0 => "the deadline".to_owned(),
        0..=99 => format!("the real-time priority {}", 99 - current.prio),
        100.. => format!("the priority of nice {}", current.prio - 120),
    };
    match from.comm.as_str() {
        "" => format!("with {rank} that it inherited"),
        comm => {
            let chain = behind(case, current, from, time);
            let rest = chain.iter().map(|one| format!(", and that from {}/{}", one.comm, one.pid));
            format!("with {rank} that it inherited from {comm}/{}{}", from.pid, rest.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, slice_lines};
    use model::run::Slice;

    /// A fair thread holds a lock that a thread above the victim waits for, and runs with that
    /// priority while the victim is runnable; then it returns the priority and is switched out.
    fn events(inherit: &str) -> String {
        format!(
            "-900  1 50 d  switch rt/50/19 S swapper/0/120
             2     1 0  dh vector+ local_timer
             3     1 0  dh timer+ 1 hrtimer_wakeup
             4     1 0  dh waking rt/50/19
             5     1 0  dh wakeup rt/50/19
             6     1 0  dh timer- 1
             7     1 0  dh vector- local_timer
             8     1 0  d  switch swapper/0/120 R high/70/9
             {inherit}
             20    1 70 d  switch high/70/9 D low/61/9
             20020 1 61 d  inherit 61 9 120
             20021 1 61 d  waking high/70/9
             20040 1 61 d  switch low/61/120 P high/70/9
             20050 1 70 d  switch high/70/9 S rt/50/19"
        )
    }

    fn of(inherit: &str) -> (Vec<String>, Slice) {
        let spike = explained(20_050.0, &events(inherit));
        let low = spike.slices.iter().find(|slice| slice.who.comm == "low").cloned().unwrap();
        (slice_lines(&spike), low)
    }

    #[test]
    fn who_runs_by_an_inherited_priority_is_no_turn_of_the_fair_server() {
        let (lines, low) = of("15 1 70 d inherit 61 120 9");
        assert_eq!(
            lines[1..],
            [
                "switch 1",
                "thread high 12",
                "thread low 20000",
                "switch 20",
                "thread high 10",
                "unexplained 2"
            ]
        );
        let from = low.who.inherited_from.unwrap();
        assert_eq!((from.comm.as_str(), from.pid, low.who.prio), ("high", 70, 9));
        assert!(low.evidence.contains("priority 90 that it inherited from high/70"), "{}", low.evidence);
    }

    #[test]
    fn a_lender_that_no_event_names_is_left_open() {
        // Only the return is in the window, or the event is of a thread other than the waiter.
        for unknown in ["", "15 1 61 d inherit 61 120 9"] {
            let (_, low) = of(unknown);
            assert_eq!(low.who.inherited_from.map(|from| from.comm), Some(String::new()), "{unknown}");
        }
    }

    #[test]
    fn a_chain_of_locks_is_named_to_its_end() {
        let (_, low) = of("14 1 70 d inherit 62 120 9\n15 1 62 d inherit 61 120 9
             16 1 70 d switch high/70/9 D mid/62/9\n17 1 62 d switch mid/62/9 D high/70/9");
        assert_eq!(low.who.inherited_from.unwrap().comm, "mid");
        assert!(low.evidence.contains("inherited from mid/62, and that from high/70"), "{}", low.evidence);
    }

    #[test]
    fn a_priority_of_its_own_is_not_inherited() {
        let own = events("").replace("20020 1 61 d  inherit 61 9 120", "").replace("low/61/120", "low/61/9");
        let spike = explained(20_050.0, &own);
        assert!(
            spike.slices.iter().all(|slice| slice.who.inherited_from.is_none()),
            "{:?}",
            slice_lines(&spike)
        );
    }

    #[test]
    fn one_that_held_a_priority_since_before_the_window_is_known_by_giving_it_back() {
        let events = "
            2     1 61 dh vector+ local_timer
            3     1 61 dh timer+ 1 hrtimer_wakeup
            4     1 61 dh waking rt/50/19
            6     1 61 dh timer- 1
            7     1 61 dNh vector- local_timer
            20020 1 61 d  inherit 61 9 120
            20030 1 61 d  switch low/61/120 P rt/50/19";
        assert_eq!(
            slice_lines(&explained(20_030.0, events))[1..],
            ["thread low 20013", "switch 10", "unexplained 2"]
        );
    }
}
