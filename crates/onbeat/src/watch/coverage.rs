//! How much was recorded: the switches to each thread beside its own count of sleeps.
//!
//! Each voluntary switch away from a thread is followed by a waking and a switch to it, so that
//! both grow by the same (`voluntary_ctxt_switches`, proc_pid_status(5)).

use std::collections::HashMap;

use model::watch::WatchCoverage;

/// A thread as the recorder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedThread {
    pub tid: i32,
    /// Switches to it after a waking that were recorded, since it was first seen.
    pub switches: u64,
}

/// What a thread's own files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCount {
    /// When it was started: another thread with the same number has another.
    pub start: u64,
    pub voluntary: u64,
}

/// The counts at the end of the last interval.
#[derive(Clone, Debug, Default)]
pub struct CoverageCounts {
    last: HashMap<i32, (OwnCount, u64)>,
}

impl CoverageCounts {
    /// Takes the threads of an interval's end; adds what both counts grew by, of threads that were
    /// there at its beginning too, and how many ended.
    pub fn take(
        &mut self,
        threads: &[RecordedThread],
        own: impl Fn(i32) -> Option<OwnCount>,
        coverage: &mut WatchCoverage,
    ) {
        let mut now = HashMap::with_capacity(threads.len());
        for thread in threads {
            let Some(count) = own(thread.tid) else {
                coverage.ended += 1;
                continue;
            };
            now.insert(thread.tid, (count, thread.switches));
            let before = self
                .last
                .get(&thread.tid)
                .filter(|(before, switches)| before.start == count.start && *switches <= thread.switches);
            if let Some((before, switches)) = before {
                coverage.recorded += thread.switches - switches;
                let slept = count.voluntary.saturating_sub(before.voluntary);
                coverage.voluntary = Some(coverage.voluntary.unwrap_or(0) + slept);
            }
        }
        self.last = now;
    }
}

/// The count in /proc/TID/status.
pub fn voluntary(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(counts: &mut CoverageCounts, threads: &[(i32, u64)], own: &[(i32, u64, u64)]) -> WatchCoverage {
        let threads: Vec<RecordedThread> =
            threads.iter().map(|&(tid, switches)| RecordedThread { tid, switches }).collect();
        let find = |tid| own.iter().find(|count| count.0 == tid);
        let mut coverage = WatchCoverage::default();
        let own = |tid| find(tid).map(|&(_, start, voluntary)| OwnCount { start, voluntary });
        counts.take(&threads, own, &mut coverage);
        coverage
    }

    #[test]
    fn both_counts_grow_alike_and_what_ended_is_counted() {
        let mut counts = CoverageCounts::default();
        let first = take(&mut counts, &[(7, 100), (8, 5)], &[(7, 1, 900), (8, 1, 4)]);
        assert_eq!((first.recorded, first.voluntary), (0, None), "from where it began nobody knows");
        let second = take(&mut counts, &[(7, 150), (8, 6)], &[(7, 1, 951)]);
        assert_eq!((second.recorded, second.voluntary, second.ended), (50, Some(51), 1));
        let third = take(&mut counts, &[(7, 160), (8, 9)], &[(7, 1, 961), (8, 30, 1)]);
        assert_eq!((third.recorded, third.voluntary, third.ended), (10, Some(10), 0));
    }

    #[test]
    fn another_thread_of_the_same_number_is_another() {
        let mut counts = CoverageCounts::default();
        take(&mut counts, &[(7, 100)], &[(7, 1, 900)]);
        let again = take(&mut counts, &[(7, 102)], &[(7, 2, 3)]);
        assert_eq!((again.recorded, again.voluntary), (0, None));
        let cleared = take(&mut counts, &[(7, 1)], &[(7, 2, 4)]);
        assert_eq!((cleared.recorded, cleared.voluntary), (0, None));
    }

    #[test]
    fn the_kernels_text_is_read() {
        assert_eq!(
            voluntary("Name:\trt\nvoluntary_ctxt_switches:\t51\nnonvoluntary_ctxt_switches:\t3\n"),
            Some(51)
        );
        assert_eq!(voluntary("nonvoluntary_ctxt_switches:\t3\n"), None);
    }
}
