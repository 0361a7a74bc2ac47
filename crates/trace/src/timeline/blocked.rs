//! Sleep within a cycle, divided by the activity of the thread that ended it.
//!
//! Only a wait for a lock is divided: for a pipe or a queue the writer is named, regardless of its
//! own delays. The cause of the whole sleep is that of all parts except those in which a third
//! thread kept the holder from running.

use super::case::Cause;
use super::holders::{Holders, LockWait, Meanwhile, WaitPart};
use super::inversion::kept_by;
use super::locks::LockProof;
use crate::event::Task;
use model::units::Nanos;

/// Divisor for the least part of a wait that is mentioned.
const SMALL: i64 = 100;

/// Sleep, with its cause if it is not divided.
pub(super) struct DividedSleep {
    pub start: i64,
    pub end: i64,
    /// Thread that ended it, if it can have held the lock.
    pub holder: Option<i32>,
    pub proof: LockProof,
    pub cause: Cause,
}

impl DividedSleep {
    /// Causes of its parts with their start and end times, without a gap.
    pub(super) fn causes(self, holders: &Holders<'_, '_>, victim: Task) -> Vec<(Cause, i64, i64)> {
        let DividedSleep { start, end, holder, proof, cause } = self;
        if start >= end {
            return Vec::new();
        }
        let wait = holder.map(|holder| LockWait { waiter: victim, holder, proof, from: start, to: end });
        let Some((wait, parts)) = wait.and_then(|wait| Some((wait, holders.parts(&wait)?))) else {
            return vec![(cause, start, end)];
        };
        let more = doings(&wait, &parts).map_or_else(String::new, |doings| format!("; {doings}"));
        let whole = Cause { evidence: cause.evidence.clone() + &more, ..cause.clone() };
        let each = parts.iter().map(|part| {
            let inversion = kept_by(part, victim);
            let inversion = inversion.map(|inversion| Cause {
                evidence: format!("{}; {}", inversion.evidence, cause.evidence),
                ..inversion
            });
            (inversion.unwrap_or_else(|| whole.clone()), part.start, part.end)
        });
        each.collect()
    }
}

