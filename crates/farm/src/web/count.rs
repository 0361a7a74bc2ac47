//! Numbers that only grow.

use std::sync::atomic::{AtomicU64, Ordering};

pub fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

pub fn of(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
