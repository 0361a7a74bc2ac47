//! Measuring threads as seen by the housekeeping thread.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::block::CpuBuffers;
use super::hunter::MeasuringThread;
use super::shared::{LeaveOnPanic, Shared};
use super::task::{MeasuringTask, Prepared, ThreadBody, ThreadEnd};
use crate::plan::MeasurePlan;
use model::error::{Failure, Result};

/// Stack size: the loop's frames are small, and Rust and libc need some space around them.
const STACK: usize = 128 << 10;

/// Measuring thread that is ready, with its buffers.
pub struct ReadyThread {
    pub thread: MeasuringThread,
    pub buffers: Arc<CpuBuffers>,
}

/// One measuring thread, as seen by the housekeeping thread.
pub struct Worker {
    /// Empty until the first barrier.
    pub prepared: Arc<Prepared>,
    handle: JoinHandle<ThreadEnd>,
}

impl Worker {
    /// Starts the thread for the plan's CPU number `index`.
    pub fn start(
        plan: &Arc<MeasurePlan>,
        index: usize,
        shared: &Arc<Shared>,
        body: &Arc<dyn ThreadBody>,
    ) -> io::Result<Worker> {
        let prepared = Arc::new(OnceLock::new());
        let (plan, shared, body, result) = (plan.clone(), shared.clone(), body.clone(), prepared.clone());
        let own = &plan.cpus[index];
        let name =
            if own.thread == 0 { format!("onbeat/{}", own.cpu) } else { format!("onbeat/t{}", own.thread) };
        let builder = thread::Builder::new().name(name).stack_size(STACK);
        let main = move || {
            let _leave = LeaveOnPanic(&shared);
            body.run(MeasuringTask { plan: &plan, index, shared: &shared, prepared: &result })
        };
        Ok(Worker { prepared, handle: builder.spawn(main)? })
    }

    /// Number of wake-ups before the run, which do not count.
    pub fn warmup(&self) -> u64 {
        self.prepared.get().and_then(|found| found.as_ref().ok()).map_or(0, |(info, _)| info.warmup)
    }

    /// Waits for the thread's end; none if it never ran the loop.
    pub fn join(self) -> ThreadEnd {
        self.handle.join().ok().flatten()
    }
}

/// Starts the threads; if one fails to start, those already started are ended.
pub fn start_all(
    threads: usize,
    shared: &Shared,
    start: impl Fn(usize) -> std::io::Result<Worker>,
) -> Result<Vec<Worker>> {
    let mut workers = Vec::with_capacity(threads);
    for index in 0..threads {
        match start(index) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                let message = format!(
                    "cannot start a measuring thread ({error}): raise the limits of processes and memory \
                    (ulimit -u, -v), or measure fewer CPUs with -a"
                );
                shared.leave(threads - index);
                shared.barrier.wait();
                return Err(cancel(shared, workers, Failure::internal(message)));
            }
        }
    }
    Ok(workers)
}

/// Ends a cancelled run; returns the failure.
pub fn cancel(shared: &Shared, workers: Vec<Worker>, failure: Failure) -> Failure {
    shared.cancelled.store(true, Ordering::Release);
    shared.barrier.wait();
    for worker in workers {
        worker.join();
    }
    failure
}
