//! Busy ordinary threads, next to those that spin with a real-time priority.
//!
//! The fair server of 6.12 and later stops a real-time task only while an ordinary task waits for
//! its CPU (`dl_server_start()` in kernel/sched/fair.c).

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use host::{clock, rt};
use model::error::{Exit, Failure, Result};
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::Policy;

const STACK: usize = 64 << 10;

/// One busy thread per CPU. Dropping it ends them.
pub struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    /// Starts the threads, which end by themselves at `latest`.
    ///
    /// # Errors
    /// A thread cannot be started or bound to its CPU.
    pub fn start(cpus: impl Iterator<Item = Cpu>, latest: Nanos) -> Result<Hogs> {
        let mut hogs = Hogs { stop: Arc::default(), threads: Vec::new() };
        for cpu in cpus {
            let failed = |error: std::io::Error| {
                let what = format!("cannot start the busy thread of CPU {cpu}");
                Failure::of_call(what, &error, Exit::Internal, "remove --hog")
            };
            let stop = hogs.stop.clone();
            let main = move || be_busy(cpu, latest, &stop);
            let builder = thread::Builder::new().name(format!("onbeat/hog{cpu}")).stack_size(STACK);
            hogs.threads.push(builder.spawn(main).map_err(failed)?);
        }
        Ok(hogs)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn be_busy(cpu: Cpu, latest: Nanos, stop: &AtomicBool) {
    let own: CpuSet = [cpu].into_iter().collect();
    // On another CPU, or with a priority, it would be useless and a disturbance.
    if rt::pin(&own).is_err() || rt::set_policy(Policy::Other, 0).is_err() {
        return;
    }
    while !stop.load(Relaxed) && clock::monotonic() < latest {
        (0..1_000).for_each(|_| spin_loop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_when_they_are_dropped_and_by_themselves() {
        let here = rt::affinity().unwrap();
        let hogs = Hogs::start(here.iter().take(1), Nanos(i64::MAX)).unwrap();
        assert_eq!(hogs.threads.len(), 1);
        drop(hogs);
        let mut over = Hogs::start(here.iter().take(1), Nanos(0)).unwrap();
        assert!(over.threads.pop().is_some_and(|thread| thread.join().is_ok()));
    }
}
