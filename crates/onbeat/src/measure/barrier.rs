//! Barrier for the threads of a run, which does not wait for a thread that has ended.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Barrier that threads can leave: `std::sync::Barrier` would wait forever for a dead thread.
pub struct ThreadBarrier {
    inside: Mutex<Inside>,
    opened: Condvar,
}

struct Inside {
    /// Number of threads to wait for.
    parties: usize,
    waiting: usize,
    /// Number of times that it has opened.
    passages: u64,
}

impl ThreadBarrier {
    /// A barrier that opens whenever that many threads wait.
    pub fn new(parties: usize) -> ThreadBarrier {
        ThreadBarrier {
            inside: Mutex::new(Inside { parties, waiting: 0, passages: 0 }),
            opened: Condvar::new(),
        }
    }

    /// Waits for all other threads.
    pub fn wait(&self) {
        let mut inside = self.inside();
        inside.waiting += 1;
        let passage = inside.passages;
        self.open_if_all_are_here(&mut inside);
        while inside.passages == passage {
            inside = self.opened.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes this number of threads, none of which may be waiting.
    pub fn leave(&self, threads: usize) {
        let mut inside = self.inside();
        inside.parties = inside.parties.saturating_sub(threads);
        self.open_if_all_are_here(&mut inside);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_if_all_are_here(&self, inside: &mut Inside) {
        if inside.waiting > 0 && inside.waiting >= inside.parties {
            inside.waiting = 0;
            inside.passages += 1;
            self.opened.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn no_thread_passes_before_all_are_there() {
        let (barrier, arrived) = (ThreadBarrier::new(4), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 1..=50 {
                        arrived.fetch_add(1, SeqCst);
                        barrier.wait();
                        assert!(arrived.load(SeqCst) >= 4 * round);
                        barrier.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn who_leaves_is_waited_for_no_longer() {
        let barrier = ThreadBarrier::new(3);
        std::thread::scope(|scope| {
            let two = [scope.spawn(|| barrier.wait()), scope.spawn(|| barrier.wait())];
            barrier.leave(1);
            two.into_iter().for_each(|thread| thread.join().expect("passed"));
        });
        barrier.leave(1);
        barrier.wait();
    }
}
