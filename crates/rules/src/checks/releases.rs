//! Ends of waits: each observation of a sleeping thread is matched with the wake-up that came next.
//!
//! A thread may wait for a lock at one time and for a message at another; only the call in which it
//! slept at a wake-up shows what its waker released.

use std::collections::BTreeMap;

use facts::process::waits::Wait;
use model::sort::CompactSort;
use model::units::Nanos;
use trace::activity::{ThreadWaking, Waker};

/// Limit of pending observations; a thread in a long sleep is observed often.
const OPEN_LIMIT: usize = 64;

/// Waits of threads with their wakers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases {
    threads: BTreeMap<u32, Released>,
    /// Wake-ups that are later than the time up to which all CPUs have been read.
    early: Vec<ThreadWaking>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Released {
    /// Observations after which no wake-up has been seen.
    open: Vec<Look>,
    counts: BTreeMap<(Wait, Waker), u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    from: Nanos,
    to: Nanos,
    wait: Wait,
}

impl Releases {
    /// Notes that a thread was asleep in a call at some moment between two times.
    pub fn look(&mut self, tid: u32, from: Nanos, to: Nanos, wait: Wait) {
        let open = &mut self.threads.entry(tid).or_default().open;
        // The first observation of a sleep shows as much as later ones.
        if open.len() < OPEN_LIMIT {
            open.push(Look { from, to, wait });
        }
    }

    /// Adds wake-ups in any order; those up to `until` are complete.
    pub fn wakings(&mut self, found: Vec<ThreadWaking>, until: Nanos) {
        let mut now = std::mem::take(&mut self.early);
        now.extend(found);
        let (mut now, early): (Vec<_>, Vec<_>) = now.into_iter().partition(|waking| waking.time <= until);
        self.early = early;
        now.compact_sort_by_key(|waking| waking.time);
        let mut by_thread: BTreeMap<u32, Vec<ThreadWaking>> = BTreeMap::new();
        for waking in now {
            if let Ok(tid) = u32::try_from(waking.tid) {
                by_thread.entry(tid).or_default().push(waking);
            }
        }
        for (tid, wakings) in by_thread {
            if let Some(own) = self.threads.get_mut(&tid) {
                own.settle(&wakings);
            }
        }
    }

    /// Forgets the waits of a thread so far.
    pub fn forget(&mut self, tid: u32) {
        self.threads.remove(&tid);
        self.early.retain(|waking| u32::try_from(waking.tid) != Ok(tid));
    }

    /// Waits of a thread that were seen to end, with their wakers and the number of times.
    pub fn of(&self, tid: u32) -> impl Iterator<Item = (&Wait, Waker, u64)> {
        let counts = self.threads.get(&tid).map(|own| &own.counts).into_iter().flatten();
        counts.map(|((wait, waker), times)| (wait, *waker, *times))
    }

    /// Notes that a waker ended a wait.
    #[cfg(any(test, feature = "fixture"))]
    pub fn tell(&mut self, tid: u32, wait: Wait, by: Waker, times: u64) {
        *self.threads.entry(tid).or_default().counts.entry((wait, by)).or_default() += times;
    }
}

impl Released {
    /// Matches pending observations with `wakings`, those of this thread in order.
    fn settle(&mut self, wakings: &[ThreadWaking]) {
        let mut counted: Option<Nanos> = None;
        for look in std::mem::take(&mut self.open) {
            let next = wakings.iter().find(|waking| waking.time >= look.from);
            match next {
                None => self.open.push(look),
                // The thread may have fallen asleep before this wake-up, or after it.
                Some(waking) if waking.time <= look.to => {}
                // Several observations of one sleep.
                Some(waking) if counted == Some(waking.time) => {}
                Some(waking) => {
                    counted = Some(waking.time);
                    *self.counts.entry((look.wait, waking.by)).or_default() += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(address: u64) -> Wait {
        Wait { call: "futex", args: [Some(address), None, None, None, None, None] }
    }

    fn waking(time: i64, by: i32) -> ThreadWaking {
        ThreadWaking { tid: 7, time: Nanos(time), by: Waker::Thread(by) }
    }

    fn waits_of_thread(releases: &Releases) -> Vec<(u64, Waker, u64)> {
        releases.of(7).map(|(wait, by, times)| (wait.args[0].unwrap(), by, times)).collect()
    }

    #[test]
    fn a_wait_goes_to_the_wake_up_after_it() {
        let mut releases = Releases::default();
        releases.look(7, Nanos(10), Nanos(11), wait(1));
        releases.look(7, Nanos(12), Nanos(13), wait(1));
        releases.look(7, Nanos(30), Nanos(31), wait(2));
        releases.wakings(vec![waking(40, 9), waking(20, 8), waking(5, 6)], Nanos(50));
        assert_eq!(waits_of_thread(&releases), [(1, Waker::Thread(8), 1), (2, Waker::Thread(9), 1)]);
        assert_eq!(releases.of(8).count(), 0);
    }

    #[test]
    fn a_wake_up_while_it_was_looked_at_tells_nothing() {
        let mut releases = Releases::default();
        releases.look(7, Nanos(10), Nanos(20), wait(1));
        releases.wakings(vec![waking(15, 8), waking(30, 9)], Nanos(50));
        assert!(waits_of_thread(&releases).is_empty());
    }

    #[test]
    fn a_thread_that_begins_anew_has_no_waits_of_before() {
        let mut releases = Releases::default();
        releases.look(7, Nanos(10), Nanos(11), wait(1));
        releases.wakings(vec![waking(20, 8)], Nanos(25));
        releases.look(7, Nanos(26), Nanos(27), wait(2));
        releases.wakings(vec![waking(40, 8)], Nanos(30));
        releases.forget(7);
        releases.wakings(Vec::new(), Nanos(50));
        assert!(waits_of_thread(&releases).is_empty());
        releases.look(7, Nanos(60), Nanos(61), wait(3));
        releases.wakings(vec![waking(70, 9)], Nanos(80));
        assert_eq!(waits_of_thread(&releases), [(3, Waker::Thread(9), 1)]);
    }

    /// The buffers of the CPUs are read one after the other.
    #[test]
    fn what_one_cpu_shows_early_waits_for_the_others() {
        let mut releases = Releases::default();
        releases.look(7, Nanos(10), Nanos(11), wait(1));
        releases.wakings(vec![waking(40, 9)], Nanos(30));
        assert!(waits_of_thread(&releases).is_empty());
        releases.wakings(vec![waking(35, 8)], Nanos(60));
        assert_eq!(waits_of_thread(&releases), [(1, Waker::Thread(8), 1)]);
    }
}