/// Activity of the holder during a wait, as text; none if it ran all the time.
fn doings(wait: &LockWait, parts: &[WaitPart]) -> Option<String> {
    let own = |part: &&WaitPart| part.holder.pid == wait.holder;
    let sum = |is: &dyn Fn(Meanwhile) -> bool| {
        parts.iter().filter(own).filter(|part| is(part.what)).map(|part| part.end - part.start).sum::<i64>()
    };
    let others: Vec<&WaitPart> = parts.iter().filter(|part| !own(part)).collect();
    let waited: i64 = others.iter().map(|part| part.end - part.start).sum();
    let last = others.iter().max_by_key(|part| part.end - part.start);
    let name = last.map_or_else(String::new, |part| part.holder.comm.text().into_owned());
    let sums = [
        (sum(&|what| what == Meanwhile::Ran), "ran for".to_owned()),
        (sum(&|what| matches!(what, Meanwhile::Kept(_))), "was runnable without a CPU for".to_owned()),
        (sum(&|what| what == Meanwhile::Slept), "slept for".to_owned()),
        (waited, format!("waited for {name} for")),
        (sum(&|what| what == Meanwhile::Unknown), "was in an unknown state for".to_owned()),
    ];
    let least = (wait.to - wait.from) / SMALL;
    if sums[1..].iter().all(|(ns, _)| *ns <= least) {
        return None;
    }
    let words = sums.iter().filter(|(ns, _)| *ns > least);
    let words: Vec<String> = words.map(|(ns, words)| format!("{words} {}", Nanos(*ns).spaced())).collect();
    let holder = parts.iter().find(own).map(|part| part.holder.comm.text().into_owned());
    let holder = holder.or_else(|| others.first().map(|part| part.waiter.comm.text().into_owned()));
    Some(format!("in that time {} {}", holder.unwrap_or_default(), words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{adds_up, host, slice_lines, window};
    use super::super::own::Cost;
    use super::super::response::explain_response;
    use model::run::Spike;
    use model::slice::SliceKind;
    use model::units::Nanos;

    const FUTEX: &str = "futex_do_wait,futex_wait,do_futex";
    const RELEASE: &str = "
        -500 1 50 d  switch rt/50/19 S swapper/1/0/120
        1    1 0  dh vector+ local_timer
        2    1 0  dh timer+ 1 hrtimer_wakeup
        3    1 0  dh waking rt/50/19
        4    1 0  dh timer- 1
        5    1 0  dh vector- local_timer
        8    1 0  d  switch swapper/1/0/120 R rt/50/19\n";

    fn explained(end: f64, before: &str, events: &str) -> Spike {
        let mut window = window(end, &format!("{before}\n{RELEASE}{events}"));
        (window.own, window.deadline_ns) = (false, Some(Nanos(50_000)));
        let spike = explain_response(&window, &host(), Cost::default());
        adds_up(&spike);
        spike
    }

    /// `servo` sleeps for a lock of `datalog`, which `planner` preempts.
    fn inverted(stack: &str, planner: i32) -> Vec<String> {
        let events = format!(
            "20   1 50 d  switch rt/50/19 S datalog/70/89
             20   1 50 d  stack {stack}
             120  1 70 d  switch datalog/70/89 P planner/60/{planner}
             2120 1 60 d  switch planner/60/{planner} S datalog/70/89
             2220 1 70 d  inherit 70 19 89
             2220 1 70 .  waking rt/50/19
             2221 1 70 d  switch datalog/70/89 P rt/50/19"
        );
        slice_lines(&explained(2_300.0, "", &events))
            .into_iter()
            .filter(|line| !line.starts_with("own"))
            .collect()
    }

    #[test]
    fn who_runs_instead_of_the_holder_of_a_plain_lock_is_named() {
        let all = inverted(FUTEX, 59);
        let named = ["blocked futex_do_wait/datalog 100", "priority-inversion planner 2000"];
        assert!(named.iter().all(|line| all.iter().any(|slice| slice == line)), "{all:?}");
        assert_eq!(
            all.iter().filter(|line| line.starts_with("blocked futex_do_wait/datalog 100")).count(),
            2
        );
        // Also for a read-write semaphore of the kernel.
        let all = inverted("schedule,rwsem_down_write_slowpath,down_write", 59);
        assert!(all.iter().any(|line| line == "priority-inversion planner 2000"), "{all:?}");
    }

    #[test]
    fn a_thread_above_the_sleeper_takes_the_cpu_and_inverts_nothing() {
        let all = inverted(FUTEX, 9);
        assert!(all.iter().any(|line| line == "preempted planner 2000"), "{all:?}");
        let lock = "rt_mutex_schedule,rt_mutex_slowlock,futex_lock_pi,do_futex";
        let all = inverted(lock, 9);
        assert!(all.iter().any(|line| line == "preempted planner 2000"), "{all:?}");
    }

    #[test]
    fn no_inversion_is_claimed_of_a_lock_that_inherits_nor_of_a_pipe() {
        for stack in
            ["rt_mutex_schedule,rt_mutex_slowlock,futex_lock_pi,do_futex", "schedule,pipe_read,vfs_read"]
        {
            let all = inverted(stack, 59);
            assert!(
                all.iter().any(|line| line.starts_with("blocked ") && line.ends_with(" 2200")),
                "{all:?}"
            );
            assert!(!all.iter().any(|line| line.contains("planner")), "{all:?}");
        }
    }

    /// In a chain of holders, each on another CPU, each waits for the next; the last is preempted.
    #[test]
    fn a_chain_is_followed_to_the_thread_that_was_kept() {
        let before = "
            -900 0 1 d switch init/1/120 R second/71/90
            -850 0 71 d switch second/71/90 P first/70/89
            -800 0 70 d switch first/70/89 S second/71/90
            -600 0 71 d switch second/71/90 P planner/60/59";
        let events = format!(
            "20   1 50 d  switch rt/50/19 S swapper/1/0/120
             20   1 50 d  stack {FUTEX}
             2020 0 60 d  switch planner/60/59 S second/71/90
             2120 0 71 .  waking first/70/89
             2121 0 71 d  switch second/71/90 P first/70/89
             2220 0 70 .  waking rt/50/19
             2230 1 0  d  switch swapper/1/0/120 R rt/50/19"
        );
        let spike = explained(2_300.0, before, &events);
        let inversion = spike.slices.iter().find(|slice| slice.kind == SliceKind::PriorityInversion).unwrap();
        assert_eq!((inversion.who.comm.as_str(), inversion.ns), ("planner", Nanos(2_000_000)));
        let words =
            "planner ran while second, which first waited for, was runnable; futex, woken by first:70";
        assert_eq!(inversion.evidence, words);
        let words = "in that time first ran for 99 us, waited for second for 2.10 ms";
        assert!(spike.slices.iter().any(|slice| slice.evidence.ends_with(words)), "{:?}", spike.slices);
    }

    #[test]
    fn a_holder_that_sleeps_or_moves_is_followed() {
        let slept = format!(
            "20   1 50 d  switch rt/50/19 S datalog/70/89
             20   1 50 d  stack {FUTEX}
             120  1 70 d  switch datalog/70/89 D planner/60/59
             1120 0 0  dh waking datalog/70/89
             1120 0 0  dh wakeup datalog/70/89
             1220 1 60 d  migrate 70 1 0
             1320 0 0  d  switch swapper/0/0/120 R datalog/70/89
             2220 0 70 .  waking rt/50/19
             2221 1 60 d  switch planner/60/59 P rt/50/19"
        );
        let spike = explained(2_300.0, "", &slept);
        let words = "was runnable without a CPU for 100 us, slept for 1 ms";
        assert!(spike.slices.iter().any(|slice| slice.evidence.contains(words)), "{:?}", spike.slices);
        let inverted_ns: i64 = spike
            .slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::PriorityInversion)
            .map(|slice| slice.ns.0)
            .sum();
        assert!(inverted_ns <= 100_000, "{:?}", spike.slices);
    }
}
