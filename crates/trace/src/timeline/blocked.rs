//! A sleep within a cycle, divided by what the thread did that ended it.
//!
//! Divided is only a wait for a lock: of a pipe or a queue the writer is named, whatever kept that
//! one. A plain mutex and a condition look alike where no system calls are recorded; of both the
//! waker is what the sleeper waited for.
//!
//! Sources: kernel/locking/{mutex,rwsem}.c, kernel/futex/waitwake.c.

use super::case::Cause;
use super::inversion::{Meanwhile, Wait, kept_by, parts};
use super::tasks::Tasks;
use super::woken::SleepEnd;
use crate::cycles::place::SleepKind;
use crate::event::{Named, Task};
use model::run::Who;

/// The innermost functions of a wait for a lock of the kernel's without priority inheritance.
const KERNEL_LOCKS: [&str; 4] = ["mutex_lock", "rwsem_down_", "down_read", "down_write"];

/// A sleep, and what it is if nothing divides it.
pub(super) struct Sleep<'a> {
    pub start: i64,
    pub end: i64,
    pub kind: SleepKind,
    pub ended: &'a SleepEnd,
    pub cause: Cause,
}

impl Sleep<'_> {
    /// The causes of its parts with their begins and ends, without a gap.
    pub(super) fn causes(self, ordered: &[&Named], tasks: &Tasks, victim: Task) -> Vec<(Cause, i64, i64)> {
        let Sleep { start, end, ref cause, .. } = self;
        if start >= end {
            return Vec::new();
        }
        let holder = self.waker().and_then(|who| tasks.at(who.pid, end)).filter(|task| !task.idle());
        let Some(holder) = holder else { return vec![(self.cause, start, end)] };
        let wait = Wait { waiter: victim, holder, from: start, to: end };
        let each = parts(ordered, tasks, wait).into_iter().map(|part| {
            let whole = |more: String| Cause { evidence: cause.evidence.clone() + &more, ..cause.clone() };
            let name = part.holder.comm;
            let chained = part.holder.pid != holder.pid;
            let cause = match part.what {
                // A holder that inherited the sleeper's priority loses its CPU to none below.
                Meanwhile::Kept(_) => kept_by(&part, victim)
                    .filter(|kept| self.kind != SleepKind::Lock || kept.who.prio <= victim.prio)
                    .map(|kept| Cause { evidence: format!("{}; {}", kept.evidence, cause.evidence), ..kept }),
                Meanwhile::Ran if chained => {
                    Some(whole(format!("; {} waited for {name}, which ran", part.waiter.comm)))
                }
                Meanwhile::Slept => Some(whole(format!("; {name} slept itself"))),
                Meanwhile::Ran | Meanwhile::Unknown => None,
            };
            (cause.unwrap_or_else(|| whole(String::new())), part.start, part.end)
        });
        each.collect()
    }

    /// The thread that ended the wait for a lock; none of a wait for anything else.
    fn waker(&self) -> Option<&Who> {
        let innermost = || self.cause.stack.iter().take(8).map(|frame| frame.trim_start_matches('_'));
        let waits = || innermost().any(|frame| KERNEL_LOCKS.iter().any(|name| frame.starts_with(name)));
        match (self.kind, self.ended) {
            (SleepKind::Lock | SleepKind::Futex, SleepEnd::Released(who)) => Some(who),
            (SleepKind::Futex, SleepEnd::Woken(who)) => Some(who),
            (SleepKind::Output | SleepKind::Other, SleepEnd::Released(who) | SleepEnd::Woken(who))
                if waits() =>
            {
                Some(who)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{adds_up, host, told, window};
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

    /// `servo` sleeps for what `datalog` has, which `planner` keeps from its CPU.
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
        told(&explained(2_300.0, "", &events)).into_iter().filter(|line| !line.starts_with("own")).collect()
    }

    #[test]
    fn who_runs_instead_of_the_holder_of_a_plain_lock_is_named() {
        let all = inverted(FUTEX, 59);
        let named = ["blocked futex_do_wait/datalog 100", "priority-inversion planner 2000"];
        assert!(named.iter().all(|line| all.iter().any(|told| told == line)), "{all:?}");
        assert_eq!(
            all.iter().filter(|line| line.starts_with("blocked futex_do_wait/datalog 100")).count(),
            2
        );
        // Of a read-write semaphore of the kernel's as well.
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

    /// Each of a chain of holders on a CPU of its own waits for the next; the last is kept.
    #[test]
    fn a_chain_is_followed_to_the_thread_that_was_kept() {
        let before = "
            -900 0 1 d switch init/1/120 R first/70/89
            -800 0 70 d switch first/70/89 S swapper/0/0/120
            -700 0 0 d switch swapper/0/0/120 R second/71/90
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
        let kept = spike.slices.iter().find(|slice| slice.kind == SliceKind::PriorityInversion).unwrap();
        assert_eq!((kept.who.comm.as_str(), kept.ns), ("planner", Nanos(2_000_000)));
        let words =
            "planner ran while second, which first waited for, was runnable; futex, woken by first:70";
        assert_eq!(kept.evidence, words);
        let ran = |slice: &&model::run::Slice| slice.evidence.ends_with("first waited for second, which ran");
        assert!(spike.slices.iter().any(|slice| ran(&slice)), "{:?}", spike.slices);
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
        let itself = spike.slices.iter().find(|slice| slice.evidence.ends_with("datalog slept itself"));
        assert!(itself.is_none_or(|slice| slice.kind == SliceKind::Blocked), "{:?}", spike.slices);
        let kept: i64 = spike
            .slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::PriorityInversion)
            .map(|slice| slice.ns.0)
            .sum();
        assert!(kept <= 100_000, "{:?}", spike.slices);
    }
}
