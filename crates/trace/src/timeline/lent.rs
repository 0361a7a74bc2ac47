//! Locks with priority inheritance that a thread waits for without sleeping: while the holder runs
//! on another CPU, it spins and lends its priority to the holder.
//!
//! Source: kernel/locking/rtmutex.c (`task_blocks_on_rt_mutex` lends before the thread spins in
//! `rtmutex_spin_on_owner`; `mark_wakeup_next_waiter` returns the priority).

use super::case::Cause;
use super::spans::Spans;
use super::tasks::Tasks;
use crate::event::{Named, What};
use model::run::Who;
use model::slice::SliceKind;

/// Function in which the thread spins.
const SPINS: &str = "rtmutex_spin_on_owner";

/// Holders that had a thread's priority, from its lending to its return.
#[derive(Debug)]
pub(super) struct LentPriority(Spans<i32>);

impl LentPriority {
    /// Loans of a thread, from events in order of time. A priority that is not returned within them
    /// does not count, as its end is unknown.
    pub(super) fn of(ordered: &[&Named], thread: i32) -> LentPriority {
        let mut open: Vec<(i32, i64)> = Vec::new();
        let mut spans = Vec::new();
        for event in ordered {
            let What::Inherit { pid, old, new } = event.what else { continue };
            if event.pid == thread && pid != thread && new < old {
                open.push((pid, event.time.0));
            } else if new > old {
                let lent = open.iter().position(|&(holder, _)| holder == pid);
                spans.extend(lent.map(|at| (open.remove(at).1, event.time.0, pid)));
            }
        }
        LentPriority(Spans::new(spans))
    }

    /// Times at which a cause may change.
    pub(super) fn edges(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.edges()
    }

    /// Cause of the thread's time on a CPU while its priority was lent.
    pub(super) fn at(&self, tasks: &Tasks, time: i64) -> Option<Cause> {
        let &(since, _, holder) = self.0.at(time)?;
        let who = Who { function: SPINS.to_owned(), ..tasks.who(holder, since) };
        let comm = if who.comm.is_empty() { "thread" } else { &who.comm };
        let evidence = format!(
            "it lent its priority to {comm}:{holder} and did not sleep: that thread held a lock with \
             priority inheritance until it returned the priority"
        );
        Some(Cause::new(SliceKind::Blocked, who, evidence))
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain_response;
    use super::super::fixture::{adds_up, host, slice_lines, window};
    use super::super::own::Cost;
    use crate::window::Window;

    fn of(events: &str) -> Vec<String> {
        let begin = "
            -500 1 50 d  switch rt/50/19 S swapper/1/0/120
            1    1 0  dh waking rt/50/19
            5    1 0  d  switch swapper/1/0/120 R rt/50/19\n";
        let window = Window { own: false, ..window(100.0, &(begin.to_owned() + events)) };
        let spike = explain_response(&window, &host(), Cost::default());
        adds_up(&spike);
        slice_lines(&spike).into_iter().skip_while(|line| !line.starts_with("own")).collect()
    }

    #[test]
    fn a_lock_that_is_spun_for_is_its_holder_s() {
        let spins = "
            -9 0 61 .  waking low/61/120
            20 1 50 d  inherit 61 120 19
            30 1 50 dh vector+ local_timer
            34 1 50 dh vector- local_timer
            70 0 61 d  inherit 61 19 120";
        let spun = "blocked rtmutex_spin_on_owner/low";
        let all = [
            "own rt 15",
            &format!("{spun} 10"),
            "timer-irq local_timer 4",
            &format!("{spun} 36"),
            "own rt 30",
        ];
        assert_eq!(of(spins)[..5], all);
    }

    #[test]
    fn what_another_lends_or_nobody_gives_back_is_none_of_it() {
        for other in ["20 0 70 d inherit 61 120 9\n70 0 61 d inherit 61 9 120", "20 1 50 d inherit 61 120 19"]
        {
            assert_eq!(of(other)[0], "own rt 95");
        }
    }
}
