//! Reads many inputs at once, each by one thread, and says how far it is.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::subject::{Reading, Subject};
use host::clock;
use model::error::{Outcome, Trouble};
use model::units::Nanos;

/// More threads would read from one disk.
const MOST_THREADS: usize = 8;
/// Work that is over sooner needs no progress.
const PATIENCE: Nanos = Nanos(2_000_000_000);

/// Reads the inputs, in their order; the first that cannot be read is the refusal.
pub fn read(paths: &[PathBuf], reading: &Reading, progress: bool) -> Outcome<Vec<Subject>> {
    let threads =
        std::thread::available_parallelism().map_or(1, |n| n.get()).min(MOST_THREADS).min(paths.len());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let slots: Vec<Mutex<Option<Outcome<Subject>>>> = paths.iter().map(|_| Mutex::new(None)).collect();
    let begun = clock::monotonic();
    let progress = progress && std::io::stderr().is_terminal();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(path), Some(slot)) = (paths.get(at), slots.get(at)) else { return };
            let read = reading.open(path);
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(read);
            }
            let ready = done.fetch_add(1, Ordering::Relaxed) + 1;
            if progress {
                tell(ready, paths.len(), clock::monotonic() - begun);
            }
        }
    };
    std::thread::scope(|scope| {
        // Where a thread cannot be had, this one does its work.
        for _ in 1..threads {
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    if progress && clock::monotonic() - begun > PATIENCE {
        let _ = write!(std::io::stderr(), "\r\u{1b}[K");
    }
    let taken = slots.into_iter().map(|slot| slot.into_inner().ok().flatten());
    taken.map(|read| read.unwrap_or_else(|| Err(Trouble::internal("an input was not read")))).collect()
}

fn tell(ready: usize, of: usize, spent: Nanos) {
    if spent > PATIENCE && ready < of {
        let left = spent.as_secs() / ready as f64 * (of - ready) as f64;
        let _ = write!(std::io::stderr(), "\r\u{1b}[Kread {ready} of {of} runs, {left:.0} s left");
    }
}
