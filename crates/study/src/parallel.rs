//! Parallel reading of many inputs, each by one thread.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::measurement::{Measurement, ReadOptions};
use model::error::{Failure, Result};

/// Limit of threads, as all may read from one disk.
const MAX_THREADS: usize = 8;

/// Reads the inputs, in their order; the first unreadable one is the refusal. `progress` is called
/// by any thread with the number of inputs that are ready.
pub fn read(
    paths: &[PathBuf],
    options: &ReadOptions,
    progress: impl Fn(usize) + Sync,
) -> Result<Vec<Measurement>> {
    let threads =
        std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS).min(paths.len());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let slots: Vec<Mutex<Option<Result<Measurement>>>> = paths.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(path), Some(slot)) = (paths.get(at), slots.get(at)) else { return };
            let read = options.open(path);
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(read);
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        // If a thread cannot be started, this one does its work.
        for _ in 1..threads {
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let results = slots.into_iter().map(|slot| slot.into_inner().ok().flatten());
    results.map(|read| read.unwrap_or_else(|| Err(Failure::internal("an input was not read")))).collect()
}
